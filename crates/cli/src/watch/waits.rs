//! Explains why nothing runs in a flow that somebody follows: what its tasks are waiting for, by `tasks.explain`.

use super::known::tasks;
use crate::output::{Output, list, member, printable};
use crate::{Api, ApiError};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use tokio::time::timeout;

/// How long nothing has happened before somebody is told why. Tasks that begin at once are no news.
pub(crate) const QUIET: Duration = Duration::from_secs(2);
/// Tasks that are asked about in one pause, so that a wide flow costs few calls.
const ASKED_MAX: usize = 4;
/// Reasons that are remembered; beyond them they are told again.
const SAID_MAX: usize = 1_000;

/// How long a look may take, tree and reasons together: what it did not learn is asked in the next pause.
const LOOK_MAX: Duration = Duration::from_secs(2);

/// What was told, each reason of a task once.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    said: HashSet<(String, String)>,
}

/// What a look has brought.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// What is new, a sentence each.
    pub(crate) sentences: Vec<String>,
    /// Whether all was answered; else the look is to be repeated.
    pub(crate) is_complete: bool,
}

/// A task that waits, and why.
struct Reason {
    id: String,
    code: String,
    summary: String,
}

impl Waits {
    /// Looks at what the tasks of a tree are waiting for, for at most [`LOOK_MAX`]. Whoever stops waiting for it loses
    /// nothing. Cost: the tree, and a call for each of [`ASKED_MAX`] tasks.
    pub(crate) async fn look(
        &mut self,
        api: &dyn Api,
        tree: impl Future<Output = Result<Value, ApiError>>,
        out: &Output,
    ) -> News {
        let mut found = Vec::new();
        let asked = timeout(LOOK_MAX, ask(api, tree, &mut found)).await;
        let mut news = News {
            sentences: Vec::new(),
            is_complete: asked.unwrap_or(false),
        };
        for reason in found {
            if self.said.len() >= SAID_MAX {
                self.said.clear();
            }
            if self.said.insert((reason.id, reason.code)) {
                let summary = printable(&reason.summary);
                news.sentences.push(out.sentence(&summary));
            }
        }
        news
    }
}

/// Finds out why tasks wait. Returns whether all was answered, if with a refusal.
async fn ask(
    api: &dyn Api,
    tree: impl Future<Output = Result<Value, ApiError>>,
    found: &mut Vec<Reason>,
) -> bool {
    let tree = match tree.await {
        Ok(tree) => tree,
        Err(error) => return !error.is_passing(),
    };
    let mut is_complete = true;
    for id in waiting(&tree).into_iter().take(ASKED_MAX) {
        let asked = api.call("tasks.explain", json!({ "task_id": id }));
        let explained = match asked.await {
            Ok(explained) => explained,
            Err(error) => {
                is_complete &= !error.is_passing();
                continue;
            }
        };
        let reason = list(&explained, "reasons").first();
        let code = reason.map_or_else(String::new, |reason| member(reason, "code"));
        if is_wait(&code) {
            found.push(Reason {
                id,
                code,
                summary: member(&explained, "summary"),
            });
        }
    }
    is_complete
}

/// Whether a task that stands so goes on when something else has happened.
fn is_wait(code: &str) -> bool {
    code.starts_with("waits_for_") || matches!(code, "draining" | "suspended" | "lacks_inputs")
}

/// The tasks that wait, if none runs: those first that wait for no other task of the tree.
fn waiting(tree: &Value) -> Vec<String> {
    let status: HashMap<String, String> = tasks(tree)
        .map(|task| (member(task, "id"), member(task, "status")))
        .collect();
    let has_method = |task: &&Value| task.get("schemas").is_some_and(Value::is_object);
    let is_asking = |task: &Value| task.get("suspension").is_some_and(Value::is_object);
    let (mut first, mut later) = (Vec::new(), Vec::new());
    for task in tasks(tree).filter(has_method) {
        match member(task, "status").as_str() {
            "in_progress" if !is_asking(task) => return Vec::new(),
            "in_progress" => first.push(member(task, "id")),
            "pending" => {
                let needs = list(task, "dependencies").iter();
                let is_open = |needed: &Value| {
                    let status = status.get(&member(needed, "id")).map(String::as_str);
                    matches!(status, Some("pending" | "in_progress"))
                };
                match needs.into_iter().any(is_open) {
                    true => later.push(member(task, "id")),
                    false => first.push(member(task, "id")),
                }
            }
            _ => {}
        }
    }
    // What waits for a task that is told of needs no words.
    if first.is_empty() { later } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApiError;
    use async_trait::async_trait;
    use std::future::ready;
    use std::sync::Mutex;

    fn task(id: &str, status: &str, more: Value) -> Value {
        let mut task = json!({"id": id, "status": status, "schemas": {"method": "m"}});
        let more = more.as_object().unwrap().clone();
        task.as_object_mut().unwrap().extend(more);
        json!({"task": task, "children": []})
    }

    fn flow(children: Vec<Value>) -> Value {
        json!({"task": {"id": "r", "status": "in_progress", "schemas": null}, "children": children})
    }

    #[test]
    fn while_something_runs_nothing_waits() {
        let pending = || task("a", "pending", json!({}));
        let running = task("b", "in_progress", json!({}));
        assert!(waiting(&flow(vec![pending(), running])).is_empty());
        let asking = task("b", "in_progress", json!({"suspension": {"since": "T"}}));
        let mut both = waiting(&flow(vec![pending(), asking]));
        both.sort();
        assert_eq!(both, ["a", "b"]);
        assert!(waiting(&flow(vec![task("a", "completed", json!({}))])).is_empty());
    }

    #[test]
    fn tasks_that_wait_for_others_of_the_flow_come_last() {
        let behind = |id: &str| task(id, "pending", json!({"dependencies": [{"id": "a"}]}));
        let first = task("a", "pending", json!({}));
        assert_eq!(waiting(&flow(vec![behind("b"), first, behind("c")])), ["a"]);
        let done = task("a", "completed", json!({}));
        assert_eq!(waiting(&flow(vec![behind("b"), done])), ["b"]);
    }

    /// A server on which each task waits for this.
    struct Waiting(Mutex<&'static str>);

    #[async_trait]
    impl Api for Waiting {
        async fn call(&self, method: &str, params: Value) -> Result<Value, ApiError> {
            assert_eq!(
                (method, &params),
                ("tasks.explain", &json!({"task_id": "a"}))
            );
            let code = *self.0.lock().unwrap();
            Ok(json!({"summary": format!("`a` is so: {code}"), "reasons": [{"code": code}]}))
        }
    }

    #[tokio::test]
    async fn each_reason_is_told_once() {
        let api = Waiting(Mutex::new(""));
        let tree = flow(vec![task("a", "pending", json!({}))]);
        let out = Output::to(Box::new(Vec::new()), false, false);
        let mut waits = Waits::default();
        for (code, said) in [
            ("waits_for_worker", Some("`a` is so: waits_for_worker")),
            ("waits_for_worker", None),
            ("waits_for_time", Some("`a` is so: waits_for_time")),
            ("waits_for_worker", None),
            ("not_covered", None),
        ] {
            *api.0.lock().unwrap() = code;
            let news = waits.look(&api, ready(Ok(tree.clone())), &out).await;
            assert!(news.is_complete);
            let told = news.sentences.first().map(String::as_str);
            assert_eq!(told, said, "{code}");
        }
    }

    /// A server on which one task waits for a worker, and which does not tell why others do.
    struct Partly(Result<(), ApiError>);

    #[async_trait]
    impl Api for Partly {
        async fn call(&self, _method: &str, params: Value) -> Result<Value, ApiError> {
            match (params["task_id"].as_str(), &self.0) {
                (Some("a"), _) => {
                    Ok(json!({"summary": "`a` waits", "reasons": [{"code": "waits_for_worker"}]}))
                }
                (_, Err(error)) => Err(error.clone()),
                (_, Ok(())) => std::future::pending().await,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_not_answered_is_asked_again_and_the_rest_is_told() {
        let pending = |id| task(id, "pending", json!({}));
        // The last child is asked about first.
        let tree = || flow(vec![pending("b"), pending("a")]);
        let out = Output::to(Box::new(Vec::new()), false, false);
        let lost = || ApiError::Connection("lost".to_owned());
        let refused = ApiError::Protocol("no".to_owned());
        for (answer, is_complete) in [(Ok(()), false), (Err(lost()), false), (Err(refused), true)] {
            let api = Partly(answer);
            let mut waits = Waits::default();
            let news = waits.look(&api, ready(Ok(tree())), &out).await;
            assert_eq!(news.sentences, ["`a` waits"], "{:?}", api.0);
            assert_eq!(news.is_complete, is_complete, "{:?}", api.0);
            let again = waits.look(&api, ready(Ok(tree())), &out).await;
            assert!(again.sentences.is_empty());
        }
        let mut waits = Waits::default();
        let api = Partly(Ok(()));
        let none = waits.look(&api, ready(Err(lost())), &out).await;
        assert!(!none.is_complete && none.sentences.is_empty());
        let never = std::future::pending();
        assert!(!waits.look(&api, never, &out).await.is_complete);
    }
}
