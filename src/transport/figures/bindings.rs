//! Counters for the protocols beside the server's own: Agent2Agent in its three bindings, and the EventBus.
//!
//! Their outcomes are the 17 codes of gRPC, to which Agent2Agent maps its errors in every binding.

use super::{CallsRead, OTHER_METHOD};
use crate::meters::{Buckets, Histogram};
use crate::transport::a2a::ARTIFACTS_CALL;
use crate::transport::eventbus::CALLS;
use std::sync::OnceLock;
use std::time::Duration;
use taskledger_a2a::Operation;
use tonic::Code;

/// A protocol and how it is carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// Agent2Agent as JSON-RPC.
    A2aRpc,
    /// Agent2Agent as HTTP+JSON.
    A2aRest,
    /// Agent2Agent as gRPC.
    A2aGrpc,
    /// The EventBus, which is gRPC.
    EventBus,
}

impl Binding {
    /// All variants.
    pub const ALL: [Self; 4] = [Self::A2aRpc, Self::A2aRest, Self::A2aGrpc, Self::EventBus];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::A2aRpc => "a2a_jsonrpc",
            Self::A2aRest => "a2a_rest",
            Self::A2aGrpc => "a2a_grpc",
            Self::EventBus => "eventbus",
        }
    }
}

/// The codes of gRPC by their numbers; that of success is the word for it of all doors.
const CODES: [&str; 17] = [
    super::OK,
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// Methods of all bindings; [`OTHER_METHOD`] is the last.
const METHODS: usize = Operation::ALL.len() + CALLS.len() + 2;

/// Calls by method, code and binding.
#[derive(Debug)]
pub(super) struct Calls {
    methods: [&'static str; METHODS],
    /// One for each method, code and binding, in this order. Filled when it is first used.
    durations: Box<[OnceLock<Box<Histogram>>]>,
}

impl Default for Calls {
    fn default() -> Self {
        let known = Operation::ALL.iter().map(|it| it.name()).chain(CALLS);
        let mut methods = [OTHER_METHOD; METHODS];
        for (place, name) in methods.iter_mut().zip(known.chain([ARTIFACTS_CALL])) {
            *place = name;
        }
        let places = METHODS * CODES.len() * Binding::ALL.len();
        Self {
            methods,
            durations: (0..places).map(|_| OnceLock::new()).collect(),
        }
    }
}

impl Calls {
    pub(super) fn count(&self, method: Option<&str>, code: Code, binding: Binding, took: Duration) {
        let found = method.and_then(|name| self.methods.iter().position(|it| *it == name));
        let method = found.unwrap_or(METHODS - 1);
        let place = (method * CODES.len() + code as usize) * Binding::ALL.len() + binding as usize;
        let durations =
            self.durations[place].get_or_init(|| Box::new(Histogram::new(&Buckets::CALLS)));
        durations.observe_time(took);
    }

    pub(super) fn read(&self) -> impl Iterator<Item = CallsRead> {
        let filled = self.durations.iter().enumerate();
        filled.filter_map(|(place, durations)| {
            let (outer, binding) = (place / Binding::ALL.len(), place % Binding::ALL.len());
            Some(CallsRead {
                durations: durations.get()?.read(),
                method: self.methods[outer / CODES.len()],
                code: CODES[outer % CODES.len()].to_owned(),
                door: Binding::ALL[binding].as_str(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_its_own_name_and_made_up_methods_share_one_place() {
        let calls = Calls::default();
        for n in 0..1000 {
            let made_up = format!("MadeUp{n}");
            calls.count(
                Some(&made_up),
                Code::Unimplemented,
                Binding::A2aGrpc,
                Duration::ZERO,
            );
        }
        calls.count(
            Some("GetTask"),
            Code::Ok,
            Binding::A2aRest,
            Duration::from_secs(2),
        );
        calls.count(
            Some("PublishTask"),
            Code::Unauthenticated,
            Binding::EventBus,
            Duration::ZERO,
        );
        calls.count(None, Code::Internal, Binding::A2aRpc, Duration::ZERO);
        let read: Vec<_> = calls.read().collect();
        let mut shown: Vec<_> = read
            .iter()
            .map(|it| (it.method, &*it.code, it.door, it.durations.count))
            .collect();
        shown.sort_unstable();
        assert_eq!(
            shown,
            [
                ("GetTask", "OK", "a2a_rest", 1),
                ("PublishTask", "UNAUTHENTICATED", "eventbus", 1),
                ("_OTHER", "INTERNAL", "a2a_jsonrpc", 1),
                ("_OTHER", "UNIMPLEMENTED", "a2a_grpc", 1000),
            ]
        );
        for (number, name) in CODES.iter().enumerate() {
            let code = Code::from_i32(i32::try_from(number).unwrap());
            assert_eq!(code as usize, number, "{name}");
            let shown = format!("{code:?}").to_uppercase();
            assert_eq!(name.replace('_', ""), shown);
        }
    }
}
