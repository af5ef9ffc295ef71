//! `as_of`: tasks as they were, rebuilt from the log by the fold that feeds the read models.
//!
//! A flow's events are folded in pieces, on threads that may be kept busy, up to the moment that
//! was asked for. Time means the time at which events were decided, the one that histories and
//! tasks show: the first event that is later, and all behind it, are left out. A position inside of
//! one append shows what nobody saw then, for example a failure whose retry stands right behind it.

use super::App;
use super::commands::{Answer, raw};
use super::error::{Error, Failure};
use super::paging::Pieces;
use super::queries::{READ_WAIT, failed};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;
use taskledger_domain::flow::Rejection;
use taskledger_domain::violation::Violation;
use taskledger_domain::{FlowId, Position, Recorded, TaskId, Timestamp};
use taskledger_projections::{self as projections, Past, TREE_BYTES_MAX, TaskView, WithRun};
use taskledger_projections::{Sources, TreeWriter};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Flows that are rebuilt at once: each may hold a state of 100,000 tasks, and an answer.
pub const REBUILDS_MAX: usize = 2;
/// Tasks of a tree whose payloads are in memory at once: at 4 MiB each, 128 MiB.
const CHUNK_TASKS: usize = 32;

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

/// Bounds how many flows are rebuilt at once.
#[derive(Debug)]
pub struct Rebuilds(Arc<Semaphore>);

impl Default for Rebuilds {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(REBUILDS_MAX)))
    }
}

impl Rebuilds {
    /// The right to rebuild one flow, until it is dropped.
    ///
    /// # Errors
    /// `Busy` after two seconds.
    pub async fn begin(&self) -> Result<OwnedSemaphorePermit, Error> {
        let permit = self.0.clone().acquire_owned();
        match tokio::time::timeout(READ_WAIT, permit).await {
            Ok(permit) => Ok(permit.expect("nobody closes the semaphore")),
            Err(_) => Err(Error::Busy {
                reason: format!("{REBUILDS_MAX} flows are being rebuilt as they were"),
                retry_after_ms: 1000,
            }),
        }
    }
}

/// The last event of the flow that an answer contains.
#[derive(Debug, Clone, Copy, Serialize)]
struct Moment {
    position: Position,
    time: Timestamp,
}

#[derive(Serialize)]
struct Then<'a> {
    #[serde(flatten)]
    task: &'a TaskView,
    as_of: Moment,
}

struct Rebuilt {
    past: Past,
    moment: Moment,
    _permit: OwnedSemaphorePermit,
}

impl App {
    /// `tasks.get` with `as_of`. Cost: O(events of the flow until then).
    ///
    /// # Errors
    /// [`Error`]; `NotFound` for a task that did not exist then, `Invalid` for a moment that has
    /// not come yet.
    pub async fn get_as_of(&self, task: TaskId, at: AsOf) -> Answer {
        let (flow, rebuilt) = self.rebuild(task, at).await?;
        let Some((mut view, sources)) = rebuilt.past.view(task, WithRun::Yes) else {
            return Err(Rejection::not_found("task_id", task).into());
        };
        self.complete(flow, std::slice::from_mut(&mut view), &[sources])
            .await?;
        Ok(raw(&Then {
            task: &view,
            as_of: rebuilt.moment,
        }))
    }

    /// `tasks.tree` with `as_of`. Cost: O(events of the flow until then).
    ///
    /// # Errors
    /// As [`Self::get_as_of`]; `Invalid` too for a tree that is too large for an answer.
    pub async fn tree_as_of(&self, task: TaskId, at: AsOf) -> Answer {
        let (flow, rebuilt) = self.rebuild(task, at).await?;
        let Rebuilt {
            past,
            moment,
            _permit,
        } = rebuilt;
        let (past, order) = blocking(move || {
            let order = past.depth_first(task);
            (past, order)
        })
        .await?;
        if order.is_empty() {
            return Err(Rejection::not_found("task_id", task).into());
        }
        let mut writer = TreeWriter::new();
        for chunk in order.chunks(CHUNK_TASKS) {
            let with_run = |id| {
                if id == task {
                    WithRun::Yes
                } else {
                    WithRun::No
                }
            };
            let (mut views, sources): (Vec<_>, Vec<_>) = chunk
                .iter()
                .filter_map(|&(id, _)| past.view(id, with_run(id)))
                .unzip();
            self.complete(flow, &mut views, &sources).await?;
            for (view, &(_, depth)) in views.iter().zip(chunk) {
                writer.push(depth, view);
            }
            if writer.len() > TREE_BYTES_MAX {
                let limit = TREE_BYTES_MAX;
                return Err(failed(projections::Error::TooLarge { limit }));
            }
            tokio::task::yield_now().await;
        }
        let text = String::from_utf8(writer.finish_with("as_of", &moment))
            .map_err(|e| Failure::Broken(e.to_string()))?;
        RawValue::from_string(text)
            .map_err(|e| Failure::Broken(format!("a tree is no JSON: {e}")).into())
    }

    /// The flow of a task as it was.
    async fn rebuild(&self, task: TaskId, at: AsOf) -> Result<(FlowId, Rebuilt), Error> {
        self.refuse_the_future(at)?;
        let flow = self.flow_of("task_id", task).await?;
        let permit = self.rebuilds.begin().await?;
        let mut pieces = Pieces::of(&*self.store, flow);
        let (mut past, mut version, mut moment) = (Past::default(), 0, None);
        loop {
            let mut piece = pieces.after(version).await?;
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
            return Err(Rejection::not_found("task_id", task).into());
        };
        let rebuilt = Rebuilt {
            past,
            moment,
            _permit: permit,
        };
        Ok((flow, rebuilt))
    }

    fn refuse_the_future(&self, at: AsOf) -> Result<(), Error> {
        let fault = match at {
            AsOf::Position(position) => {
                let head = *self.store.watch().borrow();
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

    /// Puts payloads that were not kept into views. Cost: O(views), one round trip.
    async fn complete(
        &self,
        flow: FlowId,
        views: &mut [TaskView],
        sources: &[Sources],
    ) -> Result<(), Error> {
        let versions: Vec<_> = sources.iter().flat_map(|s| s.versions()).collect();
        if versions.is_empty() {
            return Ok(());
        }
        let mut events = self.store.read_versions(flow, &versions).await?.into_iter();
        for (view, sources) in views.iter_mut().zip(sources) {
            for recorded in events.by_ref().take(sources.versions().count()) {
                Past::complete(view, &recorded.event);
            }
        }
        Ok(())
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
