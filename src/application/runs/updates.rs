//! Typed updates of a run, made from the notices of its flow in the order of the log.
//!
//! A stream begins at a snapshot, and at the place of the log that the snapshot shows; or behind the place where an
//! earlier stream ended: then the notices since the start of the run are read once more, and told from that place on.
//! So there is no gap and no repetition, on any node, after any restart.

use super::super::api::runs::{
    Artifact, Piece, ReadRun, RunChange, RunItem, RunPlace, RunStage, RunStatus, RunUntil,
    RunUpdate, RunUpdates, RunView, StatusMessage, WatchRun, WatchedRun,
};
use super::super::error::{Error, Failure};
use super::super::readings::failed;
use super::super::{App, Consistency, Context};
use super::view::artifact;
use crate::subscription::cursor::{Cursor, PARTS_ALL};
use crate::subscription::live::Published;
use crate::subscription::notice::Kind;
use crate::subscription::run_fold::{Fold, FoldChange, FoldStatus};
use crate::subscription::runs::covered;
use crate::subscription::stream::{
    Batch, Covered, Filter, From, Item, Notices, Reader, Reset, Until,
};
use futures_util::stream::unfold;
use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use taskledger_domain::flow::{Argument, Event, Refusal, RunKind};
use taskledger_domain::{FlowId, Position, Recorded, RunId, TaskId, Timestamp};
use taskledger_projections::{Parts, RunSnapshot};
use tokio_stream::StreamExt;

/// Nothing beside how the run stands.
const BARE: Parts = Parts {
    artifacts_max: 0,
    artifact_bytes_max: 0,
    said_max: 0,
};

impl App {
    /// A run, and what happens to it. `held` is kept as long as the stream is.
    ///
    /// # Errors
    /// [`Error`]; `Refused` for a run of somebody else as for one that does not exist. Of one that has ended the
    /// snapshot is all.
    pub(in crate::application) async fn watch_updates(
        self: &Arc<Self>,
        context: &Context,
        watch: WatchRun,
        held: impl Any + Send,
    ) -> Result<WatchedRun, Error> {
        let run = watch.run;
        if let Some(begun) = watch.begun.filter(|_| watch.behind.is_none())
            && let Some(started) = self.start_of_run(begun.flow, begun.run).await?
            && let Some(view) = Self::at_start(&started, watch.history)
        {
            return self
                .from_start(context, &watch, (&started, view), held)
                .await;
        }
        let bare = self.run_snapshot(context, run, BARE).await?;
        let started = self.started(&bare).await?;
        let mut reset = None;
        if let Some(text) = watch.behind.as_deref() {
            match RunPlace::parse(text) {
                Some(place) => {
                    let (notices, refused) = self.notices(context, &started, None).await?;
                    let known = self.is_known(&started, place.cursor).await?;
                    if refused.is_none() && known {
                        let fold = Fold::begun(bare.run.flow, bare.run.task, started.time);
                        let follower = self.follower(&watch, fold, notices, place, held);
                        return Ok(WatchedRun {
                            snapshot: None,
                            context: bare.run.context,
                            cursor: place,
                            reset: None,
                            updates: RunUpdates::new(unfold(follower, Follower::next)),
                        });
                    }
                    reset = refused.or(Some(Reset::AnotherLog));
                }
                None => reset = Some(Reset::Malformed),
            }
        }
        let read = ReadRun {
            run,
            history: watch.history,
            artifacts: true,
        };
        let (view, waits) = self.read_whole(context, read).await?;
        let from = From::Position(view.position);
        let (notices, refused) = self.notices(context, &started, Some(from)).await?;
        let cursor = Cursor {
            position: view.position,
            parts: PARTS_ALL,
            ..Cursor::BEGINNING
        };
        let place = RunPlace { cursor, told: 0 };
        let fold = Fold::begun(view.flow, view.task, started.time);
        let fold = fold.standing(view.status.stage, view.status.at, waits.into());
        let mut follower = self.follower(&watch, fold, notices, place, held);
        follower.skips_to = view.position;
        follower.ended = view.status.stage.is_end() || follower.ends_at(view.status.stage);
        Ok(WatchedRun {
            context: view.context.clone(),
            cursor: place,
            snapshot: Some(Box::new(view)),
            reset: reset.or(refused),
            updates: RunUpdates::new(unfold(follower, Follower::next)),
        })
    }

    /// The whole stream of a run, which begins at its start. Nothing is read but the log.
    async fn from_start(
        self: &Arc<Self>,
        context: &Context,
        watch: &WatchRun,
        (started, view): (&Recorded, RunView),
        held: impl Any + Send,
    ) -> Result<WatchedRun, Error> {
        let (notices, reset) = self.notices(context, started, None).await?;
        let cursor = Cursor::behind(started, PARTS_ALL);
        let place = RunPlace { cursor, told: 0 };
        let fold = Fold::begun(view.flow, view.task, started.time);
        let follower = self.follower(watch, fold, notices, place, held);
        Ok(WatchedRun {
            context: view.context.clone(),
            cursor: place,
            snapshot: Some(Box::new(view)),
            reset,
            updates: RunUpdates::new(unfold(follower, Follower::next)),
        })
    }

    /// The event that started a run.
    async fn started(&self, of: &RunSnapshot) -> Result<Recorded, Error> {
        let version = of.run.version;
        let mut events = self.events_at(of.run.flow, vec![version]).await?;
        let gone = || Refusal::RunNotFound { run: of.run.run };
        events.remove(&version).ok_or_else(|| gone().into())
    }

    /// Whether a cursor was made of an event of this run's flow, at or behind its start.
    async fn is_known(&self, started: &Recorded, cursor: Cursor) -> Result<bool, Error> {
        if cursor.position < started.position {
            return Ok(false);
        }
        if cursor.version == 0 {
            // The place of a snapshot: of any flow's event.
            return Ok(cursor.position <= self.head().await?);
        }
        let events = self.events_at(started.flow, vec![cursor.version]).await?;
        let event = events.get(&cursor.version);
        Ok(event.is_some_and(|recorded| cursor.names(recorded)))
    }

    /// The notices of a run. `from`: `None` for its start. Those of a run of some tasks of its flow are always read
    /// from there, because others may have joined it.
    async fn notices(
        &self,
        context: &Context,
        recorded: &Recorded,
        from: Option<From>,
    ) -> Result<(Notices, Option<Reset>), Error> {
        let flow = recorded.flow;
        let Event::RunStarted(started) = &*recorded.event else {
            let version = recorded.version;
            let text = format!("event {version} of flow {flow} begins no run");
            return Err(Failure::Broken(text).into());
        };
        // A retry of the root leaves out what another run may be busy with.
        let whole = started.task_id == flow.root() && started.kind == RunKind::Execute;
        let tasks = match whole {
            true => None,
            false => Some(covered(&*self.store, flow, started, recorded.version).await?),
        };
        let start = From::Cursor(Cursor::behind(recorded, PARTS_ALL));
        let from = from.filter(|_| whole).unwrap_or(start);
        let filter = Filter {
            flow: Some(flow),
            run: Some(Covered {
                run: started.run_id,
                tasks,
            }),
            user: context.caller.reach().owner().cloned(),
            ..Filter::default()
        };
        let until = Until::RunEnds(started.run_id);
        let (reader, reset) = Reader::begin(self.live.clone(), filter, from, until).await?;
        Ok((reader.into(), reset))
    }

    fn follower(
        self: &Arc<Self>,
        watch: &WatchRun,
        fold: Fold,
        mut notices: Notices,
        behind: RunPlace,
        held: impl Any + Send,
    ) -> Box<Follower> {
        notices.hold(held);
        Box::new(Follower {
            app: self.clone(),
            run: watch.run,
            until: watch.until,
            results: watch.results,
            parts: watch.parts,
            nodes: watch.nodes,
            fold,
            notices,
            behind,
            skips_to: 0,
            pending: VecDeque::new(),
            ready: VecDeque::new(),
            ended: false,
        })
    }
}

/// Reads one watcher's updates.
struct Follower {
    app: Arc<App>,
    run: RunId,
    until: RunUntil,
    results: bool,
    parts: bool,
    nodes: bool,
    fold: Fold,
    notices: Notices,
    /// What lies before is known.
    behind: RunPlace,
    /// What stands up to here has changed the fold already.
    skips_to: Position,
    /// Notices that were not looked at yet.
    pending: VecDeque<Arc<Published>>,
    ready: VecDeque<RunItem>,
    ended: bool,
}

impl Follower {
    fn ends_at(&self, stage: RunStage) -> bool {
        stage.is_end() || (self.until == RunUntil::EndedOrInput && stage == RunStage::InputRequired)
    }

    async fn next(mut self: Box<Self>) -> Option<(Result<RunItem, Failure>, Box<Self>)> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some((Ok(item), self));
            }
            if self.ended {
                return None;
            }
            if let Some(published) = self.pending.front().cloned() {
                if let Err(failure) = self.look_at(&published).await {
                    return Some((Err(failure), self));
                }
                self.pending.pop_front();
                continue;
            }
            match self.notices.next().await? {
                Ok(Item::Silence) => return Some((Ok(RunItem::Silence), self)),
                Ok(Item::Batch(Batch::Reset(reset))) => {
                    self.ended = true;
                    return Some((Ok(RunItem::Reset(reset)), self));
                }
                Ok(Item::Batch(batch)) => self.pending.extend(batch.notices().iter().cloned()),
                Err(error) => return Some((Err(Failure::Store(error)), self)),
            }
        }
    }

    /// Makes updates of a notice. Nothing has changed when what they say cannot be read.
    async fn look_at(&mut self, published: &Published) -> Result<(), Failure> {
        let (notice, place) = (&published.notice, published.cursor);
        if place.position <= self.skips_to {
            return Ok(());
        }
        let mut fold = self.fold.clone();
        let asks = match notice.kind {
            Kind::Suspended => {
                let question = self.app.question(fold.flow, notice.sequence).await;
                Some(question.map_err(unread)?.asks)
            }
            Kind::StatusUpdate
            | Kind::ProgressUpdate
            | Kind::OutputAppended
            | Kind::Completed
            | Kind::Failed
            | Kind::Cancelled
            | Kind::SuspensionReminder
            | Kind::SuspensionEnded
            | Kind::ClaimRejected
            | Kind::CompletionRejected
            | Kind::RunCompleted
            | Kind::RunFailed
            | Kind::RunCancelled => None,
        };
        let behind = self.behind;
        let is_known = |told: u8| match behind.cursor.version {
            // The place of a snapshot.
            0 => place.position <= behind.cursor.position,
            _ if place == behind.cursor && behind.told > 0 => told <= behind.told,
            _ => place <= behind.cursor,
        };
        let mut all = fold.take(notice, self.run, asks);
        all.retain(|told| match told {
            FoldChange::Status(_) => true,
            FoldChange::Output { .. } => self.parts,
            FoldChange::Artifact { .. } => self.results,
            FoldChange::Node(_) => self.nodes,
        });
        let (last, mut ended) = (all.len(), false);
        let mut updates = Vec::with_capacity(last);
        for (i, told) in all.into_iter().enumerate() {
            let number = u8::try_from(i + 1).unwrap_or(u8::MAX);
            if is_known(number) {
                continue;
            }
            let change = match told {
                FoldChange::Status(stand) => {
                    let of = (self.run, fold.flow);
                    let status = status(&self.app, of, stand, place.position).await?;
                    ended |= self.ends_at(status.stage);
                    Some(RunChange::Status(status))
                }
                FoldChange::Output {
                    task,
                    attempt,
                    number,
                    part,
                } => Some(RunChange::Artifact(Piece {
                    artifact: Artifact {
                        task,
                        parent: notice.parent_id,
                        is_result: task == fold.task,
                        name: notice.name.clone().unwrap_or_default(),
                        attempt,
                        output: vec![part.0],
                        result: None,
                        at: notice.timestamp,
                    },
                    appends: number > 1,
                    is_last: false,
                })),
                FoldChange::Artifact { task, parts } => {
                    let of = (fold.flow, fold.task);
                    let at = (place.position, notice.timestamp);
                    let artifact = returned(&self.app, of, task, at).await?;
                    artifact.map(|artifact| {
                        RunChange::Artifact(Piece {
                            artifact,
                            appends: parts > 0,
                            is_last: true,
                        })
                    })
                }
                FoldChange::Node(change) => Some(RunChange::Node(change)),
            };
            let cursor = RunPlace {
                cursor: place,
                told: if i + 1 == last { 0 } else { number },
            };
            updates.extend(change.map(|change| RunUpdate {
                cursor,
                at: notice.timestamp,
                change,
            }));
        }
        let items = updates.into_iter().map(|it| RunItem::Update(Box::new(it)));
        self.ready.extend(items);
        self.ended |= ended;
        self.fold = fold;
        Ok(())
    }
}

/// How a run stands, in words. A notice may come before the rows show its event, which is at `position`.
async fn status(
    app: &App,
    (run, flow): (RunId, FlowId),
    stand: FoldStatus,
    position: Position,
) -> Result<RunStatus, Failure> {
    let message = match (stand.wait, stand.stage) {
        (Some(wait), _) => {
            let question = app.question(flow, wait.version).await;
            let question = question.map_err(unread)?;
            Some(StatusMessage::Question(Box::new(question)))
        }
        (None, RunStage::Failed | RunStage::Cancelled | RunStage::Rejected) => {
            let error = async {
                app.await_position(position).await?;
                app.run_error(flow, run).await
            };
            error.await.map_err(unread)?.map(StatusMessage::Error)
        }
        (
            None,
            RunStage::Submitted
            | RunStage::Working
            | RunStage::InputRequired
            | RunStage::AuthRequired
            | RunStage::Completed,
        ) => None,
    };
    Ok(RunStatus {
        stage: stand.stage,
        at: stand.at,
        message,
    })
}

/// The result of a task of a run of `root`; none of a group that is not the root. A notice may come before the rows
/// show its event: what it returned is waited for.
async fn returned(
    app: &App,
    (flow, root): (FlowId, TaskId),
    task: TaskId,
    (position, at): (Position, Timestamp),
) -> Result<Option<Artifact>, Failure> {
    let held = match app.decides(flow) {
        true => app.rows.rows(flow, [task]).and_then(|mut rows| rows.pop()),
        false => None,
    };
    let row = match held.filter(|row| row.result.is_some()) {
        Some(row) => row,
        None => {
            let read = async {
                app.await_position(position).await?;
                app.await_task(Argument::Task, task, Consistency::Strong)
                    .await?;
                app.queries.get(task).await.map_err(failed)
            };
            match read.await.map_err(unread)? {
                Some(found) => found.row,
                None => return Ok(None),
            }
        }
    };
    if row.is_group() && task != root {
        return Ok(None);
    }
    let returned = artifact(&row, root);
    let has_result = returned.result.is_some();
    Ok(has_result.then_some(Artifact { at, ..returned }))
}

/// What was to be said could not be read; asking again may help.
fn unread(error: Error) -> Failure {
    if let Error::Failed(failure) = error {
        return failure;
    }
    Failure::ReadModel(error.to_string())
}
