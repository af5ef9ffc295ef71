//! The parameters of the methods that only a socket has.

use crate::application::api::Watch;
use crate::subscription::cursor::Cursor;
use crate::subscription::notice::Kind as Notice;
use crate::subscription::stream::{From, Reset};
use crate::transport::jsonrpc::reader::{Fault, Kind, Parameters, Reader, Refusal, TASK_ID, text};
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger_domain::Violation;

/// Characters of a user's name.
const USER_CHARS_MAX: usize = 255;
/// Characters of what may be meant as a cursor.
const LAST_EVENT_ID_CHARS_MAX: usize = 1024;
/// Characters of the name of a subscription: a number.
const SUBSCRIPTION_CHARS_MAX: usize = 20;

/// What `subscribe` asks for.
#[derive(Debug)]
pub(crate) struct Subscribe {
    pub(super) watch: Watch,
    pub(super) from: From,
    /// What was given is no cursor.
    pub(super) reset: Option<Reset>,
}

impl Parameters for Subscribe {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let flow = reader.optional("flow", TASK_ID, "Only this flow, by its root's id.");
        let task = reader.optional("task", TASK_ID, "Only this task.");
        let user = reader.optional("user", text(USER_CHARS_MAX), "Only flows of this user.");
        let kinds = reader.optional("types", Types, "Only these types of events.");
        let from = reader.optional("from", Place, "Where to begin: `now` unless given.");
        let cursor = reader.optional(
            "last_event_id",
            text(LAST_EVENT_ID_CHARS_MAX),
            "The `id` of the last event that arrived; wins over `from`.",
        );
        reader.finish(|| {
            let (mut from, mut reset) = (from.unwrap_or(From::Now), None);
            match cursor.map(|text| Cursor::parse(&text)) {
                None => {}
                Some(Ok(cursor)) => from = From::Cursor(cursor),
                Some(Err(_)) => (from, reset) = (From::Now, Some(Reset::Malformed)),
            }
            let watch = Watch {
                flow: flow.map(|root| root.as_flow()),
                task,
                user: user.map(Arc::from),
                kinds,
            };
            Some(Self { watch, from, reset })
        })
    }
}

/// What `unsubscribe` ends.
#[derive(Debug)]
pub(crate) struct Unsubscribe {
    pub(super) subscription: String,
}

impl Parameters for Unsubscribe {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let name = text(SUBSCRIPTION_CHARS_MAX);
        let subscription = reader.required("subscription", name, "As `subscribe` has named it.");
        reader.finish(|| {
            Some(Self {
                subscription: subscription?,
            })
        })
    }
}

/// A list of types, or several in one text, separated by commas.
struct Types;

impl Kind for Types {
    type Out = Vec<Notice>;

    fn schema(&self) -> Value {
        json!({"type": ["array", "string"]})
    }

    fn parse(&self, value: &Value) -> Result<Vec<Notice>, Refusal> {
        let parsed: Option<Vec<Notice>> = match value {
            Value::String(list) => list.split(',').map(|n| Notice::parse(n.trim())).collect(),
            Value::Array(list) if !list.is_empty() => {
                list.iter().map(|n| Notice::parse(n.as_str()?)).collect()
            }
            Value::Array(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Object(_) => None,
        };
        parsed.ok_or_else(|| {
            let names = Notice::ALL.map(Notice::as_str).join(", ");
            Refusal::Here(Fault::new(
                "not a list of types",
                format!("a list of {names}"),
            ))
        })
    }
}

/// Where to begin.
struct Place;

impl Kind for Place {
    type Out = From;

    fn schema(&self) -> Value {
        json!({"type": ["string", "integer"]})
    }

    fn parse(&self, value: &Value) -> Result<From, Refusal> {
        let place = match value {
            Value::String(word) if word == "beginning" => Some(From::Beginning),
            Value::String(word) if word == "now" => Some(From::Now),
            Value::Number(number) => number.as_u64().map(From::Position),
            Value::String(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(_) => None,
        };
        place.ok_or_else(|| {
            let expected = "`beginning`, `now`, or the position of an event";
            Refusal::Here(Fault::new("not a place", expected.to_owned()))
        })
    }
}
