//! `tasks.history`: what happened to a task, or to its whole flow, read from the log.
//!
//! Pages go by the place of an event in its flow's history, which never changes, so what is
//! written between two pages moves nothing. A page reads a bounded number of events and then gives
//! what it has and a cursor; it may be empty although more follows. Reads the log itself, so it
//! shows every write that was answered before, and deleted tasks too.

mod cursor;
mod event_type;
mod query;

use cursor::Creation;
pub use cursor::Cursor;
pub use event_type::EventType;
pub use query::{Query, Scope};

use super::App;
use super::api::HistoryPage;
use super::context::Context;
use super::error::{Error, Failure};
use super::facts;
use super::sending::engine_metadata;
use super::stream_reader::StreamReader;
use crate::store::PIECE_EVENTS_MAX;
use std::collections::HashMap;
use std::sync::Arc;
use taskledger_domain::flow::{Argument, Event, Refusal, covers};
use taskledger_domain::{FlowId, Recorded, RunId, TaskId, Version};
use taskledger_projections::Order;

/// Events that one page reads, whatever it looks for: about 0.1 s.
pub const SCANNED_MAX: usize = 20_000;
/// Bytes of payload after which a page ends; its first entry is taken whatever its size.
pub const PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

impl App {
    /// The events of a task or a flow. Cost: O(events read), at most [`SCANNED_MAX`] and a piece; the history of
    /// one task reads those of its flow from the task's creation on. For a task that was renamed
    /// and respecified, its creation is looked for among older events first, which the cursor
    /// remembers.
    ///
    /// # Errors
    /// [`Error`]; `NotFound` for a task that never existed.
    pub async fn history(&self, context: &Context, query: Query) -> Result<HistoryPage, Error> {
        let flow = self.flow_of(Argument::Task, query.task).await?;
        self.is_owned(context, flow, || {
            Refusal::not_found(Argument::Task, query.task)
        })
        .await?;
        if let Some(archived) = self.archived(flow).await? {
            return Err(Refusal::archived(Argument::Task, query.task, &archived).into());
        }
        let reader = StreamReader::of(&*self.store, flow);
        let mut budget = SCANNED_MAX;
        let subject = match query.scope {
            Scope::Flow => None,
            Scope::Task => match self.subject(flow, &query, reader, &mut budget).await? {
                Found::Subject(subject) => Some(subject),
                Found::NotYet(next) => {
                    return Ok(HistoryPage {
                        task: query.task,
                        root: flow.root(),
                        events: Vec::new(),
                        lineages: HashMap::new(),
                        inputs: HashMap::new(),
                        next: Some(next),
                    });
                }
            },
        };
        let Some((head, _)) = self.store.stream_head(flow).await? else {
            return Err(Refusal::not_found(Argument::Task, query.task).into());
        };
        let first = subject.as_ref().map_or(1, |s| s.created);
        let mut scan = Scan {
            reader,
            covered: subject
                .iter()
                .filter_map(|s| Some((s.joined?, true)))
                .collect(),
            subject,
            types: query.types.as_deref(),
            taken: Vec::new(),
            bytes: 0,
            budget,
        };
        let next = scan
            .page(query.order, query.cursor, query.limit, (first, head))
            .await?;
        let events = scan.taken;
        let starts = events.iter().filter_map(|recorded| {
            if let Event::TaskStarted(e) = recorded.event.as_ref() {
                Some((e.task_id, recorded.version))
            } else {
                None
            }
        });
        let lineages = self.lineages(flow, starts.collect()).await?;
        let mut inputs = HashMap::new();
        let lineages = lineages.into_iter().map(|((_, at), it)| {
            inputs.extend(it.input.map(|input| (at, input)));
            (at, it.origins)
        });
        let lineages = lineages.collect();
        Ok(HistoryPage {
            task: query.task,
            root: flow.root(),
            events,
            lineages,
            inputs,
            next,
        })
    }

    /// What must be known of a task to recognise the events that concern it. Its creation is looked
    /// for from the newest version at which it can be, within the budget.
    async fn subject(
        &self,
        flow: FlowId,
        query: &Query,
        reader: StreamReader<'_>,
        budget: &mut usize,
    ) -> Result<Found, Error> {
        let task = query.task;
        let creation = move |f: &taskledger_domain::flow::Flow| f.creation(task);
        let found = self.flows.look(flow, engine_metadata(), creation).await?;
        let Some((ordinal, not_after)) = found else {
            return Err(Refusal::not_found(Argument::Task, task).into());
        };
        // What a cursor says is a hint: one that is wrong costs a search.
        let at = match query.cursor.and_then(|c| c.creation) {
            Some(Creation::At(at)) if (1..=not_after).contains(&at) => at,
            Some(Creation::At(_) | Creation::Below(_)) | None => not_after,
        };
        let piece = self.store.read_versions(flow, &[at]).await?;
        if let Some(subject) = Subject::among(&piece, task, ordinal) {
            return Ok(Found::Subject(subject));
        }
        let (mut before, mut hinted) = match query.cursor.and_then(|c| c.creation) {
            Some(Creation::Below(below)) if below <= not_after => (below, true),
            Some(Creation::At(_) | Creation::Below(_)) | None => (not_after + 1, false),
        };
        while *budget > 0 {
            let piece = reader.before(before, *budget).await?;
            if let Some(subject) = Subject::among(&piece, task, ordinal) {
                return Ok(Found::Subject(subject));
            }
            let Some(oldest) = piece.last() else {
                if hinted {
                    (before, hinted) = (not_after + 1, false);
                    continue;
                }
                let reason = format!("the log holds no creation of task {task}");
                return Err(Failure::Broken(reason).into());
            };
            before = oldest.version;
            *budget -= piece.len();
        }
        let order = query.order;
        let (at, search) = match query.cursor {
            Some(cursor) => (cursor.at, cursor.search),
            None => match order {
                Order::Ascending => (0, None),
                Order::Descending => (CURSOR_END, None),
            },
        };
        Ok(Found::NotYet(Cursor {
            order,
            at,
            search,
            creation: Some(Creation::Below(before)),
        }))
    }
}

/// Where the newest first begin: above all versions that a stream can have.
const CURSOR_END: Version = i64::MAX as Version - 1;

/// What [`App::subject`] gives.
enum Found {
    Subject(Subject),
    /// The budget has ended; to go on from here.
    NotYet(Cursor),
}

/// See [`App::subject`].
struct Subject {
    task: TaskId,
    ordinal: u32,
    created: Version,
    /// The run that was on when it was created.
    joined: Option<RunId>,
}

impl Subject {
    /// The task, if one of these events created it.
    fn among(events: &[Arc<Recorded>], task: TaskId, ordinal: u32) -> Option<Self> {
        events.iter().find_map(|recorded| {
            let Event::TaskCreated(e) = recorded.event.as_ref() else {
                return None;
            };
            (e.task_id == task).then_some(Self {
                task,
                ordinal,
                created: recorded.version,
                joined: e.run_id,
            })
        })
    }
}

/// Whether an event belongs into the page.
enum Takes {
    Yes,
    No,
    /// The budget ended while looking for the start of a run; to go on below this version.
    Undecided(Version),
}

struct Scan<'a> {
    reader: StreamReader<'a>,
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
        let creation = self.subject.as_ref().map(|s| Creation::At(s.created));
        loop {
            let piece = match order {
                Order::Ascending => self.reader.after(at.max(beginning)).await?,
                Order::Descending => {
                    let before = at.min(beginning);
                    self.reader.before(before, PIECE_EVENTS_MAX).await?
                }
            };
            if piece.is_empty() {
                return Ok(None);
            }
            for recorded in piece {
                if recorded.version < first || recorded.version > head {
                    return Ok(None);
                }
                let next = |at, search| Cursor {
                    order,
                    at,
                    search,
                    creation,
                };
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
            Event::MessageReceived(e) => {
                let from = search.unwrap_or(recorded.version);
                return self.covered_by(e.run_id, from).await;
            }
            Event::TaskCreated(_)
            | Event::TaskRenamed(_)
            | Event::PriorityChanged(_)
            | Event::LabelsChanged(_)
            | Event::UserChanged(_)
            | Event::TaskMoved(_)
            | Event::DependenciesChanged(_)
            | Event::TaskRespecified(_)
            | Event::TaskDeleted(_)
            | Event::TaskStarted(_)
            | Event::TaskProgressed(_)
            | Event::TaskOutputAppended(_)
            | Event::TaskClaimRejected(_)
            | Event::TaskCompletionRejected(_)
            | Event::TaskSuspended(_)
            | Event::TaskReminded(_)
            | Event::TaskAnswered(_)
            | Event::TaskSuspensionExpired(_)
            | Event::TaskCompleted(_)
            | Event::TaskFailed(_)
            | Event::TaskRequeued(_)
            | Event::TaskDeferred(_)
            | Event::TaskCancelled(_)
            | Event::FlowArchived(_) => event.task_id() == Some(subject.task),
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
            let piece = self.reader.before(before, self.budget).await?;
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
