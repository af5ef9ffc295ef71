//! Decides which calls are answered with a stream, and how they ask for it.

use super::envelope::{Element, Envelope, Params, Request};
use super::error::RpcError;
use super::table::Method;
use serde_json::{Map, Value};
use taskledger_domain::Violation;

/// Methods that begin a run, whose callers may ask for its stream.
const FOLLOWED: [&str; 2] = ["tasks.execute", "tasks.retry"];
/// Methods that are always answered with a stream.
const SUBSCRIPTIONS: [&str; 2] = ["tasks.subscribe", "tasks.resubscribe"];
/// Methods that only a socket has, because they speak of its own subscriptions.
pub const OF_SOCKETS: [&str; 3] = ["subscribe", "unsubscribe", WORK];
/// The one of them that asks for work.
pub const WORK: &str = "work";

/// The parameter that asks for a stream.
const USE_STREAMING: &str = "use_streaming";
/// The member of `metadata` that asks for a stream.
pub(super) const STREAM: &str = "stream";

/// How a call asks for a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamRequest {
    /// With the parameter [`USE_STREAMING`].
    Parameter,
    /// With the member [`STREAM`] of `metadata`.
    Metadata,
    /// By its method.
    Method,
}

impl StreamRequest {
    /// What a call asks for, which is taken out of it: what is carried out, perhaps on another node and
    /// perhaps twice, is the call without it.
    pub(super) fn take(
        method: &str,
        params: &mut Map<String, Value>,
        metadata: Option<&mut Map<String, Value>>,
    ) -> Option<Self> {
        if SUBSCRIPTIONS.contains(&method) {
            return Some(Self::Method);
        }
        if !FOLLOWED.contains(&method) {
            return None;
        }
        // `false` goes too: it says what its absence says. What is no boolean stays, to be refused.
        let take = |from: &mut Map<String, Value>, name: &str| {
            let asked = from.get(name).and_then(Value::as_bool);
            if asked.is_some() {
                from.remove(name);
            }
            asked == Some(true)
        };
        let by_metadata = metadata.is_some_and(|metadata| take(metadata, STREAM));
        let by_parameter = take(params, USE_STREAMING);
        if by_parameter {
            Some(Self::Parameter)
        } else {
            by_metadata.then_some(Self::Metadata)
        }
    }

    /// The refusal of a stream where there can be none.
    pub(super) fn refused(self, method: &str, reason: &str, expected: &str) -> RpcError {
        let (path, actual): (&[_], Value) = match self {
            Self::Parameter => (&[USE_STREAMING.into()], true.into()),
            Self::Metadata => (&["metadata".into(), STREAM.into()], true.into()),
            Self::Method => (&["method".into()], method.into()),
        };
        vec![Violation::new(path, reason, expected, &actual)].into()
    }
}

/// Whether the calls of a method begin a run.
#[must_use]
pub fn begins_run(method: &str) -> bool {
    FOLLOWED.contains(&method)
}

/// Whether this is a call that will be answered with a stream unless it is refused.
pub(super) fn is_asked_for<C>(envelope: &Envelope, methods: &[Method<C>]) -> bool {
    let Envelope::Single(Element::Request(request)) = envelope else {
        return false;
    };
    let Request {
        method,
        params,
        metadata,
        ..
    } = &**request;
    if request.id.is_none() {
        return false;
    }
    if SUBSCRIPTIONS.contains(&method.as_str()) {
        return true;
    }
    if !FOLLOWED.contains(&method.as_str()) {
        return false;
    }
    let given = match params {
        Params::Named(map) => map.get(USE_STREAMING),
        Params::Positional(values) => methods
            .iter()
            .find(|row| row.name == method)
            .and_then(|row| {
                row.params
                    .questions
                    .iter()
                    .position(|q| q.name == USE_STREAMING)
            })
            .and_then(|at| values.get(at)),
    };
    let metadata = metadata.as_ref().and_then(|metadata| metadata.get(STREAM));
    [given, metadata].contains(&Some(&Value::Bool(true)))
}
