//! Ids of tasks as people type them: whole, by a unique beginning, `@last` and `@root`, or one of these and the names
//! of tasks below it: `@last/collect/fetch`.

use super::output::{list, member, short};
use super::request::Params;
use super::{Api, CliError};
use serde_json::{Value, json};
use taskledger_domain::limits;

/// The flow that was created last.
const LAST: &str = "@last";
/// The root of a flow; alone, of the one that was created last.
const ROOT: &str = "@root";
/// Stands before the name of a task that is directly below another one.
const BELOW: char = '/';
/// Digits of a beginning that a server looks up.
const DIGITS_MIN: usize = 4;
/// Tasks that are named when a beginning is that of several.
const NAMED_MAX: u64 = 5;
/// Webhooks of a page that is looked through for an id.
const WEBHOOKS_PAGE: u32 = 100;
/// Pages that are looked through: more webhooks than a user may have.
const WEBHOOK_PAGES_MAX: usize = 100;
/// Characters of a whole id.
const WHOLE: usize = 36;

/// What `given` means on this server. A whole id is left for the server to judge.
pub(super) async fn resolved(api: &dyn Api, given: &str) -> Result<String, CliError> {
    resolved_so(api, given, &Params::default()).await
}

/// The same; `how`: parameters of the calls that find it.
async fn resolved_so(api: &dyn Api, given: &str, how: &Params) -> Result<String, CliError> {
    let mut words = given.split(BELOW);
    let mut id = resolved_alone(api, words.next().unwrap_or_default(), how).await?;
    for name in words.take(limits::TREE_DEPTH_MAX) {
        id = below(api, &id, name, how.clone()).await?;
    }
    Ok(id)
}

/// The task with this name directly below another one.
async fn below(api: &dyn Api, parent: &str, name: &str, how: Params) -> Result<String, CliError> {
    let page = how.with("parent_id", parent).with("name", name);
    let found = api
        .call("tasks.list", page.with("limit", NAMED_MAX).build())
        .await?;
    let tasks = found["tasks"].as_array().map_or(&[][..], Vec::as_slice);
    match tasks {
        [] => Err(CliError::Usage(format!(
            "no task `{name}` is directly below `{parent}`; `taskledger tasks children {parent}{}` lists those that are",
            api.options()
        ))),
        [task] => Ok(member(task, "id")),
        several => {
            let ids = several
                .iter()
                .map(|task| format!("\n  {}", member(task, "id")));
            Err(CliError::Usage(format!(
                "{} tasks below `{parent}` are called `{name}`; name one by its id:{}",
                member(&found, "total"),
                ids.collect::<String>()
            )))
        }
    }
}

async fn resolved_alone(api: &dyn Api, given: &str, how: &Params) -> Result<String, CliError> {
    if let Some(meant) = misspelt(given) {
        return Err(CliError::Usage(format!(
            "`{given}` names no task; did you mean `{meant}`? Expected an id, the first digits of one, `{LAST}`, or one of these followed by `{ROOT}`"
        )));
    }
    let (named, wants_root) = match given.strip_suffix(ROOT) {
        Some("") => return last(api, how.clone()).await,
        Some(named) => (named, true),
        None => (given, false),
    };
    let id = match named {
        LAST => last(api, how.clone()).await?,
        named if named.len() >= WHOLE => named.to_owned(),
        named if could_begin(named) => begun_with(api, named, how.clone()).await?,
        named => {
            return Err(CliError::Usage(format!(
                "`{named}` is not the id of a task; expected an id, at least its first {DIGITS_MIN} digits, `{LAST}`, or one of these followed by `{ROOT}`; `taskledger tasks list{}` shows ids",
                api.options()
            )));
        }
    };
    if !wants_root {
        return Ok(id);
    }
    let asked = how.clone().with("task_id", id).build();
    let task = api.call("tasks.get", asked).await?;
    Ok(member(&task, "root_task_id"))
}

/// Resolves the members of parameters that name stored tasks, as fresh as the call itself is to be answered.
pub(super) async fn resolve_in(api: &dyn Api, params: &mut Value) -> Result<(), CliError> {
    let how = Params::default().maybe("consistency", params.get("consistency").cloned());
    for name in ["task_id", "parent_id", "flow", "flow_id"] {
        let given = params.get(name).and_then(Value::as_str).map(str::to_owned);
        if let Some(given) = given {
            params[name] = resolved_so(api, &given, &how).await?.into();
        }
    }
    Ok(())
}

/// Resolves what a single task is to wait for, and what its updates name. Not for documents with several tasks, which
/// name tasks of their own.
pub(super) async fn resolve_named(api: &dyn Api, params: &mut Value) -> Result<(), CliError> {
    resolve_dependencies(api, params).await?;
    if let Some(updates) = params.get_mut("updates") {
        resolve_in(api, updates).await?;
        resolve_dependencies(api, updates).await?;
    }
    Ok(())
}

async fn resolve_dependencies(api: &dyn Api, params: &mut Value) -> Result<(), CliError> {
    let dependencies = params.get_mut("dependencies").and_then(Value::as_array_mut);
    for dependency in dependencies.into_iter().flatten() {
        let given = dependency.get("id").and_then(Value::as_str);
        if let Some(given) = given.map(str::to_owned) {
            dependency["id"] = resolved(api, &given).await?.into();
        }
    }
    Ok(())
}

/// Resolves the member that names a webhook, by a beginning of its id that no other one has.
pub(super) async fn resolve_webhook(api: &dyn Api, params: &mut Value) -> Result<(), CliError> {
    let given = params.get("id").and_then(Value::as_str).map(str::to_owned);
    let Some(prefix) = given.filter(|given| could_begin(given)) else {
        return Ok(());
    };
    let prefix = prefix.to_ascii_lowercase();
    let (mut found, mut page) = (Vec::new(), json!({"limit": WEBHOOKS_PAGE}));
    for _ in 0..WEBHOOK_PAGES_MAX {
        let answer = api.call("webhooks.list", page.clone()).await?;
        let all = list(&answer, "webhooks").iter();
        let fitting = all.filter(|it| member(it, "id").starts_with(&prefix));
        found.extend(fitting.map(|it| (member(it, "id"), member(it, "url"))));
        let cursor = member(&answer, "next_cursor");
        if cursor.is_empty() {
            break;
        }
        page["cursor"] = cursor.into();
    }
    match &*found {
        [] => Err(CliError::Usage(format!(
            "no webhook has an id that starts with `{prefix}`; `taskledger webhooks list{}` shows ids",
            api.options()
        ))),
        [(id, _)] => {
            params["id"] = id.as_str().into();
            Ok(())
        }
        several => {
            let named = several.iter().take(NAMED_MAX as usize);
            let named: String = named.map(|(id, url)| format!("\n  {id}  {url}")).collect();
            Err(CliError::Usage(format!(
                "`{prefix}` matches {} ids of webhooks; give more digits:{named}",
                several.len()
            )))
        }
    }
}

/// What somebody can have meant by a word with `@` that is none.
fn misspelt(given: &str) -> Option<String> {
    let at = given.find('@')?;
    let (named, word) = given.split_at(at);
    let begins = matches!(named, "") && matches!(word, "@last" | "@root" | "@last@root");
    if begins || !named.is_empty() && word == ROOT {
        return None;
    }
    // What shares more letters with the word is nearer.
    let shared = |known: &str| {
        known
            .chars()
            .filter(|letter| word.contains(*letter))
            .count()
    };
    let known = match named.is_empty() && shared(LAST) >= shared(ROOT) {
        true => LAST,
        false => ROOT,
    };
    Some(format!("{named}{known}"))
}

fn could_begin(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_hexdigit).count();
    let only = text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    only && text.len() < WHOLE && digits >= DIGITS_MIN
}

async fn last(api: &dyn Api, how: Params) -> Result<String, CliError> {
    let page = how.with("root_only", true).with("limit", 1);
    let found = api.call("tasks.list", page.build()).await?;
    match found["tasks"].get(0) {
        Some(task) => Ok(member(task, "id")),
        None => Err(CliError::Usage(format!(
            "{LAST}: there is no flow yet; `taskledger run FILE{}` makes one",
            api.options()
        ))),
    }
}

async fn begun_with(api: &dyn Api, prefix: &str, how: Params) -> Result<String, CliError> {
    let page = how.with("id_prefix", prefix).with("limit", NAMED_MAX);
    let found = api.call("tasks.list", page.build()).await?;
    let tasks = found["tasks"].as_array().map_or(&[][..], Vec::as_slice);
    match tasks {
        [] => Err(CliError::Usage(format!(
            "no task has an id that starts with `{prefix}`; `taskledger tasks list{}` shows ids",
            api.options()
        ))),
        [task] => Ok(member(task, "id")),
        several => {
            let named = several.iter().map(|task| {
                let (id, name) = (member(task, "id"), member(task, "name"));
                format!("\n  {id}  {name}")
            });
            Err(CliError::Usage(format!(
                "`{prefix}` matches {} ids; give more digits, for example `{}`:{}",
                member(&found, "total"),
                short(&member(&several[0], "id")),
                named.collect::<String>()
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApiError;
    use async_trait::async_trait;

    const A: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";
    const B: &str = "0f8f0000-d9cb-469f-a165-70867728950e";

    /// A server with two tasks, the second of which is a root.
    struct Two;

    #[async_trait]
    impl Api for Two {
        async fn call(&self, method: &str, params: Value) -> Result<Value, ApiError> {
            if method == "webhooks.list" {
                // One on each page.
                return Ok(match params.get("cursor") {
                    None => json!({"webhooks": [{"id": A}], "next_cursor": "p2"}),
                    Some(_) => json!({"webhooks": [{"id": B}]}),
                });
            }
            if method == "tasks.get" {
                return Ok(json!({"id": params["task_id"], "root_task_id": B}));
            }
            if let Some(parent) = params.get("parent_id") {
                let is_there = parent == B && params["name"] == "fetch";
                let tasks = if is_there {
                    json!([{"id": A}])
                } else {
                    json!([])
                };
                return Ok(json!({"total": 0, "tasks": tasks}));
            }
            let begins = params["id_prefix"].as_str().unwrap_or(B);
            let all = [(A, "first"), (B, "second")];
            let tasks = all.iter().filter(|(id, _)| id.starts_with(begins));
            let tasks: Vec<Value> = tasks
                .map(|(id, name)| json!({"id": id, "name": name}))
                .collect();
            Ok(json!({"total": tasks.len(), "tasks": tasks}))
        }
    }

    /// A server that answers no strong read.
    struct Behind;

    #[async_trait]
    impl Api for Behind {
        async fn call(&self, method: &str, params: Value) -> Result<Value, ApiError> {
            assert_eq!(params["consistency"], "eventual", "{method}");
            Two.call(method, params).await
        }
    }

    #[tokio::test]
    async fn an_id_is_looked_up_as_fresh_as_the_call_is_to_be_answered() {
        for given in ["@last", "0f8fad@root"] {
            let mut params = json!({"task_id": given, "consistency": "eventual"});
            resolve_in(&Behind, &mut params).await.unwrap();
            assert_eq!(params["task_id"], B, "{given}");
        }
    }

    #[tokio::test]
    async fn an_id_is_found_by_its_beginning_and_by_words() {
        for (given, meant) in [
            (A, A),
            ("0f8fad", A),
            ("@last", B),
            ("@root", B),
            ("0f8fad@root", B),
        ] {
            assert_eq!(resolved(&Two, given).await.unwrap(), meant, "{given}");
        }
        for given in ["7", "0f8", "name", ""] {
            let error = resolved(&Two, given).await.unwrap_err().to_string();
            assert!(error.contains("at least its first 4 digits"), "{error}");
        }
        let mut params = json!({"task_id": "0f8fad", "parent_id": "@last", "name": "0f8fad"});
        resolve_in(&Two, &mut params).await.unwrap();
        assert_eq!(
            params,
            json!({"task_id": A, "parent_id": B, "name": "0f8fad"})
        );
    }

    #[tokio::test]
    async fn a_task_is_found_by_the_names_on_the_way_to_it() {
        assert_eq!(resolved(&Two, "@last/fetch").await.unwrap(), A);
        assert_eq!(resolved(&Two, "0f8fad@root/fetch").await.unwrap(), A);
        for given in ["@last/fetch/again", "@last/", "@last/other"] {
            let said = resolved(&Two, given).await.unwrap_err().to_string();
            assert!(said.contains("taskledger tasks children"), "{said}");
        }
        let said = resolved(&Two, "@lst/fetch").await.unwrap_err().to_string();
        assert!(said.contains("did you mean `@last`?"), "{said}");
    }

    #[tokio::test]
    async fn dependencies_and_updates_name_tasks_in_the_same_ways() {
        let mut params = json!({"task_id": A, "dependencies": [{"id": "@last", "required": true}],
            "updates": {"parent_id": "@root", "dependencies": [{"id": "0f8fad"}, {"id": B}]}});
        resolve_named(&Two, &mut params).await.unwrap();
        assert_eq!(
            params,
            json!({"task_id": A, "dependencies": [{"id": B, "required": true}],
                "updates": {"parent_id": B, "dependencies": [{"id": A}, {"id": B}]}})
        );
    }

    #[tokio::test]
    async fn a_webhook_is_found_by_the_beginning_of_its_id() {
        let named = async |given: &str| {
            let mut params = json!({ "id": given });
            let found = resolve_webhook(&Two, &mut params).await;
            found
                .map(|()| params["id"].take())
                .map_err(|error| error.to_string())
        };
        assert_eq!(named("0f8fad").await.unwrap(), A);
        assert_eq!(named("0F8F00").await.unwrap(), B);
        assert_eq!(named(A).await.unwrap(), A);
        let several = named("0f8f").await.unwrap_err();
        assert!(
            several.contains("matches 2 ids of webhooks") && several.contains(A),
            "{several}"
        );
        let none = named("ffff").await.unwrap_err();
        assert!(
            none.contains("no webhook has an id that starts with `ffff`"),
            "{none}"
        );
    }

    #[tokio::test]
    async fn a_word_that_is_none_is_told_with_what_can_be_meant() {
        for (given, meant) in [
            ("@lst", "`@last`"),
            ("@latest", "`@last`"),
            ("@rot", "`@root`"),
            ("0f8fad@rot", "`0f8fad@root`"),
            ("0f8fad@last", "`0f8fad@root`"),
        ] {
            let said = resolved(&Two, given).await.unwrap_err().to_string();
            assert!(said.contains(&format!("did you mean {meant}?")), "{said}");
        }
        assert_eq!(resolved(&Two, "@last@root").await.unwrap(), B);
    }

    #[tokio::test]
    async fn a_beginning_of_none_or_of_several_is_refused_with_what_there_is() {
        let none = resolved(&Two, "ffff").await.unwrap_err().to_string();
        assert!(
            none.contains("no task has an id that starts with `ffff`"),
            "{none}"
        );
        let several = resolved(&Two, "0f8f").await.unwrap_err().to_string();
        assert!(
            several.contains("matches 2 ids") && several.contains("first") && several.contains(B),
            "{several}"
        );
    }
}
