//! The tasks that agents hold through streams of this server, under the ids that the agents know.
//!
//! A result names its task by an id that only its requester keeps unique, and no lease: what an agent holds says
//! which task it means. An agent is given one task of an id at a time: what has the same id waits until that has ended.
//! Lost with the process; leases say the same, at the cost of a look.
//!
//! What an agent held is remembered for a while, so that it is answered when it repeats itself or comes too late.

use super::words::{Digest, Word};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use taskledger_domain::{LeaseId, TaskId, Timestamp};
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
    /// When the agent was given it; as long as it waits, when it was claimed.
    pub(super) given_at: Timestamp,
    /// When the agent last said something of it.
    pub(super) said_at: Option<Instant>,
}

/// How long it is known what an agent held.
const PAST_KEPT: Duration = Duration::from_secs(600);
/// Tasks that are known so, of all agents; the oldest are forgotten first.
const PAST_MAX: usize = 20_000;
/// Messages of which it is known that they have ended a task of an id.
const WORDS_MAX: usize = 8;

#[derive(Debug)]
struct Entry {
    held: HeldTask,
    /// The stream that holds the task; one that has ended, until another one takes it over.
    stream: u64,
    /// Whether the agent was given it; else it waits for the end of another task of the same id.
    is_given: bool,
}

/// What an agent calls a task.
type Called = (Agent, Arc<str>);

/// What an agent held under an id.
#[derive(Debug)]
struct Past {
    /// The last task.
    task: TaskId,
    /// What the agent has said to end tasks of this id, the latest last.
    words: VecDeque<Word>,
    at: Instant,
}

#[derive(Debug, Default)]
struct Inner {
    agents: HashMap<Agent, Vec<Entry>>,
    /// Those that are open.
    streams: HashMap<u64, Agent>,
    last: u64,
    /// The last task of each id.
    past: HashMap<Called, Past>,
    /// Oldest first; what is there twice counts by its latest time.
    forgetting: VecDeque<(Instant, Called)>,
}

impl Inner {
    /// Remembers what is not held any more.
    fn remember(&mut self, agent: &Agent, gone: Vec<Entry>) {
        if self.agents.get(agent).is_some_and(Vec::is_empty) {
            self.agents.remove(agent);
        }
        for entry in gone.into_iter().filter(|entry| entry.is_given) {
            let called = (agent.clone(), entry.held.external_id);
            self.forgotten(called, entry.held.task, None);
        }
    }

    fn forgotten(&mut self, called: Called, task: TaskId, word: Option<Word>) {
        let at = Instant::now();
        self.forgetting.push_back((at, called.clone()));
        let past = self.past.entry(called).or_insert_with(|| Past {
            task,
            words: VecDeque::new(),
            at,
        });
        (past.task, past.at) = (task, at);
        if let Some(word) = word {
            past.words.retain(|it| it.digest() != word.digest());
            past.words.push_back(word);
            if past.words.len() > WORDS_MAX {
                past.words.pop_front();
            }
        }
        while let Some((at, called)) = self.forgetting.front() {
            if self.forgetting.len() <= PAST_MAX && at.elapsed() < PAST_KEPT {
                break;
            }
            if self.past.get(called).is_some_and(|past| past.at <= *at) {
                self.past.remove(called);
            }
            self.forgetting.pop_front();
        }
    }

    /// Takes out of what an agent holds.
    fn take(&mut self, agent: &Agent, is_gone: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        let Some(entries) = self.agents.get_mut(agent) else {
            return Vec::new();
        };
        entries.extract_if(.., |entry| is_gone(entry)).collect()
    }
}

/// What agents hold, by agent and by the id that they know.
#[derive(Debug, Default)]
pub(super) struct Held(Mutex<Inner>);

impl Held {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        // What a panic left is a list of tasks still.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream of an agent opens.
    pub(super) fn open(&self, agent: &Agent) -> u64 {
        let mut inner = self.inner();
        inner.last += 1;
        let stream = inner.last;
        inner.streams.insert(stream, agent.clone());
        stream
    }

    /// A stream takes over what others of its agent held that have ended, as far as it is for it.
    pub(super) fn inherit(
        &self,
        agent: &Agent,
        stream: u64,
        is_for_it: impl Fn(&HeldTask) -> bool,
    ) -> Vec<HeldTask> {
        let mut inner = self.inner();
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
        taken.collect()
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
        let is_left = |entry: &Entry| {
            let said = entry.held.said_at;
            entry.stream == stream && said.is_none_or(|at| at.elapsed() >= silent)
        };
        let left = inner.take(agent, is_left);
        let tasks = left.iter().map(|entry| entry.held.clone()).collect();
        inner.remember(agent, left);
        tasks
    }

    /// An agent holds a task through a stream. Whether it may be given it now: else once [`Self::next`] says so.
    pub(super) fn hold(&self, stream: u64, agent: &Agent, held: HeldTask) -> bool {
        let mut inner = self.inner();
        let entries = inner.agents.entry(agent.clone()).or_default();
        entries.retain(|entry| entry.held.task != held.task);
        let is_given = !entries.iter().any(|entry| is_given(entry, &held));
        entries.push(Entry {
            held,
            stream,
            is_given,
        });
        is_given
    }

    /// The leases of a stream's tasks that its agent has not been given yet and is given now.
    pub(super) fn next(&self, stream: u64, agent: &Agent, now: Timestamp) -> Vec<LeaseId> {
        let mut inner = self.inner();
        let Some(entries) = inner.agents.get_mut(agent) else {
            return Vec::new();
        };
        let mut next = Vec::new();
        for i in 0..entries.len() {
            let waiting = &entries[i];
            let is_next = !waiting.is_given
                && waiting.stream == stream
                && !entries.iter().any(|entry| is_given(entry, &waiting.held));
            if is_next {
                next.push(waiting.held.lease);
                entries[i].is_given = true;
                entries[i].held.given_at = now;
            }
        }
        next
    }

    /// A task is over.
    pub(super) fn forget(&self, agent: &Agent, task: TaskId) {
        let mut inner = self.inner();
        let gone = inner.take(agent, |entry| entry.held.task == task);
        inner.remember(agent, gone);
    }

    /// An agent has ended a task that it calls so, with these words.
    pub(super) fn ended(&self, agent: &Agent, task: TaskId, external_id: &str, word: Word) {
        let called = (agent.clone(), Arc::from(external_id));
        let mut inner = self.inner();
        inner.forgotten(called, task, Some(word));
    }

    /// An attempt is over.
    pub(super) fn release(&self, agent: &Agent, task: TaskId, attempt: u32) {
        let mut inner = self.inner();
        let gone = inner.take(agent, |entry| {
            (entry.held.task, entry.held.attempt) == (task, attempt)
        });
        inner.remember(agent, gone);
    }

    /// The task of an id that an agent held last.
    pub(super) fn past(&self, agent: &Agent, external_id: &str) -> Option<TaskId> {
        let called = (agent.clone(), Arc::from(external_id));
        self.inner().past.get(&called).map(|past| past.task)
    }

    /// What an agent has said with this message before, if that ended a task of this id.
    pub(super) fn said(&self, agent: &Agent, external_id: &str, message: &Digest) -> Option<Word> {
        let called = (agent.clone(), Arc::from(external_id));
        let inner = self.inner();
        let mut words = inner.past.get(&called)?.words.iter();
        words.find(|it| it.digest() == message).copied()
    }

    /// The task that an agent means by an id: the one that it was given. It has said something.
    pub(super) fn meant(&self, agent: &Agent, external_id: &str) -> Option<HeldTask> {
        let mut inner = self.inner();
        let mut entries = inner.agents.get_mut(agent)?.iter_mut();
        let is_meant =
            |entry: &&mut Entry| entry.is_given && *entry.held.external_id == *external_id;
        let entry = entries.find(is_meant)?;
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

/// Whether an agent was given a task that it calls as this other one.
fn is_given(entry: &Entry, other: &HeldTask) -> bool {
    entry.is_given && entry.held.task != other.task && entry.held.external_id == other.external_id
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskledger_domain::testing::id;

    /// A stream that opens and takes over what is left for it.
    fn open(held: &Held, is_for_it: impl Fn(&HeldTask) -> bool) -> (u64, Vec<HeldTask>) {
        let stream = held.open(&agent());
        (stream, held.inherit(&agent(), stream, is_for_it))
    }

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
            given_at: Timestamp(0),
            said_at: None,
        }
    }

    #[test]
    fn a_stream_takes_over_what_ended_streams_of_its_agent_held() {
        let held = Held::default();
        let (first, none) = open(&held, |_| true);
        assert!(none.is_empty());
        held.hold(first, &agent(), task("t"));
        let (second, none) = open(&held, |_| true);
        assert!(none.is_empty(), "the first one is still there");
        held.close(first);
        held.close(second);
        let (_, none) = open(&held, |held| &*held.method == "y");
        assert!(none.is_empty(), "it is not for this one");
        let (third, taken) = open(&held, |_| true);
        assert_eq!(taken.len(), 1);
        assert!(held.left_by(first, &agent(), Duration::ZERO).is_empty());
        assert_eq!(held.count(third, &agent()), 1);
    }

    #[test]
    fn what_a_stream_leaves_is_given_back_unless_its_agent_speaks() {
        let held = Held::default();
        let (stream, _) = open(&held, |_| true);
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

    #[test]
    fn an_agent_is_given_one_task_of_an_id_at_a_time() {
        let held = Held::default();
        let named = |name: &str| HeldTask {
            lease: LeaseId(id(name).0),
            external_id: Arc::from("same"),
            ..task(name)
        };
        let (first, _) = open(&held, |_| true);
        let (second, _) = open(&held, |_| true);
        assert!(held.hold(first, &agent(), named("one")));
        assert!(!held.hold(second, &agent(), named("two")));
        assert!(!held.hold(second, &agent(), named("three")));
        assert!(held.next(second, &agent(), Timestamp(9)).is_empty());
        let meant = |name: &str| {
            let found = held.meant(&agent(), "same").expect("it holds one");
            assert_eq!(found.task, id(name));
        };
        meant("one");
        held.forget(&agent(), id("one"));
        let now = prost_types::Timestamp::default();
        let word = Word::of([1; 32], id("one"), None, &now, Timestamp(0));
        held.ended(&agent(), id("one"), "same", word);
        assert!(
            held.next(first, &agent(), Timestamp(9)).is_empty(),
            "another stream has them"
        );
        assert_eq!(
            held.next(second, &agent(), Timestamp(9)),
            [LeaseId(id("two").0)]
        );
        assert!(
            held.next(second, &agent(), Timestamp(9)).is_empty(),
            "one at a time"
        );
        meant("two");
        let two = held.meant(&agent(), "same").expect("it holds one");
        assert_eq!(two.given_at, Timestamp(9));
        assert_eq!(held.past(&agent(), "same"), Some(id("one")));
        assert!(held.said(&agent(), "same", &[1; 32]).is_some());
        assert!(held.said(&agent(), "same", &[2; 32]).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn what_an_agent_held_is_forgotten_after_a_while() {
        let held = Held::default();
        let (stream, _) = open(&held, |_| true);
        for name in ["old", "new"] {
            held.hold(stream, &agent(), task(name));
            held.release(&agent(), id(name), 1);
            assert_eq!(held.past(&agent(), "old"), Some(id("old")));
            tokio::time::advance(PAST_KEPT - Duration::from_secs(1)).await;
        }
        held.hold(stream, &agent(), task("last"));
        held.release(&agent(), id("last"), 1);
        assert!(held.past(&agent(), "old").is_none());
        assert!(held.past(&agent(), "new").is_some());
    }
}
