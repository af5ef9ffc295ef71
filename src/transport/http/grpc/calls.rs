//! The names of a service's calls, and how long each may last.

use super::Of;
use crate::transport::eventbus::CALLS;
use crate::transport::figures::Binding;
use taskledger_a2a::{Operation, v03};
use taskledger_domain::suggestion::suggestion;
use tonic::Status;

/// Begins the names of calls that are answered with a stream.
const STREAMS: &str = "SubscribeTo";

/// The answer to a call that the service does not have, with the name that was probably meant.
pub(super) fn unknown_call(of: Of, call: &str) -> Option<Status> {
    let (a2a, a2a_v03) = (Operation::ALL.map(Operation::name), v03::calls());
    let names = match of {
        Of::A2a => &a2a[..],
        Of::A2aV03 => &a2a_v03[..],
        Of::Bus => &CALLS[..],
        // They answer for themselves.
        Of::Health | Of::Reflection | Of::ReflectionAlpha => return None,
    };
    if names.contains(&call) {
        return None;
    }
    let name: String = call.chars().take(64).collect();
    let told = match suggestion(&name, names.iter().copied()) {
        Some(near) => format!("unknown method `{name}`; did you mean `{near}`?"),
        None => format!(
            "unknown method `{name}`; expected one of {}",
            names.join(", ")
        ),
    };
    Some(Status::unimplemented(told))
}

/// The binding and the method under which a call is counted; `None`: one that the service does not have. A call of
/// version 0.3 is counted as that of 1.0 that it leads to.
pub(super) fn counted_as(of: Of, call: &str) -> (Binding, Option<&'static str>) {
    match of {
        Of::A2a => (Binding::A2aGrpc, Operation::of(call).map(Operation::name)),
        Of::A2aV03 => {
            let operation = v03::operation_of_call(call);
            (Binding::A2aGrpc, operation.map(Operation::name))
        }
        Of::Bus | Of::Health | Of::Reflection | Of::ReflectionAlpha => {
            let name = CALLS.into_iter().find(|name| *name == call);
            (Binding::EventBus, name)
        }
    }
}

/// How long a call lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lasting {
    /// As long as other calls, at most.
    Call,
    /// Until a run has ended, or waits.
    Waits,
    /// It is answered with a stream.
    Stream,
}

impl Lasting {
    pub(super) fn of(of: Of, call: &str) -> Self {
        let streams = match of {
            Of::Bus => call.starts_with(STREAMS),
            Of::A2a | Of::A2aV03 => {
                let operation = match of {
                    Of::A2aV03 => v03::operation_of_call(call),
                    Of::A2a | Of::Bus | Of::Health | Of::Reflection | Of::ReflectionAlpha => {
                        Operation::of(call)
                    }
                };
                match operation {
                    Some(Operation::SendMessage) => return Self::Waits,
                    Some(operation) => operation.streams(),
                    None => false,
                }
            }
            Of::Health | Of::Reflection | Of::ReflectionAlpha => false,
        };
        if streams { Self::Stream } else { Self::Call }
    }
}
