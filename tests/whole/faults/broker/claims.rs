//! Which tasks agents were given first, as the log tells it, while agents and the server were killed.
//!
//! Of what had been waiting for a while when an agent was given a task, nothing that it takes and that was more urgent,
//! or as urgent and older, waits any longer than a claim takes that is under way. Tasks that are given again go their
//! own way, and after a start of the server flows are loaded one by one.

use super::{World, agent};
use std::collections::{BTreeMap, HashMap};
use taskledger_testkit::log::Event;

/// Microseconds for which a task must have been waiting: an agent that takes every type is told of new ones within a
/// second.
const READY_US: i64 = 2_000_000;
/// Microseconds for which it may wait on: other claims are under way.
const UNDER_WAY_US: i64 = 1_000_000;

/// The place of a task in the line of its method: its priority, 0 first, and the event since which it waits.
type Rank = (u64, u64);

/// A task that waits.
struct Waiting {
    task: String,
    ready_at: i64,
    /// When an agent that takes it was given another one first.
    passed_over_at: Option<i64>,
}

/// Checks one event after the other.
pub(super) struct Claims {
    /// When the order does not count, in microseconds.
    outages: Vec<(i64, i64)>,
    lines: HashMap<String, BTreeMap<Rank, Waiting>>,
    /// The method and rank of each task that waits, or is created.
    tasks: HashMap<String, (String, Rank)>,
    checked: usize,
    excused: usize,
    /// How long after a kill an agent was last given a task before a more urgent or older one, in microseconds.
    disorder_us: i64,
}

impl Claims {
    pub(super) fn of(world: &World) -> Self {
        Self {
            outages: world.outages.lock().unwrap().clone(),
            lines: HashMap::new(),
            tasks: HashMap::new(),
            checked: 0,
            excused: 0,
            disorder_us: 0,
        }
    }

    pub(super) fn check(&mut self, event: &Event) {
        let task = event.task();
        match event.kind.as_str() {
            "TaskCreated" => {
                let method = event.data["specification"]["method"].as_str().unwrap();
                let priority = event.data["priority"].as_u64().unwrap();
                let place = (method.to_owned(), (priority, event.position));
                self.tasks.insert(task.to_owned(), place);
            }
            "RunStarted" => {
                let (method, rank) = &self.tasks[task];
                let waiting = Waiting {
                    task: task.to_owned(),
                    ready_at: event.micros,
                    passed_over_at: None,
                };
                let line = self.lines.entry(method.clone()).or_default();
                line.insert(*rank, waiting);
            }
            "TaskStarted" => {
                let Some((rank, waiting)) = self.gone(task) else {
                    return;
                };
                let lease = &event.data["lease"];
                self.given(lease["worker"].as_str().unwrap(), rank, event.micros);
                if let Some(passed_over_at) = waiting.passed_over_at
                    && !self.is_excused(passed_over_at, event.micros)
                {
                    let late = event.micros - passed_over_at;
                    assert!(
                        late <= UNDER_WAY_US,
                        "{} of rank {rank:?} was passed over {late} us before it was given: {event:?}",
                        waiting.task
                    );
                }
            }
            "TaskCancelled" | "TaskFailed" | "TaskCompleted" => {
                self.gone(task);
            }
            _ => {}
        }
    }

    /// What was looked at.
    pub(super) fn end(self) -> String {
        let disorder = self.disorder_us as f64 / 1e6;
        format!(
            "{} first deliveries in order; {} after a kill, out of order up to {disorder:.1} s behind it",
            self.checked, self.excused
        )
    }

    /// A task waits no more.
    fn gone(&mut self, task: &str) -> Option<(Rank, Waiting)> {
        let (method, rank) = self.tasks.remove(task)?;
        let waiting = self.lines.get_mut(&method)?.remove(&rank)?;
        Some((rank, waiting))
    }

    /// An agent was given a task of this rank; those before it that it takes were passed over.
    fn given(&mut self, agent: &str, rank: Rank, at: i64) {
        let outage = self
            .outages
            .iter()
            .find(|(gone, back)| (*gone..=*back).contains(&at));
        let after = outage.map(|(gone, _)| at - gone);
        match after {
            Some(_) => self.excused += 1,
            None => self.checked += 1,
        }
        let lines = self.lines.iter_mut();
        for (_, line) in lines.filter(|(method, _)| agent::takes(agent, method)) {
            for priority in 0..=rank.0 {
                let first = line.range_mut((priority, 0)..=(priority, u64::MAX)).next();
                if let Some((before, waiting)) = first
                    && *before < rank
                    && waiting.ready_at + READY_US <= at
                {
                    match after {
                        Some(after) => self.disorder_us = self.disorder_us.max(after),
                        None => {
                            waiting.passed_over_at.get_or_insert(at);
                        }
                    }
                }
            }
        }
    }

    /// Whether a server was away or loading at some time between these.
    fn is_excused(&self, from: i64, to: i64) -> bool {
        let outages = self.outages.iter();
        let mut at_the_time = outages.filter(|(gone, back)| *gone <= to && from <= *back);
        at_the_time.next().is_some()
    }
}
