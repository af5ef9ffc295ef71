//! Ids of tasks as people give them: whole, by a beginning that no other id has, or `@last` and `@root`.

use super::output::{member, short};
use super::{Api, CliError};
use serde_json::{Value, json};

/// The flow that was created last.
const LAST: &str = "@last";
/// The root of a flow; alone, of the one that was created last.
const ROOT: &str = "@root";
/// Digits of a beginning that a server looks up.
const DIGITS_MIN: usize = 4;
/// Tasks that are named when a beginning is that of several.
const NAMED_MAX: u64 = 5;
/// Characters of a whole id.
const WHOLE: usize = 36;

/// What `given` means on this server. A whole id is left for the server to judge.
pub(super) async fn resolved(api: &dyn Api, given: &str) -> Result<String, CliError> {
    if let Some(meant) = misspelt(given) {
        return Err(CliError::Usage(format!(
            "`{given}` names no task; did you mean `{meant}`? Expected an id, the first digits of one, `{LAST}`, or one of these followed by `{ROOT}`"
        )));
    }
    let (named, wants_root) = match given.strip_suffix(ROOT) {
        Some("") => return last(api).await,
        Some(named) => (named, true),
        None => (given, false),
    };
    let id = match named {
        LAST => last(api).await?,
        named if named.len() >= WHOLE => named.to_owned(),
        named if could_begin(named) => begun_with(api, named).await?,
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
    let task = api.call("tasks.get", json!({ "task_id": id })).await?;
    Ok(member(&task, "root_task_id"))
}

/// Resolves the members of parameters that name stored tasks.
pub(super) async fn resolve_in(api: &dyn Api, params: &mut Value) -> Result<(), CliError> {
    for name in ["task_id", "parent_id", "flow", "flow_id"] {
        let given = params.get(name).and_then(Value::as_str).map(str::to_owned);
        if let Some(given) = given {
            params[name] = resolved(api, &given).await?.into();
        }
    }
    Ok(())
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

async fn last(api: &dyn Api) -> Result<String, CliError> {
    let page = json!({"root_only": true, "limit": 1});
    let found = api.call("tasks.list", page).await?;
    match found["tasks"].get(0) {
        Some(task) => Ok(member(task, "id")),
        None => Err(CliError::Usage(format!(
            "{LAST}: there is no flow yet; `taskledger run FILE{}` makes one",
            api.options()
        ))),
    }
}

async fn begun_with(api: &dyn Api, prefix: &str) -> Result<String, CliError> {
    let page = json!({"id_prefix": prefix, "limit": NAMED_MAX});
    let found = api.call("tasks.list", page).await?;
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
            if method == "tasks.get" {
                return Ok(json!({"id": params["task_id"], "root_task_id": B}));
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
            several.contains("of 2 ids") && several.contains("first") && several.contains(B),
            "{several}"
        );
    }
}
