//! The JSON-RPC binding, and which calls at `/` are meant for it.

use crate::transport::jsonrpc::envelope::{Element, Envelope, Params};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use taskledger_a2a::{Error, ErrorKind, Operation};
use taskledger_domain::suggestion::suggestion;

/// What a body is.
pub(in super::super) enum Spoken {
    /// A call that can be tried.
    Call {
        /// The text of its id.
        id: Box<RawValue>,
        /// Which operation.
        operation: Operation,
        /// What it is asked with.
        members: Map<String, Value>,
    },
    /// None, and why; under its id, if it has one.
    Fault(Option<Box<RawValue>>, Error),
}

/// Whether a body at `/` is meant for this protocol: it calls one of its operations, or names the protocol in a
/// header and calls no method of this server's own, which have a dot.
pub(in super::super) fn is_meant(envelope: &Envelope, names_version: bool) -> bool {
    let mut is_own = false;
    for method in envelope.methods() {
        if Operation::of(method).is_some() {
            return true;
        }
        is_own |= method.contains('.');
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

/// What a body asks for.
pub(in super::super) fn spoken(envelope: Envelope) -> Spoken {
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
    let Some(operation) = Operation::of(&request.method) else {
        let name: String = request.method.chars().take(64).collect();
        let names = Operation::ALL.map(Operation::name);
        let reason = match suggestion(&name, names.into_iter()) {
            Some(near) => format!("there is no method `{name}`; did you mean `{near}`?"),
            None => format!("there is no method `{name}`: {} are", names.join(", ")),
        };
        return Spoken::Fault(Some(id), Error::new(ErrorKind::MethodNotFound, reason));
    };
    match request.params {
        Params::Named(members) => Spoken::Call {
            id,
            operation,
            members,
        },
        Params::Positional(list) if list.is_empty() => Spoken::Call {
            id,
            operation,
            members: Map::new(),
        },
        Params::Positional(_) => {
            let error = Error::invalid_member("", "`params` must be an object, not an array");
            Spoken::Fault(Some(id), error)
        }
    }
}

fn first_reason(data: &Value, otherwise: &str) -> String {
    let reason = data.pointer("/errors/0/reason").and_then(Value::as_str);
    reason.unwrap_or(otherwise).to_owned()
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
        // Method, meant without the header, meant with it.
        for (method, without, with) in [
            ("SendMessage", true, true),
            ("GetExtendedAgentCard", true, true),
            ("tasks.execute", false, false),
            ("message/send", false, true),
            ("Nonsense", false, true),
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
        let kind = |body: &str| match spoken(parse(body.as_bytes())) {
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
            match spoken(parse(body.as_bytes())) {
                Spoken::Fault(_, error) => error.to_string(),
                Spoken::Call { .. } => panic!("{method} is no method"),
            }
        };
        assert!(told("GetTsk").contains("did you mean `GetTask`?"));
        assert!(told("message/send").contains("SendMessage, "));
    }
}
