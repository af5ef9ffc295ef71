//! Counters of the broker: calls of agents, deliveries, streams. Read by `crate::metrics`.
//!
//! The words for topics and kinds of events are those of the public broker, so that its dashboards know them.

use crate::meters::{Buckets, Counter, FirstUse, Histogram, Population, Presence, Reading};
use std::array::from_fn;
use std::time::Duration;
use tonic::Code;

/// The broker, as the public one calls itself where it is monitored.
pub const SERVICE: &str = "agenthub-broker";
/// The kind of event of a task that was refused before its type was known to make sense: names that anybody can make
/// up must not take the places of others.
const UNKNOWN: &str = "unknown";
/// Between the two names of one series.
const AND: char = '\u{0}';

/// The topics of the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// The topic of new tasks.
    Tasks,
    /// How they ended.
    Results,
    /// How far they are.
    Progress,
}

impl Topic {
    /// All topics.
    pub const ALL: [Self; 3] = [Self::Tasks, Self::Results, Self::Progress];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tasks => "task_queue",
            Self::Results => "task_result_queue",
            Self::Progress => "task_progress_queue",
        }
    }

    /// What streams of it are of.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Tasks => "tasks",
            Self::Results => "results",
            Self::Progress => "progress",
        }
    }

    /// The kind of event of what is published; a task has its type.
    pub(super) const fn event(self) -> &'static str {
        match self {
            Self::Tasks => UNKNOWN,
            Self::Results => "task_result",
            Self::Progress => "task_progress",
        }
    }

    const fn delivery(self) -> &'static str {
        match self {
            Self::Tasks => "task_delivery",
            Self::Results => "task_result_delivery",
            Self::Progress => "task_progress_delivery",
        }
    }
}

/// Events of one kind.
#[derive(Debug)]
struct Events {
    succeeded: Counter,
    failed: Counter,
    durations: Histogram,
}

/// The counters of the broker. One per server.
#[derive(Debug)]
pub struct Figures {
    events: FirstUse<Events>,
    /// By kind of event and kind of error.
    errors: FirstUse<Counter>,
    /// By kind of event and agent.
    delivered: FirstUse<Counter>,
    publishing: [Histogram; Topic::ALL.len()],
    consuming: [Histogram; Topic::ALL.len()],
    streams: [Population; Topic::ALL.len()],
    redeliveries: Counter,
    connection_errors: Counter,
}

impl Default for Figures {
    fn default() -> Self {
        let histogram = || Histogram::new(&Buckets::CALLS);
        Self {
            events: FirstUse::new(|| Events {
                succeeded: Counter::default(),
                failed: Counter::default(),
                durations: Histogram::new(&Buckets::CALLS),
            }),
            errors: FirstUse::new(Counter::default),
            delivered: FirstUse::new(Counter::default),
            publishing: from_fn(|_| histogram()),
            consuming: from_fn(|_| histogram()),
            streams: from_fn(|_| Population::default()),
            redeliveries: Counter::default(),
            connection_errors: Counter::default(),
        }
    }
}

impl Figures {
    /// A call that published something has been answered.
    pub(super) fn published(&self, topic: Topic, event: &str, error: Option<Code>, took: Duration) {
        let event = match error {
            // What was not understood may say anything.
            Some(Code::InvalidArgument | Code::PermissionDenied) => topic.event(),
            Some(_) | None => event,
        };
        let events = self.events.of(event);
        events.durations.observe_time(took);
        self.publishing[topic as usize].observe_time(took);
        match error {
            None => events.succeeded.increment(),
            Some(code) => {
                events.failed.increment();
                let names = format!("{event}{AND}{}", error_type(code));
                self.errors.of(&names).increment();
            }
        }
    }

    /// A message was written to the stream of an agent, so long after there was something to tell.
    pub(super) fn delivered(&self, topic: Topic, event: &str, agent: &str, after: Duration) {
        self.events.of(topic.delivery()).succeeded.increment();
        self.consuming[topic as usize].observe_time(after);
        self.delivered
            .of(&format!("{event}{AND}{agent}"))
            .increment();
    }

    /// A task was delivered that an agent had held before.
    pub(super) fn redelivered(&self) {
        self.redeliveries.increment();
    }

    /// A stream is open until what is returned is dropped.
    pub(super) fn stream(&self, topic: Topic) -> Presence {
        self.streams[topic as usize].enter()
    }

    /// A stream could not reach what it rests on.
    pub(super) fn cut_off(&self) {
        self.connection_errors.increment();
    }

    /// Kinds of events, with how many succeeded and failed, and how long calls took.
    pub fn events(&self) -> impl Iterator<Item = (&str, u64, u64, Reading)> {
        let all = self.events.iter();
        all.map(|(name, events)| {
            let (succeeded, failed) = (events.succeeded.get(), events.failed.get());
            (name, succeeded, failed, events.durations.read())
        })
    }

    /// Errors by kind of event and kind of error.
    pub fn errors(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        pairs(&self.errors)
    }

    /// Messages that were written to streams, by kind of event and agent.
    pub fn deliveries(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        pairs(&self.delivered)
    }

    /// By topic: how long calls took, how long messages waited for being written, and how many streams are open.
    pub fn topics(&self) -> impl Iterator<Item = (Topic, Reading, Reading, u64)> {
        Topic::ALL.into_iter().map(|topic| {
            let index = topic as usize;
            (
                topic,
                self.publishing[index].read(),
                self.consuming[index].read(),
                self.streams[index].get(),
            )
        })
    }

    /// Deliveries of tasks after the first one of each.
    #[must_use]
    pub fn redeliveries(&self) -> u64 {
        self.redeliveries.get()
    }

    /// How often streams could not reach what they rest on.
    #[must_use]
    pub fn connection_errors(&self) -> u64 {
        self.connection_errors.get()
    }
}

fn pairs(counters: &FirstUse<Counter>) -> impl Iterator<Item = (&str, &str, u64)> {
    counters.iter().map(|(names, count)| {
        // All that have no place of their own have one name.
        let (first, second) = names.split_once(AND).unwrap_or((names, names));
        (first, second, count.get())
    })
}

/// The kind of an error, in the words of the public broker where it has one.
const fn error_type(code: Code) -> &'static str {
    match code {
        Code::InvalidArgument => "validation_error",
        Code::AlreadyExists => "already_exists",
        Code::NotFound => "not_found",
        Code::FailedPrecondition => "failed_precondition",
        Code::PermissionDenied => "permission_denied",
        Code::Unauthenticated => "unauthenticated",
        Code::ResourceExhausted => "resource_exhausted",
        Code::DeadlineExceeded => "timeout",
        Code::Unavailable => "unavailable",
        Code::Cancelled => "context_cancelled",
        Code::Ok
        | Code::Unknown
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Internal
        | Code::DataLoss => "grpc_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_understood_takes_no_names() {
        let figures = Figures::default();
        for n in 0..100 {
            let refused = Some(Code::InvalidArgument);
            figures.published(Topic::Tasks, &format!("x{n}"), refused, Duration::ZERO);
        }
        figures.published(Topic::Tasks, "x", None, Duration::from_millis(2));
        let events: Vec<_> = figures
            .events()
            .map(|(name, ok, failed, took)| (name, ok, failed, took.count))
            .collect();
        assert_eq!(events, [("unknown", 0, 100, 100), ("x", 1, 0, 1)]);
        let errors: Vec<_> = figures.errors().collect();
        assert_eq!(errors, [("unknown", "validation_error", 100)]);
    }

    #[test]
    fn deliveries_are_counted_by_kind_and_agent() {
        let figures = Figures::default();
        for agent in ["a", "b", "a"] {
            figures.delivered(Topic::Tasks, "x", agent, Duration::from_secs(1));
        }
        let found: Vec<_> = figures.deliveries().collect();
        assert_eq!(found, [("x", "a", 2), ("x", "b", 1)]);
        let held = figures.stream(Topic::Results);
        let open: Vec<u64> = figures.topics().map(|(.., open)| open).collect();
        assert_eq!(open, [0, 1, 0]);
        drop(held);
        assert!(figures.topics().all(|(.., open)| open == 0));
    }
}
