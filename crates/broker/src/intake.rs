//! What follows from events of the log. Owns which events make an outcome, the numbers of outcomes, and the place in the
//! log; reading the log is the caller's.
//!
//! All of a batch is one transaction under the lock of the state, so servers that read the same events note each once,
//! and numbers become visible in their order.

use crate::mark::mark;
use crate::published::{Published, add, among};
use crate::{BrokerStore, Error, State, inbox, stored};
use std::collections::HashMap;
use std::sync::Arc;
use taskledger_domain::flow::Event;
use taskledger_domain::{Position, Recorded, TaskId};
use taskledger_sql::{Engine, Tx};

/// What a batch may come to.
#[derive(Default)]
struct Batch<'a> {
    published: Vec<Published>,
    /// Ends of tasks of which it is not known whether they were published.
    ends: Vec<(TaskId, &'a Recorded)>,
}

impl Batch<'_> {
    fn tasks(&self) -> Vec<TaskId> {
        tasks(&self.ends)
    }
}

fn tasks(ends: &[(TaskId, &Recorded)]) -> Vec<TaskId> {
    let mut tasks: Vec<TaskId> = ends.iter().map(|(task, _)| *task).collect();
    tasks.sort_unstable();
    tasks.dedup();
    tasks
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
        self.wake(newest);
        Ok(newest)
    }

    /// Notes what follows from `batch`, all events of the log above `after` up to `upto` in their order, and moves the
    /// place to `upto`. Events that are dealt with already are passed over, whoever did it. Returns the place
    /// afterwards, behind which to read on: below `after`, nothing was noted, because events between them are missing;
    /// above `upto`, another server is ahead.
    ///
    /// Cost: nothing, if no task was ever published, or the batch neither publishes nor ends any; a query for the tasks
    /// that end in it. Else a transaction with one statement each for what it publishes and ends; on PostgreSQL others who
    /// note wait meanwhile. Where nothing follows, the place is stored now and then only.
    ///
    /// # Errors
    /// [`Error`]: nothing was noted, or it is not known; do it again.
    pub async fn intake(
        &self,
        after: Position,
        batch: &[Arc<Recorded>],
        upto: Position,
    ) -> Result<Position, Error> {
        let sorted = self.sorted(batch.iter());
        if sorted.published.is_empty() {
            if self.is_irrelevant(&sorted).await? && self.passed.pass(after, upto) {
                return Ok(upto);
            }
        } else {
            self.passed.set_used(true);
        }
        let state = match self.noted_by_others(upto).await? {
            Some(state) => state,
            None => self.order(self.note(after, batch, upto)).await?,
        };
        self.passed.store(state.position, upto);
        self.wake(state.newest);
        Ok(state.position)
    }

    /// Whether nothing follows from events that publish nothing. All that were published before are stored.
    async fn is_irrelevant(&self, batch: &Batch<'_>) -> Result<bool, Error> {
        if batch.ends.is_empty() {
            return Ok(true);
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

    async fn note(
        &self,
        after: Position,
        events: &[Arc<Recorded>],
        upto: Position,
    ) -> Result<State, Error> {
        let (mut tx, state) = self.hold().await?;
        if state.position < self.passed.rests_on(after) || state.position >= upto {
            tx.rollback().await?;
            return Ok(state);
        }
        let is_new = |it: &&Arc<Recorded>| it.position > state.position && it.position <= upto;
        let batch = self.sorted(events.iter().filter(is_new));
        add(&mut tx, &batch.published).await?;
        let newest = note_ends(&mut tx, &batch.ends, state.newest).await?;
        if newest > state.newest {
            sync(&mut tx).await?;
        }
        let state = State {
            position: upto,
            newest,
        };
        put(&mut tx, state).await?;
        tx.commit().await?;
        Ok(state)
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
            Ok(true)
        };
        self.order(work).await
    }

    /// What events may come to. Cost: O(events and `params`), no query.
    fn sorted<'a>(&self, events: impl Iterator<Item = &'a Arc<Recorded>>) -> Batch<'a> {
        let mut batch = Batch::default();
        for recorded in events {
            if let Event::TaskCreated(created) = recorded.event.as_ref()
                && let Some(mark) = mark(created)
            {
                let task = Published::of(&self.tenant, recorded, created.task_id, mark);
                batch.published.push(task);
            }
            batch
                .ends
                .extend(ended(&recorded.event).map(|task| (task, recorded.as_ref())));
        }
        batch
    }
}

/// The task that an event ends, as subscribers are told of it: no attempt follows by itself.
fn ended(event: &Event) -> Option<TaskId> {
    match event {
        Event::TaskCompleted(e) => Some(e.task_id),
        Event::TaskFailed(e) => (!e.will_retry).then_some(e.task_id),
        Event::TaskCancelled(e) => Some(e.task_id),
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

/// Adds outcomes of those tasks that were published, numbered behind `newest`. Returns the newest number.
async fn note_ends(
    tx: &mut Tx<'_>,
    ends: &[(TaskId, &Recorded)],
    newest: u64,
) -> Result<u64, Error> {
    let published = among(tx, &tasks(ends)).await?;
    let published: HashMap<TaskId, Published> =
        published.into_iter().map(|it| (it.task_id, it)).collect();
    let known = ends
        .iter()
        .filter_map(|(task, end)| Some((published.get(task)?, *end)));
    let numbered: Vec<inbox::New<'_>> = (newest + 1..)
        .zip(known)
        .map(|(number, (task, end))| inbox::New { number, task, end })
        .collect();
    inbox::add(tx, &numbered).await?;
    Ok(newest + numbered.len() as u64)
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
