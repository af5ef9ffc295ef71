//! Derives outcomes from events of the log. Owns which events make an outcome, the numbers of outcomes, and the place
//! in the log; reading the log is the caller's.
//!
//! All of a batch is one transaction under the lock of the state, so servers that read the same events note each once,
//! and numbers become visible in their order.

use crate::inbox::{self, New, Outcome};
use crate::mark::mark;
use crate::published::{Published, add, among};
use crate::{BrokerStore, Error, State, stored};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use taskledger_domain::flow::{Event, TaskCreated};
use taskledger_domain::{Position, Recorded, TaskId, Timestamp};
use taskledger_sql::{Engine, Tx};

/// A task that cannot run any more unless somebody steps in, published or not.
#[derive(Debug, Clone)]
pub struct Blocked {
    /// The task that cannot run.
    pub task: TaskId,
    /// The event because of which it is so: the end of what it waited for, or of its run.
    pub cause: Arc<Recorded>,
    /// The event that told: its position and time.
    pub told: (Position, Timestamp),
}

/// How a task has come to its end, or begins, of which it is not known whether it was published.
struct End<'a> {
    task: TaskId,
    kind: EndKind,
    event: &'a Recorded,
    at: Timestamp,
}

/// What its requester may know of the end of a task before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndKind {
    /// The task ended while it was under way.
    Own,
    /// It was cancelled while it was not under way: nothing new of one that cannot begin.
    Unbegun,
    /// The task cannot begin.
    Blocked,
    /// No end: it begins, which may have been said to be impossible.
    Begun,
}

/// The changes that a batch of events leads to.
#[derive(Default)]
struct Batch<'a> {
    published: Vec<Published>,
    ends: Vec<End<'a>>,
}

impl Batch<'_> {
    /// The tasks that end.
    fn tasks(&self) -> Vec<TaskId> {
        let mut tasks: Vec<TaskId> = self.ends.iter().map(|end| end.task).collect();
        tasks.sort_unstable();
        tasks.dedup();
        tasks
    }
}

/// Whether a task is created as one that was published.
#[must_use]
pub fn publishes(created: &TaskCreated) -> bool {
    mark(created).is_some()
}

impl BrokerStore {
    /// Up to where the events of the log are dealt with, by any server or as this process has read them; 0: none was.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn position(&self) -> Result<Position, Error> {
        Ok(self.state().await?.position.max(self.passed.upto()))
    }

    /// The number of the newest outcome, whether it is still there or not; 0: there was none. Wakes
    /// [`Self::changes`] if another server has noted it.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn newest(&self) -> Result<u64, Error> {
        let newest = self.state().await?.newest;
        self.recent.ended_elsewhere(newest);
        self.wake(newest);
        Ok(newest)
    }

    /// Notes what follows from `batch`, all events of the log above `after` up to `upto` in their order, and which
    /// tasks are `blocked` by then, and moves the place to `upto`. Events that are dealt with already are passed over,
    /// whoever did it. Returns the place afterwards, behind which to read on: below `after`, nothing was noted, because
    /// events between them are missing; above `upto`, another server is ahead.
    ///
    /// Cost: nothing, if no task was ever published, or the batch neither publishes nor ends any; a query for the tasks
    /// that end in it. Else a transaction with one statement each for what it publishes and ends; on PostgreSQL others
    /// who note wait meanwhile. Where nothing follows, the place is stored now and then only.
    ///
    /// # Errors
    /// [`Error`]: nothing was noted, or it is not known; do it again.
    pub async fn intake(
        &self,
        after: Position,
        batch: &[Arc<Recorded>],
        blocked: &[Blocked],
        upto: Position,
    ) -> Result<Position, Error> {
        let begun = self.begun(batch, blocked).await?;
        let sorted = self.sorted(batch.iter(), blocked.iter(), &begun);
        if sorted.published.is_empty() {
            if self.is_irrelevant(&sorted).await? && self.passed.pass(after, upto) {
                return Ok(upto);
            }
        } else {
            self.passed.set_used(true);
        }
        let state = match self.noted_by_others(upto).await? {
            Some(state) => {
                self.others_noted(&sorted);
                state
            }
            None => {
                let note = self.note(after, (batch, blocked), sorted, upto);
                self.order(note).await?
            }
        };
        self.passed.store(state.position, upto);
        self.recent.ended_elsewhere(state.newest);
        self.wake(state.newest);
        Ok(state.position)
    }

    /// The tasks that begin in a batch after all, though their requesters were told, or are, that they cannot. Cost: no
    /// query as long as no requester was told so of any task; else one for the tasks that begin.
    async fn begun(
        &self,
        batch: &[Arc<Recorded>],
        blocked: &[Blocked],
    ) -> Result<HashSet<TaskId>, Error> {
        if !blocked.is_empty() {
            self.passed.set_blocked(true);
        }
        let known = self.passed.has_blocked();
        let is_unused = blocked.is_empty() && self.passed.is_used() == Some(false);
        if known == Some(false) || is_unused {
            return Ok(HashSet::new());
        }
        let started: Vec<TaskId> = batch.iter().filter_map(|it| started(&it.event)).collect();
        if started.is_empty() {
            return Ok(HashSet::new());
        }
        let work = async {
            let mut tx = self.read().await?;
            let has_blocked = match known {
                Some(known) => known,
                None => inbox::any_blocked(&mut tx).await?,
            };
            let found = match has_blocked {
                true => inbox::begun(&mut tx, &started, blocked).await?,
                false => HashSet::new(),
            };
            tx.commit().await?;
            self.passed.set_blocked(has_blocked);
            Ok(found)
        };
        self.order(work).await
    }

    /// Whether nothing follows from events that publish nothing. All that were published before are stored.
    async fn is_irrelevant(&self, batch: &Batch<'_>) -> Result<bool, Error> {
        if batch.ends.is_empty() {
            return Ok(true);
        }
        if !self.recent.among(&batch.tasks()).is_empty() {
            return Ok(false);
        }
        let work = async {
            let mut tx = self.read().await?;
            let is_used = match self.passed.is_used() {
                Some(is_used) => is_used,
                None => {
                    let args = tx.args();
                    let any = tx.fetch_optional(ANY, args).await?.is_some();
                    self.passed.set_used(any);
                    any
                }
            };
            let found = match is_used {
                true => among(&mut tx, &batch.tasks()).await?,
                false => Vec::new(),
            };
            tx.commit().await?;
            Ok(found.is_empty())
        };
        match self.passed.is_used() {
            Some(false) => Ok(true),
            Some(true) | None => self.order(work).await,
        }
    }

    /// Where several servers note, whether another one was faster: then nobody has to wait for the lock.
    async fn noted_by_others(&self, upto: Position) -> Result<Option<State>, Error> {
        if self.is_alone() {
            return Ok(None);
        }
        let state = self.state().await?;
        Ok((state.position >= upto).then_some(state))
    }

    /// Others noted this batch, or will: perhaps no task is left that cannot run.
    fn others_noted(&self, batch: &Batch<'_>) {
        if !batch.ends.is_empty() {
            self.passed.unblocked();
        }
    }

    async fn note(
        &self,
        after: Position,
        (events, blocked): (&[Arc<Recorded>], &[Blocked]),
        sorted: Batch<'_>,
        upto: Position,
    ) -> Result<State, Error> {
        let (mut tx, before) = self.hold().await?;
        if before.position < self.passed.rests_on(after) || before.position >= upto {
            tx.rollback().await?;
            self.others_noted(&sorted);
            return Ok(before);
        }
        // Another server may have noted the first of them.
        let is_new = |at: Position| at > before.position && at <= upto;
        let is_all_new =
            before.position <= after && events.last().is_none_or(|it| it.position <= upto);
        let batch = match is_all_new {
            true => sorted,
            false => {
                // Of which it may have told that they cannot begin.
                let started = events.iter().filter_map(|it| started(&it.event));
                let begun = inbox::begun(&mut tx, &started.collect::<Vec<_>>(), blocked).await?;
                self.sorted(
                    events.iter().filter(|it| is_new(it.position)),
                    blocked.iter().filter(|it| is_new(it.told.0)),
                    &begun,
                )
            }
        };
        add(&mut tx, &batch.published).await?;
        let Noted {
            newest,
            outcomes,
            is_unblocked,
        } = self.note_ends(&mut tx, &batch, before.newest).await?;
        if newest > before.newest {
            sync(&mut tx).await?;
        }
        let state = State {
            position: upto,
            newest,
        };
        put(&mut tx, state).await?;
        tx.commit().await?;
        if is_unblocked {
            self.passed.unblocked();
        }
        self.recent.published(batch.published);
        self.recent.ended(before.newest, newest, outcomes);
        Ok(state)
    }

    /// Adds outcomes of those tasks that were published, numbered behind `newest`.
    async fn note_ends(
        &self,
        tx: &mut Tx<'_>,
        batch: &Batch<'_>,
        newest: u64,
    ) -> Result<Noted, Error> {
        let mut tasks = batch.tasks();
        let known = self.recent.among(&tasks).into_iter();
        let known = known.chain(batch.published.iter().cloned());
        let mut published: HashMap<TaskId, Published> =
            known.map(|task| (task.task_id, task)).collect();
        tasks.retain(|task| !published.contains_key(task));
        let stored = among(tx, &tasks).await?.into_iter();
        published.extend(stored.map(|task| (task.task_id, task)));
        let known = batch
            .ends
            .iter()
            .filter_map(|end| Some((published.get(&end.task)?, end)));
        let known: Vec<(&Published, &End<'_>)> = known.collect();
        let asked = known.iter().filter(|(_, end)| end.kind != EndKind::Own);
        let asked: Vec<&Published> = asked.map(|(task, _)| *task).collect();
        let mut blocked = inbox::blocked(tx, &asked).await?;
        let mut numbered: Vec<New> = Vec::with_capacity(known.len());
        let mut unblocked = Vec::new();
        for (task, end) in known {
            // The first end of what never began counts.
            let is_told = match end.kind {
                EndKind::Own => {
                    if blocked.remove(&end.task) {
                        unblock(&mut numbered, end.task);
                    }
                    unblocked.push(end.task);
                    false
                }
                EndKind::Unbegun => {
                    let is_told = blocked.remove(&end.task);
                    if is_told {
                        unblock(&mut numbered, end.task);
                        unblocked.push(end.task);
                    }
                    is_told
                }
                EndKind::Blocked => !blocked.insert(end.task),
                EndKind::Begun => {
                    if blocked.remove(&end.task) {
                        unblocked.push(end.task);
                        unblock(&mut numbered, end.task);
                    }
                    continue;
                }
            };
            if !is_told {
                let number = newest + 1 + numbered.len() as u64;
                numbered.push(New {
                    outcome: Outcome::of(number, task, end.event, end.at),
                    is_blocked: end.kind == EndKind::Blocked,
                });
            }
        }
        let is_unblocked = match self.passed.has_blocked() {
            Some(false) => false,
            Some(true) | None => inbox::unblock(tx, &unblocked).await?,
        };
        Ok(Noted {
            newest: newest + numbered.len() as u64,
            outcomes: inbox::add(tx, numbered).await?,
            is_unblocked,
        })
    }

    /// Takes the log for one that ends at `head` and forgets what followed from events behind it: the log was restored
    /// from an older backup. Returns whether the place was behind it. Cost: O(published tasks); rare.
    ///
    /// # Errors
    /// [`Error`]: nothing was changed, or it is not known; do it again.
    pub async fn rewind(&self, head: Position) -> Result<bool, Error> {
        let work = async {
            let (mut tx, state) = self.hold().await?;
            if state.position <= head {
                tx.rollback().await?;
                return Ok(false);
            }
            for statement in [REWIND_OUTCOMES, REWIND_PUBLISHED] {
                let mut args = tx.args();
                args.position(head);
                tx.execute(statement, args).await?;
            }
            let state = State {
                position: head,
                ..state
            };
            put(&mut tx, state).await?;
            tx.commit().await?;
            self.passed.store(head, head);
            self.recent.clear();
            Ok(true)
        };
        self.order(work).await
    }

    /// What events may come to, by their order; which of the tasks that begin are `begun` after all. Cost: O(events and
    /// `params`), no query.
    fn sorted<'a>(
        &self,
        events: impl Iterator<Item = &'a Arc<Recorded>>,
        blocked: impl Iterator<Item = &'a Blocked>,
        begun: &HashSet<TaskId>,
    ) -> Batch<'a> {
        let mut batch = Batch::default();
        let mut blocked = blocked.peekable();
        for recorded in events {
            if let Event::TaskCreated(created) = recorded.event.as_ref()
                && let Some(mark) = mark(created)
            {
                let task = Published::of(&self.tenant, recorded, created.task_id, mark);
                batch.published.push(task);
            }
            let begins = started(&recorded.event).filter(|task| begun.contains(task));
            let begins = begins.map(|task| (task, EndKind::Begun));
            if let Some((task, kind)) = ended(&recorded.event).or(begins) {
                batch.ends.push(End {
                    task,
                    kind,
                    event: recorded,
                    at: recorded.time,
                });
            }
            while let Some(it) = blocked.next_if(|it| it.told.0 <= recorded.position) {
                batch.ends.push(End {
                    task: it.task,
                    kind: EndKind::Blocked,
                    event: &it.cause,
                    at: it.told.1,
                });
            }
        }
        batch
    }
}

/// The task of which an event begins an attempt.
fn started(event: &Event) -> Option<TaskId> {
    let Event::TaskStarted(e) = event else {
        return None;
    };
    Some(e.task_id)
}

/// What was noted of ends.
struct Noted {
    /// The newest number.
    newest: u64,
    /// What was added.
    outcomes: Vec<Outcome>,
    /// Some of the tasks could not run before, as their requesters were told.
    is_unblocked: bool,
}

/// What its requester is about to be told of a task does not say any more that it cannot run. Cost: O(outcomes).
fn unblock(numbered: &mut [New], task: TaskId) {
    let of_task = |new: &&mut New| new.outcome.task_id == task;
    let told = numbered.iter_mut().filter(of_task);
    told.for_each(|new| new.is_blocked = false);
}

/// The task that an event ends, as subscribers are told of it: no attempt follows by itself.
fn ended(event: &Event) -> Option<(TaskId, EndKind)> {
    match event {
        Event::TaskCompleted(e) => Some((e.task_id, EndKind::Own)),
        Event::TaskFailed(e) => (!e.will_retry).then_some((e.task_id, EndKind::Own)),
        Event::TaskCancelled(e) => Some(match e.attempt {
            Some(_) => (e.task_id, EndKind::Own),
            None => (e.task_id, EndKind::Unbegun),
        }),
        Event::TaskCreated(_)
        | Event::TaskRenamed(_)
        | Event::PriorityChanged(_)
        | Event::LabelsChanged(_)
        | Event::UserChanged(_)
        | Event::TaskMoved(_)
        | Event::DependenciesChanged(_)
        | Event::TaskRespecified(_)
        | Event::TaskDeleted(_)
        | Event::RunStarted(_)
        | Event::MessageReceived(_)
        | Event::TaskStarted(_)
        | Event::TaskProgressed(_)
        | Event::TaskOutputAppended(_)
        | Event::TaskClaimRejected(_)
        | Event::TaskCompletionRejected(_)
        | Event::TaskSuspended(_)
        | Event::TaskReminded(_)
        | Event::TaskAnswered(_)
        | Event::TaskSuspensionExpired(_)
        | Event::TaskRequeued(_)
        | Event::TaskDeferred(_)
        | Event::RunEnded(_)
        | Event::FlowArchived(_) => None,
    }
}

/// Makes the commit survive a crash of the database: this process goes on, and with it streams that have seen numbers,
/// which must not be given again. The file needs it not: nothing of a process outlives a power cut.
async fn sync(tx: &mut Tx<'_>) -> Result<(), Error> {
    match tx.engine() {
        Engine::Sqlite => Ok(()),
        Engine::Postgres => Ok(tx.execute_all(SYNC).await?),
    }
}

async fn put(tx: &mut Tx<'_>, state: State) -> Result<(), Error> {
    let mut args = tx.args();
    args.position(state.position);
    args.int(stored(state.newest));
    tx.execute(PUT_STATE, args).await?;
    Ok(())
}

const SYNC: &str = "SET LOCAL synchronous_commit = 'on'";
const ANY: &str = "SELECT task_id FROM published LIMIT 1";
const PUT_STATE: &str = "UPDATE state SET position = $1, newest = $2 WHERE one = 1";
// By `outcomes_position`.
const REWIND_OUTCOMES: &str = "DELETE FROM outcomes WHERE position > $1";
// Without an index.
const REWIND_PUBLISHED: &str = "DELETE FROM published WHERE position > $1";
