//! The HTTP+JSON binding of 0.3: it turns method, path, query and body into a call.

use super::super::A2a;
use super::super::rest::{decoded, of_body, of_query};
use super::card_of;
use serde_json::{Map, Value};
use taskledger_a2a::operation::Answer;
use taskledger_a2a::v03::{ConvertedCall, Form};
use taskledger_a2a::{Error, ErrorKind, Operation};

/// Begins all paths.
const ROOT: &str = "/v1";

/// Whether a path below the root of the binding is one of 0.3.
pub(in super::super::super) fn is_meant(path: &str) -> bool {
    let rest = path.strip_prefix(ROOT);
    rest.is_some_and(|it| it.is_empty() || it.starts_with('/'))
}

/// The answer to a call for the card where everybody sees the same.
pub(in super::super::super) fn card(a2a: &A2a, operation: Operation) -> Option<Answer> {
    card_of(a2a, operation)
}

/// What a request asks for.
///
/// # Errors
/// `MethodNotFound`; `Parse`: the body is no JSON; `InvalidParams`: it is no object.
pub(in super::super::super) fn asked(
    method: &str,
    path: &str,
    query: Option<&str>,
    body: &[u8],
) -> Result<ConvertedCall, Error> {
    let below = path.strip_prefix(ROOT).unwrap_or(path);
    let segments: Vec<String> = below
        .trim_start_matches('/')
        .split('/')
        .map(decoded)
        .collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let found = of(method, &segments);
    let (operation, ids) = found.ok_or_else(|| {
        let path: String = path.chars().take(128).collect();
        let reason = format!("there is nothing at {method} {path}");
        Error::new(ErrorKind::MethodNotFound, reason)
    })?;
    let mut members = match body {
        [] => of_query(query),
        body => of_body(body)?,
    };
    if operation == Operation::CreateTaskPushNotificationConfig {
        members = config(members);
    }
    for (name, id) in ids {
        members.insert(name.to_owned(), id.into());
    }
    Ok(ConvertedCall::new(operation, members, Form::Proto))
}

type Found<'p> = (Operation, Vec<(&'static str, &'p str)>);

fn of<'p>(method: &str, segments: &[&'p str]) -> Option<Found<'p>> {
    use Operation::*;
    let found = match (method, segments) {
        ("POST", ["message:send"]) => (SendMessage, vec![]),
        ("POST", ["message:stream"]) => (SendStreamingMessage, vec![]),
        ("GET", ["card"]) => (GetExtendedAgentCard, vec![]),
        ("GET" | "POST", ["tasks", last]) if !last.is_empty() => match last.rsplit_once(':') {
            Some((id, "cancel")) if method == "POST" => (CancelTask, vec![("id", id)]),
            Some((id, "subscribe")) => (SubscribeToTask, vec![("id", id)]),
            None if method == "GET" => (GetTask, vec![("id", *last)]),
            Some(_) | None => return None,
        },
        (_, ["tasks", task, "pushNotificationConfigs"]) if !task.is_empty() => match method {
            "POST" => (CreateTaskPushNotificationConfig, vec![("taskId", *task)]),
            "GET" => (ListTaskPushNotificationConfigs, vec![("id", *task)]),
            _ => return None,
        },
        (_, ["tasks", task, "pushNotificationConfigs", id])
            if !task.is_empty() && !id.is_empty() =>
        {
            let ids = vec![("id", *task), ("pushNotificationConfigId", *id)];
            match method {
                "GET" => (GetTaskPushNotificationConfig, ids),
                "DELETE" => (DeleteTaskPushNotificationConfig, ids),
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(found)
}

/// The configuration of a body, which clients send alone, or as the member `config` of the whole request.
fn config(mut body: Map<String, Value>) -> Map<String, Value> {
    let id = body.remove("configId").or_else(|| body.remove("config_id"));
    let mut members = match body.remove("config") {
        Some(Value::Object(config)) => config,
        Some(other) => Map::from_iter([("pushNotificationConfig".to_owned(), other)]),
        None => body,
    };
    let config = members.get_mut("pushNotificationConfig");
    if let (Some(Value::Object(config)), Some(id)) = (config, id) {
        config.entry("id").or_insert(id);
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_path_is_an_operation() {
        use Operation::*;
        let configs = "/v1/tasks/t/pushNotificationConfigs";
        let one = "/v1/tasks/t/pushNotificationConfigs/c";
        for (method, path, operation, members) in [
            ("GET", "/v1/card", GetExtendedAgentCard, json!({})),
            ("GET", "/v1/tasks/t", GetTask, json!({"id": "t"})),
            ("POST", "/v1/tasks/t:cancel", CancelTask, json!({"id": "t"})),
            (
                "POST",
                "/v1/tasks/t%3Acancel",
                CancelTask,
                json!({"id": "t"}),
            ),
            (
                "GET",
                "/v1/tasks/t:subscribe",
                SubscribeToTask,
                json!({"id": "t"}),
            ),
            (
                "POST",
                "/v1/tasks/t:subscribe",
                SubscribeToTask,
                json!({"id": "t"}),
            ),
            (
                "GET",
                configs,
                ListTaskPushNotificationConfigs,
                json!({"taskId": "t", "pageSize": 100}),
            ),
            (
                "GET",
                one,
                GetTaskPushNotificationConfig,
                json!({"taskId": "t", "id": "c"}),
            ),
            (
                "DELETE",
                one,
                DeleteTaskPushNotificationConfig,
                json!({"taskId": "t", "id": "c"}),
            ),
        ] {
            let asked = asked(method, path, None, b"").expect("a path");
            assert_eq!(asked.operation, operation, "{method} {path}");
            assert_eq!(
                Value::Object(asked.given.members),
                members,
                "{method} {path}"
            );
        }
        for (method, path) in [
            ("GET", "/v1"),
            ("GET", "/v1/tasks"),
            ("GET", "/v1/message:send"),
            ("GET", "/v1/tasks/t:cancel"),
            ("DELETE", configs),
        ] {
            let refused = asked(method, path, None, b"").expect_err("nothing there");
            assert_eq!(refused.kind, ErrorKind::MethodNotFound, "{method} {path}");
        }
    }

    #[test]
    fn a_configuration_is_taken_alone_and_as_a_member() {
        let config = json!({"url": "https://a", "authentication": {"schemes": ["Bearer"]}});
        for body in [
            json!({"pushNotificationConfig": config}),
            json!({"parent": "tasks/t", "config": {"pushNotificationConfig": config}}),
        ] {
            let path = "/v1/tasks/t/pushNotificationConfigs";
            let asked = asked("POST", path, None, body.to_string().as_bytes()).expect("a path");
            let members = Value::Object(asked.given.members);
            assert_eq!(members["url"], "https://a", "{body}");
            assert_eq!(members["taskId"], "t", "{body}");
            assert_eq!(members["authentication"]["scheme"], "Bearer", "{body}");
        }
    }

    #[test]
    fn only_paths_below_the_version_are_meant() {
        for (path, expected) in [
            ("/v1", true),
            ("/v1/card", true),
            ("/v1x/tasks", false),
            ("/tasks/v1", false),
        ] {
            assert_eq!(is_meant(path), expected, "{path}");
        }
    }
}
