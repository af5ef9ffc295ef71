//! `as_of`: tasks as they were, rebuilt from the log by the fold that feeds the read models.
//!
//! A flow's events are folded in pieces, on threads that may be kept busy, up to the moment that
//! was asked for. Time means the time at which events were decided, the one that histories and
//! tasks show: the first event that is later, and all behind it, are left out. A position inside of
//! one append shows what nobody saw then, for example a failure whose retry stands right behind it.

use super::App;
use super::context::Context;
use super::encoder::{Moment, TreeEncoder};
use super::error::{Error, Failure};
use super::placing;
use super::queries::Consistency;
use super::readings::{Encoded, Source, failed};
use super::stream_reader::StreamReader;
use crate::store::{EventStore, PIECE_BYTES_MAX};
use serde_json::Value;
use std::sync::Arc;
use taskledger_domain::flow::{Argument, Refusal};
use taskledger_domain::violation::Violation;
use taskledger_domain::{FlowId, Position, Recorded, TaskId, Timestamp};
use taskledger_projections::{Node, Past, Sources, TaskView, WithRun};
use tokio::sync::OwnedSemaphorePermit;

/// Tasks in one piece of a tree; fewer when their payloads are larger than [`PIECE_BYTES_MAX`].
const PIECE_TASKS: usize = 256;

/// A moment of the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsOf {
    /// After the event at this place of the log.
    Position(Position),
    /// After all events up to this time.
    Time(Timestamp),
}

impl AsOf {
    const fn includes(self, recorded: &Recorded) -> bool {
        match self {
            Self::Position(position) => recorded.position <= position,
            Self::Time(time) => recorded.time.0 <= time.0,
        }
    }
}

/// A task as it was.
#[derive(Debug, Clone)]
pub struct Then {
    /// The task as it was then.
    pub task: TaskView,
    /// What the answer contains.
    pub as_of: Moment,
}

/// A flow as it was.
struct Rebuilt {
    store: Arc<dyn EventStore>,
    flow: FlowId,
    past: Past,
    moment: Moment,
}

impl App {
    /// `tasks.get` with `as_of`. Cost: O(events of the flow until then).
    ///
    /// # Errors
    /// [`Error`]; `NotFound` for a task that did not exist then, `Invalid` for a moment that has
    /// not come yet.
    pub async fn get_as_of(
        &self,
        context: &Context,
        task: TaskId,
        at: AsOf,
    ) -> Result<Then, Error> {
        let Some((rebuilt, _place)) = self.rebuild(context, task, at).await? else {
            return Err(self.not_then(context, task, at).await);
        };
        let Some((mut view, sources)) = rebuilt.past.view(task, WithRun::Yes) else {
            return Err(self.not_then(context, task, at).await);
        };
        rebuilt.complete(&mut view, sources).await?;
        Ok(Then {
            task: view,
            as_of: rebuilt.moment,
        })
    }

    /// `tasks.tree` with `as_of`, written by `encoder`. Cost: O(events of the flow until then).
    ///
    /// # Errors
    /// As [`Self::get_as_of`].
    pub async fn tree_as_of(
        &self,
        context: &Context,
        task: TaskId,
        at: AsOf,
        encoder: impl TreeEncoder,
    ) -> Result<Encoded, Error> {
        let Some((mut rebuilt, place)) = self.rebuild(context, task, at).await? else {
            return Err(self.not_then(context, task, at).await);
        };
        let (past, mut left) = blocking(move || {
            let order = rebuilt.past.depth_first(task);
            (rebuilt.past, order)
        })
        .await?;
        if left.is_empty() {
            return Err(self.not_then(context, task, at).await);
        }
        rebuilt.past = past;
        left.reverse();
        let tree = Tree {
            rebuilt,
            root: task,
            left,
        };
        self.readings.all(tree, encoder, place).await
    }

    /// Why there was no task then. One that exists now came later; of one that was deleted nothing is told.
    async fn not_then(&self, context: &Context, task: TaskId, at: AsOf) -> Error {
        let gone = || Refusal::not_found(Argument::Task, task).into();
        let row = match self.get(context, task, Consistency::Strong).await {
            Ok(view) => view.row,
            Err(Error::Refused(_)) => return gone(),
            Err(error) => return error,
        };
        let came_later = match at {
            AsOf::Position(position) => row.created_position > position,
            AsOf::Time(time) => row.created_at > time,
        };
        if !came_later {
            return gone();
        }
        let refusal = Refusal::NotCreatedYet {
            task,
            created_at: row.created_at,
            position: row.created_position,
        };
        refusal.into()
    }

    /// The flow of a task as it was; `None` when it had no events yet.
    async fn rebuild(
        &self,
        context: &Context,
        task: TaskId,
        at: AsOf,
    ) -> Result<Option<(Rebuilt, OwnedSemaphorePermit)>, Error> {
        self.refuse_the_future(at).await?;
        let flow = self.flow_of(Argument::Task, task).await?;
        self.is_owned(context, flow, || Refusal::not_found(Argument::Task, task))
            .await?;
        let place = self.readings.begin_rebuild().await?;
        let reader = StreamReader::of(&*self.store, flow);
        let (mut past, mut version, mut moment) = (Past::default(), 0, None);
        loop {
            let mut piece = reader.after(version).await?;
            if let Some(gone) = piece.last().and_then(|last| placing::archived(last)) {
                return Err(Refusal::archived(Argument::Task, task, &gone).into());
            }
            let whole = piece.len();
            let end = piece.iter().position(|recorded| !at.includes(recorded));
            piece.truncate(end.unwrap_or(whole));
            let Some(last) = piece.last() else { break };
            version = last.version;
            moment = Some(Moment {
                position: last.position,
                time: last.time,
            });
            past = blocking(move || {
                let folded = piece.iter().try_for_each(|recorded| past.apply(recorded));
                folded.map(|()| past)
            })
            .await?
            .map_err(failed)?;
            if end.is_some() {
                break;
            }
        }
        let Some(moment) = moment else {
            return Ok(None);
        };
        let rebuilt = Rebuilt {
            store: self.store.clone(),
            flow,
            past,
            moment,
        };
        Ok(Some((rebuilt, place)))
    }

    async fn refuse_the_future(&self, at: AsOf) -> Result<(), Error> {
        let fault = match at {
            AsOf::Position(position) => {
                let head = self.head().await?;
                (position > head).then(|| {
                    let expected = format!("a position up to {head}, the last of the log");
                    let actual = Value::from(position);
                    Violation::of("as_of", "beyond the end of the log", expected, &actual)
                })
            }
            AsOf::Time(time) => {
                let now = self.clock.now();
                (time > now).then(|| {
                    let expected = format!("a time up to {now}, which is now");
                    let actual = Value::String(time.to_string());
                    Violation::of("as_of", "in the future", expected, &actual)
                })
            }
        };
        fault.map_or(Ok(()), |fault| Err(Error::invalid(vec![fault])))
    }
}

impl Rebuilt {
    /// Puts the payloads that were not kept into a view. Cost: one round trip.
    async fn complete(&self, view: &mut TaskView, sources: Sources) -> Result<(), Error> {
        let versions: Vec<_> = sources.versions().collect();
        StreamReader::of(&*self.store, self.flow)
            .versions(&versions, |recorded| Past::complete(view, &recorded.event))
            .await
    }

    /// The same for the first of some views; says for how many. All of them, unless their events
    /// are larger than [`PIECE_BYTES_MAX`]; at least one. Cost: O(views), one or two round trips.
    async fn complete_some(
        &self,
        views: &mut [TaskView],
        sources: &[Sources],
    ) -> Result<usize, Error> {
        let versions: Vec<_> = sources.iter().flat_map(|s| s.versions()).collect();
        let events = self
            .store
            .read_versions_within(self.flow, &versions, PIECE_BYTES_MAX)
            .await?;
        let mut events = &events[..];
        for (done, (view, sources)) in views.iter_mut().zip(sources).enumerate() {
            let Some((own, rest)) = events.split_at_checked(sources.versions().count()) else {
                if done > 0 {
                    return Ok(done);
                }
                self.complete(view, *sources).await?;
                return Ok(1);
            };
            own.iter().for_each(|e| Past::complete(view, &e.event));
            events = rest;
        }
        Ok(views.len())
    }
}

/// A tree of a rebuilt flow, given piece by piece.
struct Tree {
    rebuilt: Rebuilt,
    root: TaskId,
    /// What is still to be given, with depths, last first.
    left: Vec<(TaskId, usize)>,
}

impl Source for Tree {
    async fn next(&mut self) -> Result<Vec<Node>, Error> {
        let from = self.left.len().saturating_sub(PIECE_TASKS);
        let (mut views, mut sources) = (Vec::new(), Vec::new());
        for &(id, _) in self.left[from..].iter().rev() {
            let with_run = if id == self.root {
                WithRun::Yes
            } else {
                WithRun::No
            };
            let found = self.rebuilt.past.view(id, with_run);
            let (view, source) = found.expect("the order holds tasks of this state");
            views.push(view);
            sources.push(source);
        }
        let done = self.rebuilt.complete_some(&mut views, &sources).await?;
        views.truncate(done);
        let node = |task| {
            let (_, depth) = self.left.pop().expect("a task for each view");
            Node { depth, task }
        };
        Ok(views.into_iter().map(node).collect())
    }

    fn is_ended(&self) -> bool {
        self.left.is_empty()
    }

    fn as_of(&self) -> Option<Moment> {
        Some(self.rebuilt.moment)
    }
}

/// Work for the processor that must not keep other calls waiting.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Failure::Broken(format!("a flow was not rebuilt: {error}")).into())
}
