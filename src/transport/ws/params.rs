//! The parameters of the methods that only a socket has.

use crate::application::api::Watch;
use crate::subscription::cursor::Cursor;
use crate::subscription::notice::Kind as Notice;
use crate::subscription::stream::{From, Reset};
use crate::transport::jsonrpc::params::work::kinds::{
    LEASE_SECONDS_DEFAULT, MethodNames, NewName, lease_seconds,
};
use crate::transport::jsonrpc::reader::{
    Fault, Kind, Labels, Parameters, Reader, Refusal, TASK_ID, integer, text,
};
use serde_json::{Value, json};
use std::sync::Arc;
use taskledger_domain::Violation;
use taskledger_domain::limits::KEY_CHARS_MAX;

/// Characters of what may be meant as a cursor.
const LAST_EVENT_ID_CHARS_MAX: usize = 1024;
/// Unfinished claims of one subscription: as many handlers as one process may sensibly have.
const WINDOW_MAX: u64 = 1000;
/// The same, unless the worker says otherwise.
const WINDOW_DEFAULT: u64 = 10;
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
        let user = reader.optional("user", text(KEY_CHARS_MAX), "Only flows of this user.");
        let kinds = reader.optional("types", Types, "Only these types of events.");
        let from = reader.optional("from", Place, "Where to start; default: `now`.");
        let cursor = reader.optional(
            "last_event_id",
            text(LAST_EVENT_ID_CHARS_MAX),
            "The `id` of the last event that arrived; wins over `from`.",
        );
        let labels = reader.optional(
            "labels",
            Labels,
            "Only tasks with these labels: each key with the value that it must have, or null for any.",
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
                labels: labels.unwrap_or_default(),
            };
            Some(Self { watch, from, reset })
        })
    }
}

/// What `work` asks for.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    /// Tasks of these methods.
    pub(super) methods: Arc<[Arc<str>]>,
    /// Who works; absent for the name of the caller.
    pub(super) worker: Option<Arc<str>>,
    /// Unfinished claims at once.
    pub(super) window: usize,
    /// Milliseconds that the leases hold unless they are renewed.
    pub(super) lease_ms: u64,
}

impl Parameters for Work {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let methods = reader.required(
            "methods",
            MethodNames,
            "The methods whose tasks are wanted.",
        );
        let about = "The name of the worker; without it the name of the caller.";
        let worker = reader.optional("worker", NewName, about);
        let about =
            "Claims that may be unfinished at once; when one has ended, the next one comes.";
        let window = reader.with_default("window", integer(1..=WINDOW_MAX), WINDOW_DEFAULT, about);
        let lease_s = reader.with_default(
            "lease_seconds",
            lease_seconds(),
            LEASE_SECONDS_DEFAULT,
            "How long the leases hold unless they are renewed.",
        );
        reader.finish(|| {
            Some(Self {
                methods: methods?,
                worker,
                window: usize::try_from(window).unwrap_or(usize::MAX),
                lease_ms: lease_s * 1000,
            })
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
            let expected = "`beginning`, `now`, or a position, which is a whole number";
            Refusal::Here(Fault::new("not a position", expected.to_owned()))
        })
    }
}
