//! The HTTP+JSON binding: it turns method, path, query and body into an operation and its members.

use serde_json::{Map, Value};
use taskledger_a2a::{Error, ErrorKind, Operation};
use taskledger_domain::json::{self, Unread};
use taskledger_domain::suggestion::suggestion;
use url::form_urlencoded;

/// What a request asks for.
#[derive(Debug, PartialEq)]
pub(in super::super) struct RestCall {
    /// Which operation.
    pub(in super::super) operation: Operation,
    /// Members that the path says.
    path: Vec<(&'static str, String)>,
}

/// The operation of a path below the root of the binding.
///
/// # Errors
/// `MethodNotFound`.
pub(in super::super) fn asked(method: &str, path: &str) -> Result<RestCall, Error> {
    let segments: Vec<String> = path
        .trim_start_matches('/')
        .split('/')
        .map(decoded)
        .collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let found = of(method, &segments).or_else(|| match segments.as_slice() {
        // The same paths exist below the name of a tenant.
        [tenant, rest @ ..] if !tenant.is_empty() && !rest.is_empty() => {
            let mut asked = of(method, rest)?;
            asked.path.push(("tenant", (*tenant).to_owned()));
            Some(asked)
        }
        _ => None,
    });
    found.ok_or_else(|| {
        let path: String = path.chars().take(128).collect();
        let meant = segments.last().and_then(|last| meant(last));
        let meant = meant.map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
        Error::new(
            ErrorKind::MethodNotFound,
            format!("there is nothing at {method} {path}{meant}"),
        )
    })
}

/// The end of a path that was probably meant.
fn meant(last: &str) -> Option<String> {
    const ENDS: [&str; 5] = [
        "message:send",
        "message:stream",
        "tasks",
        "extendedAgentCard",
        "pushNotificationConfigs",
    ];
    let end = suggestion(last, ENDS.into_iter()).map(str::to_owned);
    let verb = || {
        let (task, verb) = last.split_once(':')?;
        let verb = suggestion(verb, ["cancel", "subscribe"].into_iter())?;
        Some(format!("{task}:{verb}"))
    };
    end.or_else(verb).filter(|meant| meant != last)
}

fn of(method: &str, segments: &[&str]) -> Option<RestCall> {
    use Operation::*;
    let asked = |operation, path: &[(&'static str, &str)]| {
        let path = path
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        Some(RestCall {
            operation,
            path: path.collect(),
        })
    };
    match (method, segments) {
        ("POST", ["message:send"]) => asked(SendMessage, &[]),
        ("POST", ["message:stream"]) => asked(SendStreamingMessage, &[]),
        ("GET", ["tasks"]) => asked(ListTasks, &[]),
        ("GET", ["extendedAgentCard"]) => asked(GetExtendedAgentCard, &[]),
        ("GET" | "POST", ["tasks", last]) if !last.is_empty() => match last.rsplit_once(':') {
            Some((id, "cancel")) if method == "POST" => asked(CancelTask, &[("id", id)]),
            Some((id, "subscribe")) => asked(SubscribeToTask, &[("id", id)]),
            None if method == "GET" => asked(GetTask, &[("id", last)]),
            Some(_) | None => None,
        },
        (_, ["tasks", task, "pushNotificationConfigs"]) if !task.is_empty() => match method {
            "POST" => asked(CreateTaskPushNotificationConfig, &[("taskId", task)]),
            "GET" => asked(ListTaskPushNotificationConfigs, &[("taskId", task)]),
            _ => None,
        },
        (_, ["tasks", task, "pushNotificationConfigs", id])
            if !task.is_empty() && !id.is_empty() =>
        {
            let path = [("taskId", *task), ("id", *id)];
            match method {
                "GET" => asked(GetTaskPushNotificationConfig, &path),
                "DELETE" => asked(DeleteTaskPushNotificationConfig, &path),
                _ => None,
            }
        }
        _ => None,
    }
}

impl RestCall {
    /// The members of the request: those of the body or the query, and those of the path.
    ///
    /// # Errors
    /// `Parse`: the body is no JSON; `InvalidParams`: it says another id than the path.
    pub(in super::super) fn members(
        &self,
        query: Option<&str>,
        body: &[u8],
    ) -> Result<Map<String, Value>, Error> {
        let mut members = match body {
            [] => of_query(query),
            body => of_body(body)?,
        };
        for (name, value) in &self.path {
            let snake = taskledger_a2a::read::snake_of(name);
            let before = [members.remove(*name), members.remove(&snake)];
            for said in before.into_iter().flatten() {
                let is_same = said.as_str().is_none_or(|it| it.is_empty() || it == value);
                let is_text = said.is_null() || said.is_string();
                if !(is_same && is_text) {
                    let reason = format!("the path says `{value}`");
                    return Err(Error::invalid_member(*name, reason));
                }
            }
            members.insert((*name).to_owned(), Value::from(&**value));
        }
        Ok(members)
    }
}

/// The members of a body.
///
/// # Errors
/// `Parse`: it is no JSON; `InvalidParams`: it is no object, or has an integer beyond 64 bits.
pub(super) fn of_body(body: &[u8]) -> Result<Map<String, Value>, Error> {
    match json::read(body) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(Error::invalid_member("", "the body must be a JSON object")),
        Err(Unread::Json(error)) => Err(Error::new(ErrorKind::Parse, error.to_string())),
        Err(Unread::Reserved) => Err(Error::invalid_member(json::RESERVED_NAME, json::RESERVED)),
        Err(Unread::Large(large)) => Err(Error::invalid_member(
            json::place(&large.path),
            json::TOO_LARGE,
        )),
    }
}

/// Members of a query; those that are flags are written as texts there.
pub(super) fn of_query(query: Option<&str>) -> Map<String, Value> {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs
        .map(|(name, value)| {
            let value = match (&*name, &*value) {
                ("includeArtifacts" | "include_artifacts", "true") => Value::Bool(true),
                ("includeArtifacts" | "include_artifacts", "false") => Value::Bool(false),
                _ => Value::from(&*value),
            };
            (name.into_owned(), value)
        })
        .collect()
}

/// The version in a query.
pub(in super::super) fn version(query: Option<&str>) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let found = pairs.find(|(name, _)| name.eq_ignore_ascii_case(taskledger_a2a::headers::VERSION));
    found.map(|(_, value)| value.into_owned())
}

/// A segment of a path without its escapes.
pub(super) fn decoded(segment: &str) -> String {
    let bytes = segment.as_bytes();
    let digit = |at: usize| {
        let digit = bytes.get(at).and_then(|it| char::from(*it).to_digit(16));
        digit.and_then(|it| u8::try_from(it).ok())
    };
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                plain.push(high * 16 + low);
                at += 3;
            }
            (byte, _, _) => {
                plain.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_path_is_an_operation_with_or_without_a_tenant() {
        use Operation::*;
        let configs = "/tasks/t/pushNotificationConfigs";
        for (method, path, operation, said) in [
            ("POST", "/message:send", SendMessage, vec![]),
            ("POST", "/message:stream", SendStreamingMessage, vec![]),
            ("GET", "/tasks", ListTasks, vec![]),
            ("GET", "/tasks/t", GetTask, vec![("id", "t")]),
            ("POST", "/tasks/t:cancel", CancelTask, vec![("id", "t")]),
            ("POST", "/tasks/t%3Acancel", CancelTask, vec![("id", "t")]),
            (
                "POST",
                "/tasks/t:subscribe",
                SubscribeToTask,
                vec![("id", "t")],
            ),
            (
                "GET",
                "/tasks/t:subscribe",
                SubscribeToTask,
                vec![("id", "t")],
            ),
            (
                "POST",
                configs,
                CreateTaskPushNotificationConfig,
                vec![("taskId", "t")],
            ),
            (
                "GET",
                configs,
                ListTaskPushNotificationConfigs,
                vec![("taskId", "t")],
            ),
            (
                "GET",
                "/tasks/t/pushNotificationConfigs/c",
                GetTaskPushNotificationConfig,
                vec![("taskId", "t"), ("id", "c")],
            ),
            (
                "DELETE",
                "/tasks/t/pushNotificationConfigs/c",
                DeleteTaskPushNotificationConfig,
                vec![("taskId", "t"), ("id", "c")],
            ),
            ("GET", "/extendedAgentCard", GetExtendedAgentCard, vec![]),
        ] {
            let expected = |tenant: Option<&str>| {
                let tenant = tenant.map(|it| ("tenant", it));
                let path = said.iter().copied().chain(tenant);
                RestCall {
                    operation,
                    path: path.map(|(name, value)| (name, value.to_owned())).collect(),
                }
            };
            assert_eq!(asked(method, path), Ok(expected(None)), "{method} {path}");
            let below = format!("/acme{path}");
            assert_eq!(asked(method, &below), Ok(expected(Some("acme"))), "{below}");
        }
        for (method, path) in [
            ("GET", "/"),
            ("GET", "/message:send"),
            ("POST", "/tasks"),
            ("GET", "/tasks/"),
            ("GET", "/tasks/t:cancel"),
            ("POST", "/tasks/t:purge"),
            ("PUT", "/tasks/t"),
            ("DELETE", "/tasks/t/pushNotificationConfigs"),
        ] {
            let refused = asked(method, path).expect_err("nothing there");
            assert_eq!(refused.kind, ErrorKind::MethodNotFound, "{method} {path}");
            assert!(!refused.to_string().contains("did you mean"), "{refused}");
        }
        for (path, meant) in [
            ("/message:sen", "message:send"),
            ("/acme/message:steam", "message:stream"),
            ("/tasks/t:cancle", "t:cancel"),
        ] {
            let refused = asked("POST", path).expect_err("nothing there").to_string();
            assert!(
                refused.ends_with(&format!("did you mean `{meant}`?")),
                "{refused}"
            );
        }
    }

    #[test]
    fn path_query_and_body_become_members() {
        let list = asked("GET", "/tasks").expect("a path");
        let members = list.members(
            Some("pageSize=2&includeArtifacts=true&contextId=a%20b"),
            b"",
        );
        let expected = json!({"pageSize": "2", "includeArtifacts": true, "contextId": "a b"});
        assert_eq!(members.map(Value::Object), Ok(expected));
        let cancel = asked("POST", "/tasks/t:cancel").expect("a path");
        for same in ["", "{}", r#"{"id":"t"}"#, r#"{"id":""}"#] {
            let members = cancel.members(None, same.as_bytes());
            assert_eq!(members.map(Value::Object), Ok(json!({"id": "t"})), "{same}");
        }
        for (bad, kind) in [
            (r#"{"id":"u"}"#, ErrorKind::InvalidParams),
            (r#"{"id":7}"#, ErrorKind::InvalidParams),
            ("[]", ErrorKind::InvalidParams),
            ("{", ErrorKind::Parse),
        ] {
            let refused = cancel.members(None, bad.as_bytes()).expect_err("refused");
            assert_eq!(refused.kind, kind, "{bad}");
        }
    }
}
