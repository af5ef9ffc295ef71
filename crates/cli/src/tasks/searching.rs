//! Searches a list for what the server cannot filter.

use super::CliError;
use super::selection::Rest;
use crate::{Api, output};
use serde_json::{Value, json};

/// Tasks that are looked at for a filter that the server does not have.
pub(super) const LOOKED_AT_MAX: usize = 10_000;
/// Tasks of a page that is looked through.
const PAGE: u32 = 1000;

/// Looks through pages until there are enough tasks, or enough was looked at; the cursor goes on behind the last task
/// that was looked at. An `offset` skips tasks that match. Cost: a call for each [`PAGE`] tasks, and one more where
/// there are enough before the end of a page.
pub(super) async fn looked_through(
    rest: Option<&Rest>,
    wanted: usize,
    api: &dyn Api,
    mut params: Value,
) -> Result<Value, CliError> {
    let taken = |task: &&Value| rest.is_none_or(|rest| rest.takes(task));
    let offset = params.as_object_mut().and_then(|it| it.remove("offset"));
    let offset = offset.as_ref().and_then(Value::as_u64).unwrap_or(0);
    let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
    let enough = wanted.saturating_add(skipped);
    let (mut found, mut looked_at, mut is_more) = (Vec::new(), 0, false);
    loop {
        params["limit"] = PAGE.into();
        let mut page = api.call("tasks.list", params.clone()).await?;
        let places = output::list(&page, "tasks").iter().enumerate();
        let mut matches = places.filter(|(_, task)| taken(task)).map(|(at, _)| at);
        let missing = enough - found.len();
        let last = missing.checked_sub(1).and_then(|skip| matches.nth(skip));
        if let Some(last) = last.filter(|_| matches.next().is_some()) {
            is_more = true;
            page = cut_behind(last, page, api, &mut params).await?;
        }
        let tasks = output::list(&page, "tasks");
        looked_at += tasks.len();
        found.extend(tasks.iter().filter(taken).cloned());
        let cursor = output::member(&page, "next_cursor");
        if cursor.is_empty() || found.len() >= enough || looked_at >= LOOKED_AT_MAX {
            let found: Vec<Value> = found.into_iter().skip(skipped).collect();
            let mut result = json!({"tasks": found, "looked_at": looked_at});
            if is_more {
                result["more"] = true.into();
            }
            if !cursor.is_empty() {
                result["next_cursor"] = cursor.into();
            }
            return Ok(result);
        }
        params["cursor"] = cursor.into();
    }
}

/// A page up to the task at this place, with the cursor behind it, which only the server can say. Without a cursor if
/// other tasks have come meanwhile.
async fn cut_behind(
    last: usize,
    mut page: Value,
    api: &dyn Api,
    params: &mut Value,
) -> Result<Value, CliError> {
    params["limit"] = (last + 1).into();
    let again = api.call("tasks.list", params.clone()).await?;
    let id = |page: &Value| page["tasks"][last]["id"].clone();
    let is_same = id(&again) == id(&page);
    page["next_cursor"] = match is_same {
        true => again["next_cursor"].clone(),
        false => Value::Null,
    };
    if let Some(tasks) = page["tasks"].as_array_mut() {
        tasks.truncate(last + 1);
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApiError;
    use crate::tasks::selection::Selection;
    use crate::testing::parsed;
    use crate::when::{Times, tests::at_noon};

    /// A server with this many tasks, of which every tenth failed; the cursor is the place of the next one.
    struct Tasks(u64);

    #[async_trait::async_trait]
    impl Api for Tasks {
        async fn call(&self, method: &str, params: Value) -> Result<Value, ApiError> {
            assert_eq!((method, params.get("offset")), ("tasks.list", None));
            let from = params["cursor"]
                .as_str()
                .map_or(0, |it| it.parse().unwrap());
            let to = self.0.min(from + params["limit"].as_u64().unwrap());
            let task = |n: u64| {
                let error = if n.is_multiple_of(10) { "time-out" } else { "" };
                json!({"id": n.to_string(), "name": "n", "error": error})
            };
            let tasks: Vec<Value> = (from..to).map(task).collect();
            let next = (to < self.0).then(|| to.to_string());
            Ok(json!({"tasks": tasks, "total": self.0, "next_cursor": next}))
        }
    }

    async fn found(wanted: usize, params: Value) -> (Vec<String>, Value) {
        let selection: Selection = parsed(["list", "--error", "TIME"]).unwrap();
        let rest = selection.rest(&at_noon(Times::Utc)).unwrap();
        let looked = looked_through(rest.as_ref(), wanted, &Tasks(2_500), params).await;
        let mut looked = looked.unwrap();
        let tasks = looked["tasks"].take();
        let ids = tasks.as_array().unwrap().iter();
        let ids = ids.map(|task| output::member(task, "id")).collect();
        looked.as_object_mut().unwrap().remove("tasks");
        (ids, looked)
    }

    #[tokio::test]
    async fn a_page_of_matches_goes_on_behind_its_last_one() {
        let (ids, rest) = found(3, json!({})).await;
        assert_eq!(ids, ["0", "10", "20"]);
        assert_eq!(
            rest,
            json!({"looked_at": 21, "more": true, "next_cursor": "21"})
        );
        let (ids, rest) = found(2, json!({"cursor": "21"})).await;
        assert_eq!(ids, ["30", "40"]);
        assert_eq!(
            rest,
            json!({"looked_at": 20, "more": true, "next_cursor": "41"})
        );
        // The last match of a page of the server.
        let (ids, rest) = found(100, json!({})).await;
        assert_eq!(ids.len(), 100);
        assert_eq!(rest, json!({"looked_at": 1_000, "next_cursor": "1000"}));
        let (ids, rest) = found(500, json!({})).await;
        assert_eq!((ids.len(), rest), (250, json!({"looked_at": 2_500})));
    }

    #[tokio::test]
    async fn an_offset_skips_matches() {
        let (ids, rest) = found(2, json!({"offset": 1})).await;
        assert_eq!(ids, ["10", "20"]);
        assert_eq!(
            rest,
            json!({"looked_at": 21, "more": true, "next_cursor": "21"})
        );
        let (ids, rest) = found(2, json!({"offset": 249})).await;
        assert_eq!(ids, ["2490"]);
        assert_eq!(rest, json!({"looked_at": 2_500}));
        let (ids, _) = found(2, json!({"offset": u64::MAX})).await;
        assert!(ids.is_empty());
    }
}
