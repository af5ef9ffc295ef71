//! Which tasks agents hold through streams of this server, under the ids that they know.
//!
//! A result names its task by an id that only its requester keeps unique, and no lease: what an agent holds says
//! which task it means. Lost with the process; leases say the same, at the cost of a look.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use taskledger_domain::{LeaseId, TaskId};
use tokio::time::Instant;

/// An agent: its principal, and the name that it gives.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Agent {
    pub(super) principal: Arc<str>,
    pub(super) name: Arc<str>,
}

/// A task that an agent holds.
#[derive(Debug, Clone)]
pub(super) struct HeldTask {
    pub(super) task: TaskId,
    pub(super) attempt: u32,
    pub(super) lease: LeaseId,
    /// What the agent calls it.
    pub(super) external_id: Arc<str>,
    pub(super) method: Arc<str>,
    /// When the agent last said something of it.
    pub(super) said_at: Option<Instant>,
}

#[derive(Debug)]
struct Entry {
    held: HeldTask,
    /// Through which stream; one that has ended, until another one takes it over.
    stream: u64,
}

#[derive(Debug, Default)]
struct Inner {
    agents: HashMap<Agent, Vec<Entry>>,
    /// Those that are open.
    streams: HashMap<u64, Agent>,
    last: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Held(Mutex<Inner>);

impl Held {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        // What a panic left is a list of tasks still.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream of an agent opens, and takes over what streams of it held that have ended, as far as it is for it.
    pub(super) fn open(
        &self,
        agent: &Agent,
        is_for_it: impl Fn(&HeldTask) -> bool,
    ) -> (u64, Vec<HeldTask>) {
        let mut inner = self.inner();
        inner.last += 1;
        let stream = inner.last;
        inner.streams.insert(stream, agent.clone());
        let Inner {
            agents, streams, ..
        } = &mut *inner;
        let left = agents.get_mut(agent).into_iter().flatten();
        let left =
            left.filter(|entry| !streams.contains_key(&entry.stream) && is_for_it(&entry.held));
        let taken = left.map(|entry| {
            entry.stream = stream;
            entry.held.clone()
        });
        (stream, taken.collect())
    }

    /// A stream has ended; what it held stays with its agent.
    pub(super) fn close(&self, stream: u64) {
        self.inner().streams.remove(&stream);
    }

    /// What a stream that has ended still holds, and nobody has said anything of for `silent`. Takes it out.
    pub(super) fn left_by(&self, stream: u64, agent: &Agent, silent: Duration) -> Vec<HeldTask> {
        let mut inner = self.inner();
        if inner.streams.contains_key(&stream) {
            return Vec::new();
        }
        let Some(entries) = inner.agents.get_mut(agent) else {
            return Vec::new();
        };
        let is_left = |entry: &Entry| {
            let said = entry.held.said_at;
            entry.stream == stream && said.is_none_or(|at| at.elapsed() >= silent)
        };
        let left = entries.extract_if(.., |entry| is_left(entry));
        let left = left.map(|entry| entry.held).collect();
        if entries.is_empty() {
            inner.agents.remove(agent);
        }
        left
    }

    /// An agent holds a task through a stream.
    pub(super) fn hold(&self, stream: u64, agent: &Agent, held: HeldTask) {
        let mut inner = self.inner();
        let entries = inner.agents.entry(agent.clone()).or_default();
        entries.retain(|entry| entry.held.task != held.task);
        entries.push(Entry { held, stream });
    }

    /// A task is over.
    pub(super) fn forget(&self, agent: &Agent, task: TaskId) {
        let mut inner = self.inner();
        let Some(entries) = inner.agents.get_mut(agent) else {
            return;
        };
        entries.retain(|entry| entry.held.task != task);
        if entries.is_empty() {
            inner.agents.remove(agent);
        }
    }

    /// An attempt is over.
    pub(super) fn release(&self, agent: &Agent, task: TaskId, attempt: u32) {
        let mut inner = self.inner();
        let Some(entries) = inner.agents.get_mut(agent) else {
            return;
        };
        entries.retain(|entry| (entry.held.task, entry.held.attempt) != (task, attempt));
        if entries.is_empty() {
            inner.agents.remove(agent);
        }
    }

    /// The task that an agent means by an id, of those that it holds: the first that it got. It has said something.
    pub(super) fn meant(&self, agent: &Agent, external_id: &str) -> Option<HeldTask> {
        let mut inner = self.inner();
        let mut entries = inner.agents.get_mut(agent)?.iter_mut();
        let entry = entries.find(|entry| *entry.held.external_id == *external_id)?;
        entry.held.said_at = Some(Instant::now());
        Some(entry.held.clone())
    }

    /// Whether an agent holds an attempt.
    pub(super) fn has(&self, agent: &Agent, lease: LeaseId) -> bool {
        let inner = self.inner();
        let mut entries = inner.agents.get(agent).into_iter().flatten();
        entries.any(|entry| entry.held.lease == lease)
    }

    /// What a stream holds.
    pub(super) fn of(&self, stream: u64, agent: &Agent) -> Vec<HeldTask> {
        let inner = self.inner();
        let entries = inner.agents.get(agent).into_iter().flatten();
        let of_stream = entries.filter(|entry| entry.stream == stream);
        of_stream.map(|entry| entry.held.clone()).collect()
    }

    /// How many tasks a stream holds.
    pub(super) fn count(&self, stream: u64, agent: &Agent) -> usize {
        let inner = self.inner();
        let entries = inner.agents.get(agent).into_iter().flatten();
        entries.filter(|entry| entry.stream == stream).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskledger_domain::testing::id;

    fn agent() -> Agent {
        Agent {
            principal: Arc::from("anonymous"),
            name: Arc::from("a"),
        }
    }

    fn task(external: &str) -> HeldTask {
        HeldTask {
            task: id(external),
            attempt: 1,
            lease: LeaseId(id("lease").0),
            external_id: Arc::from(external),
            method: Arc::from("x"),
            said_at: None,
        }
    }

    #[test]
    fn a_stream_takes_over_what_ended_streams_of_its_agent_held() {
        let held = Held::default();
        let (first, none) = held.open(&agent(), |_| true);
        assert!(none.is_empty());
        held.hold(first, &agent(), task("t"));
        let (second, none) = held.open(&agent(), |_| true);
        assert!(none.is_empty(), "the first one is still there");
        held.close(first);
        held.close(second);
        let (_, none) = held.open(&agent(), |held| &*held.method == "y");
        assert!(none.is_empty(), "it is not for this one");
        let (third, taken) = held.open(&agent(), |_| true);
        assert_eq!(taken.len(), 1);
        assert!(held.left_by(first, &agent(), Duration::ZERO).is_empty());
        assert_eq!(held.count(third, &agent()), 1);
    }

    #[test]
    fn what_a_stream_leaves_is_given_back_unless_its_agent_speaks() {
        let held = Held::default();
        let (stream, _) = held.open(&agent(), |_| true);
        held.hold(stream, &agent(), task("quiet"));
        held.hold(stream, &agent(), task("told"));
        assert!(
            held.left_by(stream, &agent(), Duration::ZERO).is_empty(),
            "it is open"
        );
        held.close(stream);
        assert!(held.meant(&agent(), "told").is_some());
        let left = held.left_by(stream, &agent(), Duration::from_secs(30));
        assert_eq!(
            left.iter().map(|it| it.task).collect::<Vec<_>>(),
            [id("quiet")]
        );
        assert!(held.meant(&agent(), "quiet").is_none());
        held.release(&agent(), id("told"), 1);
        assert!(held.meant(&agent(), "told").is_none());
    }
}
