//! The JSON-RPC binding of Agent2Agent, and how calls at `/` are recognized as meant for it.

use crate::transport::jsonrpc::envelope::{Element, Envelope, Params};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use taskledger_a2a::{Error, ErrorKind, Operation, v03};
use taskledger_domain::json::place;
use taskledger_domain::suggestion::suggestion;

/// What a body is.
pub(in super::super) enum Spoken {
    /// A call that can be tried.
    Call {
        /// The text of its id.
        id: Box<RawValue>,
        /// What is asked for.
        meant: Meant,
    },
    /// None, and why; under its id, if it has one.
    Fault(Option<Box<RawValue>>, Error),
}

/// What a call asks for, by the version that its method belongs to.
pub(in super::super) enum Meant {
    /// 1.0: an operation, and what it is asked with.
    V1(Operation, Map<String, Value>),
    /// 0.3.
    V03(v03::ConvertedCall),
}

/// Whether a body at `/` is meant for this protocol: it calls one of its operations or misspells one, a method with a
/// slash where 0.3 is served, or names the protocol in a header and calls no method of this server's own, which have a
/// dot.
pub(in super::super) fn is_meant(envelope: &Envelope, names_version: bool, older: bool) -> bool {
    let mut is_own = false;
    for method in envelope.methods() {
        if Operation::of(method).is_some() || (older && v03::is_method(method)) {
            return true;
        }
        is_own |= method.contains('.');
        if !is_own && suggestion(method, Operation::ALL.map(Operation::name).into_iter()).is_some()
        {
            return true;
        }
    }
    names_version && !is_own
}

/// The id of a single call.
pub(in super::super) fn id_of(envelope: &Envelope) -> Option<&RawValue> {
    match envelope {
        Envelope::Single(Element::Request(request)) => request.id.as_deref(),
        Envelope::Single(Element::Invalid { id, .. }) => id.as_deref(),
        Envelope::Batch(_) | Envelope::Refused(_) => None,
    }
}

/// What a body asks for; `older`: of version 0.3 too.
pub(in super::super) fn spoken(envelope: Envelope, older: bool) -> Spoken {
    let request = match envelope {
        Envelope::Refused(error) => {
            let kind = match error.code {
                -32700 => ErrorKind::Parse,
                _ => ErrorKind::InvalidRequest,
            };
            return Spoken::Fault(
                None,
                Error::new(kind, first_reason(&error.data, error.message)),
            );
        }
        Envelope::Batch(_) => {
            let reason = "batches are not part of the protocol; send one call in a request";
            return Spoken::Fault(None, Error::new(ErrorKind::InvalidRequest, reason));
        }
        Envelope::Single(Element::Invalid { id, error, .. }) => {
            let reason = first_reason(&error.data, error.message);
            return Spoken::Fault(id, Error::new(ErrorKind::InvalidRequest, reason));
        }
        Envelope::Single(Element::Request(request)) => *request,
    };
    let Some(id) = request.id else {
        let reason = "an `id` is required; the protocol has no notifications";
        return Spoken::Fault(None, Error::new(ErrorKind::InvalidRequest, reason));
    };
    if let Some(fault) = request.faults.first() {
        return Spoken::Fault(
            Some(id),
            Error::invalid_member(place(&fault.path), &*fault.reason),
        );
    }
    let members = match request.params {
        Params::Named(members) => Some(members),
        Params::Positional(list) if list.is_empty() => Some(Map::new()),
        Params::Positional(_) => None,
    };
    let method = &request.method;
    let no_object = || Error::invalid_member("", "`params` must be an object, not an array");
    let meant = if older && v03::is_method(method) {
        match v03::operation(method) {
            Some(_) => members
                .and_then(|it| v03::ConvertedCall::of_method(method, it))
                .map(Meant::V03)
                .ok_or_else(no_object),
            None => Err(no_method(method, &v03::methods())),
        }
    } else {
        match Operation::of(method) {
            Some(operation) => members
                .map(|it| Meant::V1(operation, it))
                .ok_or_else(no_object),
            None => Err(no_method(method, &Operation::ALL.map(Operation::name))),
        }
    };
    match meant {
        Ok(meant) => Spoken::Call { id, meant },
        Err(error) => Spoken::Fault(Some(id), error),
    }
}

fn no_method(method: &str, names: &[&str]) -> Error {
    let name: String = method.chars().take(64).collect();
    let reason = match suggestion(&name, names.iter().copied()) {
        Some(near) => format!("unknown method `{name}`; did you mean `{near}`?"),
        None => format!(
            "unknown method `{name}`; expected one of {}",
            names.join(", ")
        ),
    };
    Error::new(ErrorKind::MethodNotFound, reason)
}

fn first_reason(data: &Value, otherwise: &str) -> String {
    let Some(first) = data.pointer("/errors/0") else {
        return otherwise.to_owned();
    };
    let text = |name: &str| first.get(name).and_then(Value::as_str).unwrap_or_default();
    let (field, reason, expected) = (text("field"), text("reason"), text("expected"));
    format!("`{field}`: {reason}, expected {expected}")
}

/// The text of an id; that of none is null.
fn id_text(id: Option<&RawValue>) -> &str {
    id.map_or("null", RawValue::get)
}

/// The answer with a result.
pub(in super::super) fn success(id: &RawValue, result: &Value) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id.get()).into_bytes()
}

/// The answer with an error.
pub(in super::super) fn failure(id: Option<&RawValue>, error: &Error) -> Vec<u8> {
    taskledger_a2a::event::failed_rpc_line(id_text(id), &error.to_rpc()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::jsonrpc::envelope::parse;

    #[test]
    fn the_dialect_is_told_by_the_method_and_else_by_the_header() {
        let call = |method: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
        let is_meant = |envelope: &Envelope, names| super::is_meant(envelope, names, false);
        // Method, meant without the header, meant with it.
        for (method, without, with) in [
            ("SendMessage", true, true),
            ("GetExtendedAgentCard", true, true),
            ("tasks.execute", false, false),
            ("message/send", false, true),
            ("Nonsense", false, true),
            ("SendMessag", true, true),
        ] {
            let body = call(method);
            assert_eq!(
                is_meant(&parse(body.as_bytes()), false),
                without,
                "{method}"
            );
            assert_eq!(is_meant(&parse(body.as_bytes()), true), with, "{method}");
        }
        for broken in ["", "{", "[]", "7"] {
            assert!(!is_meant(&parse(broken.as_bytes()), false), "{broken}");
            assert!(is_meant(&parse(broken.as_bytes()), true), "{broken}");
        }
        // What is no request is told in the dialect of the method that it names.
        let odd =
            |method: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":7}}"#);
        assert!(!is_meant(&parse(odd("tasks.get").as_bytes()), true));
        assert!(is_meant(&parse(odd("GetTask").as_bytes()), false));
        let batch = format!("[{},{}]", call("tasks.get"), call("GetTask"));
        assert!(is_meant(&parse(batch.as_bytes()), false));
    }

    #[test]
    fn what_is_no_call_has_the_error_of_the_protocol() {
        let kind = |body: &str| match spoken(parse(body.as_bytes()), false) {
            Spoken::Fault(_, error) => Some(error.kind),
            Spoken::Call { .. } => None,
        };
        for (body, expected) in [
            ("{", Some(ErrorKind::Parse)),
            ("7", Some(ErrorKind::InvalidRequest)),
            (
                r#"{"jsonrpc":"1.0","id":1,"method":"GetTask"}"#,
                Some(ErrorKind::InvalidRequest),
            ),
            (
                r#"{"jsonrpc":"2.0","method":"GetTask"}"#,
                Some(ErrorKind::InvalidRequest),
            ),
            (
                r#"[{"jsonrpc":"2.0","id":1,"method":"GetTask"}]"#,
                Some(ErrorKind::InvalidRequest),
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"getTask"}"#,
                Some(ErrorKind::MethodNotFound),
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"message/send"}"#,
                Some(ErrorKind::MethodNotFound),
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":["x"]}"#,
                Some(ErrorKind::InvalidParams),
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask"}"#, None),
        ] {
            assert_eq!(kind(body), expected, "{body}");
        }
    }

    #[test]
    fn an_unknown_method_is_answered_with_the_one_that_was_meant() {
        let told = |method: &str| {
            let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
            match spoken(parse(body.as_bytes()), false) {
                Spoken::Fault(_, error) => error.to_string(),
                Spoken::Call { .. } => panic!("{method} is no method"),
            }
        };
        assert!(told("GetTsk").contains("did you mean `GetTask`?"));
        assert!(told("message/send").contains("SendMessage, "));
    }

    #[test]
    fn methods_with_a_slash_are_those_of_0_3_where_it_is_served() {
        let body = |method: &str| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
            parse(text.as_bytes())
        };
        for (method, meant) in [
            ("message/send", true),
            ("tasks/sent", true),
            ("tasks.get", false),
        ] {
            assert_eq!(is_meant(&body(method), false, true), meant, "{method}");
            assert!(!is_meant(&body(method), false, false), "{method}");
        }
        let operation = |method: &str| match spoken(body(method), true) {
            Spoken::Call { meant, .. } => match meant {
                Meant::V03(asked) => Ok((asked.operation, "0.3")),
                Meant::V1(operation, _) => Ok((operation, "1.0")),
            },
            Spoken::Fault(_, error) => Err(error.to_string()),
        };
        let get = Operation::GetTask;
        assert_eq!(operation("tasks/get"), Ok((get, "0.3")));
        assert_eq!(operation("GetTask"), Ok((get, "1.0")));
        let told = operation("tasks/gte").expect_err("no method");
        assert!(told.contains("did you mean `tasks/get`?"), "{told}");
    }
}
