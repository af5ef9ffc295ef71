//! Serves a task's results page by page, for results that do not fit into an answer of the protocol. HTTP only, below
//! the HTTP+JSON binding.

use super::calls::run_of;
use super::mapping::errors::Doing;
use super::mapping::views;
use super::names::ARTIFACTS;
use super::{A2a, Heard};
use crate::application::api::runs::ReadArtifacts;
use serde_json::{Value, json};
use taskledger_a2a::{Error, Wire};
use url::form_urlencoded;

/// Results of a page, unless said otherwise.
const PAGE_DEFAULT: usize = 50;
/// Results of a page at most.
const PAGE_MAX: usize = 100;
/// The name under which calls for results are counted; the protocol has none.
pub(in super::super) const CALL: &str = "ListArtifacts";

/// The task whose results a path asks for: `tasks/{id}/artifacts`, also below the name of a tenant.
pub(in super::super) fn asked(method: &str, path: &str) -> Option<String> {
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    match segments.as_slice() {
        ["tasks", id, ARTIFACTS] | [_, "tasks", id, ARTIFACTS] if method == "GET" => {
            Some((*id).to_owned())
        }
        _ => None,
    }
}

impl A2a {
    /// A page of the results of a task.
    ///
    /// # Errors
    /// [`Error`].
    pub(in super::super) async fn artifacts(
        &self,
        heard: &Heard,
        task: &str,
        query: Option<&str>,
    ) -> Result<Value, Error> {
        let run = run_of(task)?;
        let (mut limit, mut behind) = (PAGE_DEFAULT, None);
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            match &*name {
                "pageSize" | "page_size" => {
                    let size = value.parse().ok();
                    limit = size
                        .filter(|it| (1..=PAGE_MAX).contains(it))
                        .ok_or_else(|| {
                            let reason = format!("a number from 1 to {PAGE_MAX} is required");
                            Error::invalid_member("pageSize", reason)
                        })?;
                }
                "pageToken" | "page_token" if !value.is_empty() => {
                    behind = Some(value.parse().map_err(|_| {
                        let reason = "not a token that a page of this list has given";
                        Error::invalid_member("pageToken", reason)
                    })?);
                }
                _ => {}
            }
        }
        let read = ReadArtifacts { run, behind, limit };
        let page = self.runs.artifacts(&heard.context, read).await;
        let page = page.map_err(|error| self.told(error, Doing::Reading))?;
        let artifacts = page.artifacts.into_iter().map(views::artifact);
        let artifacts: Vec<Value> = artifacts.map(|it| it.to_json()).collect();
        let next = page.next.map_or_else(String::new, |next| next.to_string());
        Ok(json!({"artifacts": artifacts, "nextPageToken": next}))
    }
}

#[cfg(test)]
mod tests {
    use super::asked;

    #[test]
    fn the_path_may_have_a_tenant() {
        for (method, path, id) in [
            ("GET", "/tasks/t/artifacts", Some("t")),
            ("GET", "/acme/tasks/t/artifacts", Some("t")),
            ("POST", "/tasks/t/artifacts", None),
            ("GET", "/tasks/t", None),
        ] {
            assert_eq!(asked(method, path).as_deref(), id, "{method} {path}");
        }
    }
}
