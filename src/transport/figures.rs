//! Counters of the doors: calls, refused requests, streams. Read by `crate::metrics`.
//!
//! Calls are counted in a table by method, outcome and door, which is made at the start: no name is
//! looked up when a call ends. A place of the table is filled when it is first used.

mod bindings;

pub use bindings::Binding;

use super::eventbus::Figures as Broker;
use super::jsonrpc::ErrorKind;
use crate::application::api::Denied;
use crate::meters::{Buckets, Counter, Histogram, Population, Presence, Reading};
use std::array::from_fn;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

/// The entrance by which a call of the server's methods has come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entrance {
    /// `POST` over HTTP.
    Http,
    /// A WebSocket.
    Socket,
    /// A program that holds the server in its own process.
    Process,
}

impl Entrance {
    /// All variants.
    pub const ALL: [Self; 3] = [Self::Http, Self::Socket, Self::Process];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Socket => "websocket",
            Self::Process => "process",
        }
    }
}

/// Why a request was refused as a whole, before there was a call to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The server has as many requests, or as many bytes of them, as it takes.
    Busy,
    /// The caller has as many of something as it may have: streams.
    Limited,
    /// The body is too large.
    Large,
    /// The body did not arrive in time.
    Slow,
    /// Its credentials do not hold, or it has none.
    Unauthorized,
}

impl Reason {
    /// All variants.
    pub const ALL: [Self; 5] = [
        Self::Busy,
        Self::Limited,
        Self::Large,
        Self::Slow,
        Self::Unauthorized,
    ];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Limited => "limited",
            Self::Large => "large",
            Self::Slow => "slow",
            Self::Unauthorized => "unauthorized",
        }
    }
}

/// The carriers of streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// Server-sent events.
    Sse,
    /// A subscription of a WebSocket.
    Socket,
}

impl Carrier {
    /// All variants.
    pub const ALL: [Self; 2] = [Self::Sse, Self::Socket];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sse => "sse",
            Self::Socket => "websocket",
        }
    }
}

/// Why the server ended a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEnd {
    /// Its client took nothing for too long.
    Slow,
    /// Its credentials do not hold any more.
    Revoked,
    /// The server stops.
    Drained,
}

impl StreamEnd {
    /// All variants.
    pub const ALL: [Self; 3] = [Self::Slow, Self::Revoked, Self::Drained];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Slow => "slow",
            Self::Revoked => "revoked",
            Self::Drained => "drained",
        }
    }
}

/// The method of a call that names none of the table, and of what is no call.
pub const OTHER_METHOD: &str = "_OTHER";
/// The outcome of a call that was carried out.
pub const OK: &str = "OK";
/// The outcome of a call with an error that is not in the table of errors.
const OTHER_CODE: &str = "_OTHER";

/// Outcomes: success, the rows of the table of errors, anything else.
const OUTCOMES: usize = ErrorKind::ALL.len() + 2;

/// Calls by method, outcome and door.
#[derive(Debug)]
struct Calls {
    /// The last one stands for all others.
    methods: Vec<&'static str>,
    /// One for each method, outcome and door, in this order.
    durations: Box<[OnceLock<Box<Histogram>>]>,
}

/// A listener, of which there may be several.
#[derive(Debug)]
struct Listening {
    connections: TaskTracker,
    requests: Arc<Semaphore>,
    requests_max: usize,
}

/// The counters of a server's doors. One per server.
#[derive(Debug)]
pub struct Figures {
    calls: Calls,
    /// Of the other protocols.
    of_bindings: bindings::Calls,
    refused: [Counter; Reason::ALL.len()],
    denied: [Counter; Denied::REASONS.len()],
    streams: [Population; Carrier::ALL.len()],
    notices: [Counter; Carrier::ALL.len()],
    streams_ended: [Counter; StreamEnd::ALL.len()],
    broker: Broker,
    listening: Mutex<Vec<Listening>>,
}

/// Calls with one method, one outcome, through one door.
#[derive(Debug, Clone, PartialEq)]
pub struct CallsRead {
    /// The method, or [`OTHER_METHOD`].
    pub method: &'static str,
    /// [`OK`], the code of an error, or `_OTHER`.
    pub code: String,
    /// The word for the door: of an [`Entrance`] or a [`Binding`].
    pub door: &'static str,
    /// What they took.
    pub durations: Reading,
}

impl Figures {
    /// Nothing is counted yet; `methods` are those of the method table.
    #[must_use]
    pub fn new(methods: impl IntoIterator<Item = &'static str>) -> Self {
        let methods: Vec<_> = methods.into_iter().chain([OTHER_METHOD]).collect();
        let places = methods.len() * OUTCOMES * Entrance::ALL.len();
        Self {
            calls: Calls {
                durations: (0..places).map(|_| OnceLock::new()).collect(),
                methods,
            },
            of_bindings: bindings::Calls::default(),
            refused: from_fn(|_| Counter::default()),
            denied: from_fn(|_| Counter::default()),
            streams: from_fn(|_| Population::default()),
            notices: from_fn(|_| Counter::default()),
            streams_ended: from_fn(|_| Counter::default()),
            broker: Broker::default(),
            listening: Mutex::default(),
        }
    }

    /// Counts a call: the place of its method in the table, if it has one, and the code of its error, if
    /// it failed.
    pub(crate) fn call(
        &self,
        method: Option<usize>,
        error: Option<i64>,
        entrance: Entrance,
        took: Duration,
    ) {
        let last = self.calls.methods.len() - 1;
        let method = method.map_or(last, |method| method.min(last));
        let outcome = error.map_or(0, |code| {
            let row = ErrorKind::ALL.iter().position(|kind| kind.row().0 == code);
            row.map_or(OUTCOMES - 1, |row| row + 1)
        });
        let place = (method * OUTCOMES + outcome) * Entrance::ALL.len() + entrance as usize;
        let durations =
            self.calls.durations[place].get_or_init(|| Box::new(Histogram::new(&Buckets::CALLS)));
        durations.observe_time(took);
    }

    /// Counts a call of another protocol: the name of its method, and the gRPC code that its answer has, or
    /// that its protocol maps its error to.
    pub(crate) fn call_of_binding(
        &self,
        method: Option<&str>,
        code: tonic::Code,
        binding: Binding,
        took: Duration,
    ) {
        self.of_bindings.count(method, code, binding, took);
    }

    /// Calls that were counted, by method, outcome and door.
    pub fn calls(&self) -> impl Iterator<Item = CallsRead> {
        let filled = self.calls.durations.iter().enumerate();
        let own = filled.filter_map(|(place, durations)| {
            let (outer, entrance) = (place / Entrance::ALL.len(), place % Entrance::ALL.len());
            Some(CallsRead {
                durations: durations.get()?.read(),
                method: self.calls.methods[outer / OUTCOMES],
                code: code(outer % OUTCOMES),
                door: Entrance::ALL[entrance].as_str(),
            })
        });
        own.chain(self.of_bindings.read())
    }

    /// A request is refused with this status; those that break a rule of the protocol are not counted.
    pub(crate) fn refused_with(&self, status: u16) {
        let reason = match status {
            401 => Reason::Unauthorized,
            408 => Reason::Slow,
            413 => Reason::Large,
            429 => Reason::Limited,
            503 => Reason::Busy,
            _ => return,
        };
        self.refused(reason);
    }

    pub(crate) fn refused(&self, reason: Reason) {
        self.refused[reason as usize].increment();
    }

    /// Requests that were refused, by reason.
    pub fn refusals(&self) -> impl Iterator<Item = (Reason, u64)> {
        Reason::ALL
            .into_iter()
            .zip(self.refused.iter().map(Counter::get))
    }

    /// The credentials of a request are refused.
    pub(crate) fn denied(&self, why: Denied) {
        self.denied[why.number()].increment();
    }

    /// Requests whose credentials were refused, by reason.
    pub fn denials(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.denied.iter().map(Counter::get);
        Denied::REASONS.into_iter().zip(counts)
    }

    /// A stream begins; it goes on until what is returned is dropped.
    pub(crate) fn stream(&self, carrier: Carrier) -> Presence {
        self.streams[carrier as usize].enter()
    }

    pub(crate) fn noticed(&self, carrier: Carrier, notices: usize) {
        self.notices[carrier as usize].add(notices as u64);
    }

    pub(crate) fn stream_ended(&self, reason: StreamEnd, streams: u64) {
        self.streams_ended[reason as usize].add(streams);
    }

    /// Streams that are open, and notices that were sent, by what carries them.
    pub fn streams(&self) -> impl Iterator<Item = (Carrier, u64, u64)> {
        Carrier::ALL.into_iter().map(|carrier| {
            let index = carrier as usize;
            (
                carrier,
                self.streams[index].get(),
                self.notices[index].get(),
            )
        })
    }

    /// Streams that the server has ended, by reason.
    pub fn streams_ended(&self) -> impl Iterator<Item = (StreamEnd, u64)> {
        let counts = self.streams_ended.iter().map(Counter::get);
        StreamEnd::ALL.into_iter().zip(counts)
    }

    /// What the agent broker counts.
    #[must_use]
    pub const fn broker(&self) -> &Broker {
        &self.broker
    }

    /// A listener opens: its connections, and its room for requests.
    pub(crate) fn listens(&self, connections: TaskTracker, requests: Arc<Semaphore>) {
        let requests_max = requests.available_permits();
        let listening = Listening {
            connections,
            requests,
            requests_max,
        };
        let mut all = self
            .listening
            .lock()
            .expect("no code panics while it holds the listeners");
        all.push(listening);
    }

    /// Connections that are open, and requests that are being handled, on all listeners.
    #[must_use]
    pub fn load(&self) -> (usize, usize) {
        let all = self
            .listening
            .lock()
            .expect("no code panics while it holds the listeners");
        let connections = all.iter().map(|one| one.connections.len());
        let free = |one: &Listening| {
            one.requests_max
                .saturating_sub(one.requests.available_permits())
        };
        (connections.sum(), all.iter().map(free).sum())
    }
}

/// The words for an outcome.
fn code(outcome: usize) -> String {
    let Some(row) = outcome.checked_sub(1) else {
        return OK.to_owned();
    };
    let kind = ErrorKind::ALL.get(row);
    kind.map_or_else(|| OTHER_CODE.to_owned(), |kind| kind.row().0.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_methods_and_codes_share_one_place() {
        let figures = Figures::new(["a", "b"]);
        for n in 0..10_000 {
            figures.call(None, Some(-32601), Entrance::Http, Duration::ZERO);
            figures.call(Some(5), Some(n), Entrance::Socket, Duration::ZERO);
        }
        figures.call(Some(1), None, Entrance::Process, Duration::from_secs(2));
        let read: Vec<_> = figures.calls().collect();
        let shown: Vec<_> = read
            .iter()
            .map(|r| (r.method, &*r.code, r.door, r.durations.count))
            .collect();
        assert_eq!(
            shown,
            [
                ("b", "OK", "process", 1),
                ("_OTHER", "-32601", "http", 10_000),
                ("_OTHER", "_OTHER", "websocket", 10_000),
            ]
        );
        assert_eq!(read[0].durations.sum, 2.0);
    }
}
