//! `tasks.history`: what happened to a task, or to its whole flow, read from the log.
//!
//! Pages go by the place of an event in its flow's history, which never changes, so what is
//! written between two pages moves nothing. A page reads a bounded number of events and then gives
//! what it has and a cursor; it may be empty although more follows. Reads the log itself, so it
//! shows every write that was answered before, and deleted tasks too.

mod cursor;
mod entry;

pub use cursor::Cursor;
pub use entry::{Entry, EventType};

use super::App;
use super::commands::{Answer, raw};
use super::error::{Error, Failure};
use super::facts;
use super::paging::Pieces;
use super::sending::engine_metadata;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;
use taskledger_domain::flow::{Event, Rejection};
use taskledger_domain::{FlowId, Recorded, RunId, TaskId, Version};
use taskledger_projections::{Order, covers};

/// Events that one page reads: about 0.1 s.
pub const SCANNED_MAX: usize = 20_000;
/// Bytes of payload after which a page ends; its first entry is taken whatever its size.
pub const PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Whose history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// The task's events, and those of the runs that covered it.
    #[default]
    Task,
    /// All events of its flow.
    Flow,
}

/// What to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// A task that exists or existed.
    pub task: TaskId,
    /// Whose history.
    pub scope: Scope,
    /// Entries of a page, at least 1.
    pub limit: usize,
    /// Oldest or newest first.
    pub order: Order,
    /// Where the page before ended; made with the same order.
    pub cursor: Option<Cursor>,
    /// Only these types; `None` for all.
    pub types: Option<Vec<EventType>>,
}

#[derive(Serialize)]
struct Page<'a> {
    task_id: TaskId,
    root_task_id: TaskId,
    events: Vec<Entry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl App {
    /// `tasks.history`. Cost: O(events read), at most [`SCANNED_MAX`]; the history of one task
    /// reads those of its flow from the task's creation on. Only for a task that was renamed and
    /// respecified, its creation has to be looked for among older events first.
    ///
    /// # Errors
    /// [`Error`]; `NotFound` for a task that never existed.
    pub async fn history(&self, query: Query) -> Answer {
        let flow = self.flow_of("task_id", query.task).await?;
        let subject = match query.scope {
            Scope::Flow => None,
            Scope::Task => Some(self.subject(flow, query.task).await?),
        };
        let Some((head, _)) = self.store.stream_head(flow).await? else {
            return Err(Rejection::not_found("task_id", query.task).into());
        };
        let first = subject.as_ref().map_or(1, |s| s.created);
        let mut scan = Scan {
            pieces: Pieces::of(&*self.store, flow),
            back: Pieces::of(&*self.store, flow),
            covered: subject
                .iter()
                .filter_map(|s| Some((s.joined?, true)))
                .collect(),
            subject,
            types: query.types.as_deref(),
            taken: Vec::new(),
            bytes: 0,
            budget: SCANNED_MAX,
        };
        let next = scan
            .page(query.order, query.cursor, query.limit, (first, head))
            .await?;
        Ok(raw(&Page {
            task_id: query.task,
            root_task_id: flow.root(),
            events: scan.taken.iter().map(|e| Entry::of(e)).collect(),
            next_cursor: next.map(|cursor| cursor.to_string()),
        }))
    }

    /// What must be known of a task to recognise the events that concern it.
    async fn subject(&self, flow: FlowId, task: TaskId) -> Result<Subject, Error> {
        let creation = move |f: &taskledger_domain::flow::Flow| f.creation(task);
        let found = self.flows.look(flow, engine_metadata(), creation).await?;
        let Some((ordinal, not_before)) = found else {
            return Err(Rejection::not_found("task_id", task).into());
        };
        let mut pieces = Pieces::of(&*self.store, flow);
        let mut before = not_before + 1;
        let mut piece = self.store.read_versions(flow, &[not_before]).await?;
        while let Some(oldest) = piece.last().map(|e| e.version) {
            for recorded in &piece {
                if let Event::TaskCreated(e) = recorded.event.as_ref()
                    && e.task_id == task
                {
                    return Ok(Subject {
                        task,
                        ordinal,
                        created: recorded.version,
                        joined: e.run_id,
                    });
                }
            }
            before = before.min(oldest);
            piece = pieces.before(before).await?;
        }
        Err(Failure::Broken(format!("the log holds no creation of task {task}")).into())
    }
}

/// See [`App::subject`].
struct Subject {
    task: TaskId,
    ordinal: u32,
    created: Version,
    /// The run that was on when it was created.
    joined: Option<RunId>,
}

/// Whether an event belongs into the page.
enum Takes {
    Yes,
    No,
    /// The budget ended while looking for the start of a run; to go on below this version.
    Undecided(Version),
}

struct Scan<'a> {
    pieces: Pieces<'a>,
    /// For looks back; its sizes are its own.
    back: Pieces<'a>,
    subject: Option<Subject>,
    types: Option<&'a [EventType]>,
    /// Runs of which it is known whether they covered the subject.
    covered: HashMap<RunId, bool>,
    taken: Vec<Arc<Recorded>>,
    bytes: usize,
    /// Events that may still be read.
    budget: usize,
}

impl Scan<'_> {
    /// Collects a page among the versions `first ..= head`, and says where to go on.
    async fn page(
        &mut self,
        order: Order,
        cursor: Option<Cursor>,
        limit: usize,
        (first, head): (Version, Version),
    ) -> Result<Option<Cursor>, Error> {
        let beginning = match order {
            Order::Ascending => first - 1,
            Order::Descending => head + 1,
        };
        let mut at = cursor.map_or(beginning, |c| c.at);
        let mut search = cursor.and_then(|c| c.search);
        loop {
            let piece = match order {
                Order::Ascending => self.pieces.after(at.max(beginning)).await?,
                Order::Descending => self.pieces.before(at.min(beginning)).await?,
            };
            if piece.is_empty() {
                return Ok(None);
            }
            for recorded in piece {
                if recorded.version < first || recorded.version > head {
                    return Ok(None);
                }
                let next = |at, search| Cursor { order, at, search };
                let full = self.taken.len() >= limit || self.bytes >= PAGE_BYTES_MAX;
                if full || self.budget == 0 {
                    return Ok(Some(next(at, search)));
                }
                self.budget -= 1;
                match self.takes(&recorded, search.take()).await? {
                    Takes::Undecided(below) => return Ok(Some(next(at, Some(below)))),
                    Takes::No => {}
                    Takes::Yes => {
                        self.bytes += facts::bytes(&recorded.event);
                        self.taken.push(recorded.clone());
                    }
                }
                at = recorded.version;
            }
        }
    }

    async fn takes(
        &mut self,
        recorded: &Recorded,
        search: Option<Version>,
    ) -> Result<Takes, Error> {
        let event = recorded.event.as_ref();
        self.learn(event);
        let wanted = |types: &[EventType]| types.contains(&EventType::of(event));
        if !self.types.is_none_or(wanted) {
            return Ok(Takes::No);
        }
        let Some(subject) = &self.subject else {
            return Ok(Takes::Yes);
        };
        let yes = match event {
            Event::RunStarted(e) => covers(&e.covers, subject.ordinal),
            Event::RunEnded(e) => {
                let from = search.unwrap_or(recorded.version);
                return self.covered_by(e.run_id, from).await;
            }
            Event::TaskCreated(_)
            | Event::TaskRenamed(_)
            | Event::PriorityChanged(_)
            | Event::UserChanged(_)
            | Event::TaskMoved(_)
            | Event::DependenciesChanged(_)
            | Event::TaskRespecified(_)
            | Event::TaskDeleted(_)
            | Event::TaskStarted(_)
            | Event::TaskProgressed(_)
            | Event::TaskCompleted(_)
            | Event::TaskFailed(_)
            | Event::TaskRequeued(_)
            | Event::TaskCancelled(_) => event.task_id() == Some(subject.task),
        };
        Ok(if yes { Takes::Yes } else { Takes::No })
    }

    /// Remembers whether a run that starts covers the subject.
    fn learn(&mut self, event: &Event) {
        if let (Event::RunStarted(e), Some(subject)) = (event, &self.subject) {
            let covers = covers(&e.covers, subject.ordinal);
            *self.covered.entry(e.run_id).or_default() |= covers;
        }
    }

    /// Whether a run covered the subject: its start says so, which is looked for below `before`.
    /// One that started before the subject was created covers it only if the subject joined it.
    async fn covered_by(&mut self, run: RunId, mut before: Version) -> Result<Takes, Error> {
        let created = self.subject.as_ref().map_or(1, |s| s.created);
        while !self.covered.contains_key(&run) && before > created {
            if self.budget == 0 {
                return Ok(Takes::Undecided(before));
            }
            let piece = self.back.before(before).await?;
            let Some(oldest) = piece.last() else { break };
            before = oldest.version;
            self.budget = self.budget.saturating_sub(piece.len());
            for recorded in &piece {
                self.learn(&recorded.event);
            }
        }
        let covered = *self.covered.entry(run).or_insert(false);
        Ok(if covered { Takes::Yes } else { Takes::No })
    }
}
