//! Views of runs: one run, and lists of runs. How they stand is in the read models, what was said in the log.

use super::super::api::runs::{
    ARTIFACT_BYTES_MAX, ARTIFACTS_MAX, Artifact, ArtifactPage, HISTORY_BYTES_MAX, HISTORY_MAX,
    HistoryEntry, ListRuns, PAGE_RUNS_DEFAULT, PAGE_RUNS_MAX, Question, ReadArtifacts, ReadRun,
    RunPage, RunStage, RunStatus, RunView, StatusMessage,
};
use super::super::error::{Error, Failure};
use super::super::readings::failed;
use super::super::{App, Context};
use serde_json::Value;
use std::sync::Arc;
use taskledger_domain::flow::{Event, OutputPart, Refusal, StatusCounts};
use taskledger_domain::limits::{CONTEXT_CHARS_MAX, MESSAGES_PER_RUN_MAX, SUSPENSIONS_PER_RUN_MAX};
use taskledger_domain::{FlowId, Recorded, RunId, TaskId, Version, Violation};
use taskledger_projections::{Made, Parts, RunCursor, RunFilter, RunSnapshot, TaskRow, Wait};

/// Things that were said in a run that are looked through for one message.
pub(super) const SAID_MAX: usize = 2 * MESSAGES_PER_RUN_MAX + SUSPENSIONS_PER_RUN_MAX;
/// Events that are read at once while a limit in bytes is watched.
pub(super) const CHUNK: usize = 32;
/// Parts of an output that are read at once: the rows that name them have watched the limit in bytes.
const OUTPUT_CHUNK: usize = 250;

/// How much of what was said is shown.
#[derive(Clone, Copy)]
struct HistoryBounds {
    entries_max: usize,
    bytes_max: usize,
}

impl App {
    /// A run as it is.
    ///
    /// # Errors
    /// [`Error`]; `Refused` for a run of somebody else as for one that does not exist.
    pub(in crate::application) async fn read_run(
        &self,
        context: &Context,
        read: ReadRun,
    ) -> Result<RunView, Error> {
        Ok(self.read_whole(context, read).await?.0)
    }

    /// The same, with all questions that wait, oldest first.
    pub(super) async fn read_whole(
        &self,
        context: &Context,
        read: ReadRun,
    ) -> Result<(RunView, Vec<Wait>), Error> {
        let ReadRun {
            run,
            history,
            artifacts,
        } = read;
        let bounds = HistoryBounds {
            entries_max: history.map_or(HISTORY_MAX, |n| n.min(HISTORY_MAX)),
            bytes_max: HISTORY_BYTES_MAX,
        };
        let parts = Parts {
            artifacts_max: if artifacts { ARTIFACTS_MAX } else { 0 },
            artifact_bytes_max: ARTIFACT_BYTES_MAX,
            said_max: bounds.entries_max,
        };
        let snapshot = self.run_snapshot(context, run, parts).await?;
        let waits = snapshot.waits.clone();
        Ok((self.shown(snapshot, bounds).await?, waits))
    }

    /// Results of a run, page by page.
    ///
    /// # Errors
    /// [`Error`]; `Refused` for a run of somebody else as for one that does not exist.
    pub(in crate::application) async fn artifacts_of(
        &self,
        context: &Context,
        read: ReadArtifacts,
    ) -> Result<ArtifactPage, Error> {
        let row = self.run_row(context, read.run).await?;
        self.await_flow(row.flow).await?;
        let page = self
            .queries
            .run_returned(read.run, read.behind, read.limit, ARTIFACT_BYTES_MAX);
        let page = page.await.map_err(failed)?;
        let reach = context.caller.reach();
        let page = page.filter(|it| reach.covers(it.run.owner.as_deref()));
        let page = page.ok_or(Refusal::RunNotFound { run: read.run })?;
        Ok(ArtifactPage {
            artifacts: self.made(page.run.flow, page.run.task, page.tasks).await?,
            next: page.next,
        })
    }

    /// What tasks of a run of `root` have made, with the parts of their outputs. Cost: a look at an event for each
    /// part.
    async fn made(
        &self,
        flow: FlowId,
        root: TaskId,
        tasks: Vec<Made>,
    ) -> Result<Vec<Artifact>, Error> {
        let mut artifacts = Vec::with_capacity(tasks.len());
        for made in tasks {
            let mut output = Vec::with_capacity(made.output.len());
            for chunk in made.output.chunks(OUTPUT_CHUNK) {
                let events = self.events_at(flow, chunk.to_vec()).await?;
                let parts = events.values().filter_map(|recorded| part(&recorded.event));
                output.extend(parts);
            }
            let of = artifact(&made.task, root);
            artifacts.push(Artifact {
                attempt: made.attempt,
                output,
                ..of
            });
        }
        Ok(artifacts)
    }

    /// Why a run has failed or was cancelled, if it has ended so.
    pub(super) async fn run_error(
        &self,
        flow: FlowId,
        run: RunId,
    ) -> Result<Option<Arc<str>>, Error> {
        self.await_flow(flow).await?;
        let parts = Parts {
            artifacts_max: 0,
            artifact_bytes_max: 0,
            said_max: 0,
        };
        let found = self.queries.run_snapshot(run, parts);
        Ok(found.await.map_err(failed)?.and_then(|it| error_of(&it)))
    }

    /// The rows of a run, when they show everything that was answered before.
    pub(super) async fn run_snapshot(
        &self,
        context: &Context,
        run: RunId,
        parts: Parts,
    ) -> Result<RunSnapshot, Error> {
        let row = self.run_row(context, run).await?;
        self.await_flow(row.flow).await?;
        let found = self.queries.run_snapshot(run, parts);
        let found = found.await.map_err(failed)?;
        let reach = context.caller.reach();
        let seen = found.filter(|it| reach.covers(it.run.owner.as_deref()));
        seen.ok_or_else(|| Refusal::RunNotFound { run }.into())
    }

    /// A run as it stands where it begins. `history`: entries at most.
    pub(super) fn at_start(recorded: &Recorded, history: Option<usize>) -> Option<RunView> {
        let Event::RunStarted(started) = &*recorded.event else {
            return None;
        };
        let origin = started.origin.as_deref();
        let context = origin.and_then(|it| it.context.as_deref());
        let history = match history {
            Some(0) => None,
            Some(_) | None => entry(recorded).map(|(entry, _)| entry),
        };
        Some(RunView {
            run: started.run_id,
            flow: recorded.flow,
            task: started.task_id,
            context: context.map_or_else(|| Arc::from(recorded.flow.to_string()), Arc::from),
            status: RunStatus {
                stage: RunStage::Submitted,
                at: recorded.time,
                message: None,
            },
            artifacts: Vec::new(),
            artifacts_left_out: 0,
            history: history.into_iter().collect(),
            history_left_out: 0,
            references: origin.map(|it| it.references.clone()).unwrap_or_default(),
            started_at: recorded.time,
            position: recorded.position,
        })
    }

    /// Adds what a run has returned that has ended, from memory; `None` when that does not hold all of it.
    pub(super) fn with_results(&self, mut view: RunView) -> Option<RunView> {
        // What is held is counted more roughly than what is read.
        let most = (ARTIFACTS_MAX, ARTIFACT_BYTES_MAX / 4);
        let rows = self.rows.returned(view.flow, view.run, most)?;
        let shown = rows
            .iter()
            .filter(|row| !row.is_group() || row.id == view.task);
        view.artifacts = shown.map(|row| artifact(row, view.task)).collect();
        Some(view)
    }

    /// A page of runs, those whose status is newest first.
    ///
    /// # Errors
    /// [`Error`].
    pub(in crate::application) async fn list_runs(
        &self,
        context: &Context,
        list: ListRuns,
    ) -> Result<RunPage, Error> {
        let size = list.page_size.unwrap_or(PAGE_RUNS_DEFAULT);
        let mut faults = Vec::new();
        if size == 0 || size > PAGE_RUNS_MAX {
            let expected = format!("1 to {PAGE_RUNS_MAX}");
            faults.push(Violation::of(
                "page_size",
                "is not valid",
                expected,
                &size.into(),
            ));
        }
        let filter = RunFilter {
            owner: context.caller.reach().owner().cloned(),
            // Nothing has a longer one.
            context: list
                .context
                .filter(|context| context.len() <= 4 * CONTEXT_CHARS_MAX),
            stage: list.stage,
            since: list.since,
        };
        let after = list.page_token.as_deref().map(|token| {
            let cursor = RunCursor::parse(token).ok();
            cursor.filter(|cursor| cursor.is_of(&filter)).ok_or(())
        });
        let after = after.transpose().unwrap_or_else(|()| {
            let token = Value::from(list.page_token.as_deref());
            let expected =
                "a token that a page of a list with the same filter has given this caller";
            faults.push(Violation::of(
                "page_token",
                "is not valid",
                expected,
                &token,
            ));
            None
        });
        if !faults.is_empty() {
            return Err(Error::invalid(faults));
        }
        self.await_seen(context).await?;
        let each = size as usize;
        let bounds = HistoryBounds {
            entries_max: list.history.map_or(HISTORY_MAX, |n| n.min(HISTORY_MAX)),
            bytes_max: HISTORY_BYTES_MAX / each,
        };
        let parts = Parts {
            artifacts_max: if list.artifacts {
                ARTIFACTS_MAX / each
            } else {
                0
            },
            artifact_bytes_max: ARTIFACT_BYTES_MAX / each,
            said_max: bounds.entries_max,
        };
        let page = self.queries.run_list(&filter, after, size, parts);
        let page = page.await.map_err(failed)?;
        let mut runs = Vec::with_capacity(page.runs.len());
        for snapshot in page.runs {
            runs.push(self.shown(snapshot, bounds).await?);
        }
        Ok(RunPage {
            runs,
            page_size: size,
            total: page.total,
            next: page.next.map(|next| next.to_string()),
        })
    }

    /// A run with the texts of what was said. Cost: a look at an event for each.
    async fn shown(&self, snapshot: RunSnapshot, bounds: HistoryBounds) -> Result<RunView, Error> {
        let error = error_of(&snapshot);
        let run = snapshot.run;
        let mut references = Vec::new();
        if run.has_origin {
            let mut events = self.events_at(run.flow, vec![run.version]).await?;
            let started = events.remove(&run.version);
            if let Some(Event::RunStarted(started)) = started.as_ref().map(|it| &*it.event)
                && let Some(origin) = &started.origin
            {
                references.clone_from(&origin.references);
            }
        }
        let message = match run.stage {
            RunStage::InputRequired | RunStage::AuthRequired => {
                let first = snapshot.waits.first();
                let question = self
                    .question(run.flow, first.map_or(0, |it| it.version))
                    .await?;
                Some(StatusMessage::Question(Box::new(question)))
            }
            RunStage::Submitted
            | RunStage::Working
            | RunStage::Completed
            | RunStage::Failed
            | RunStage::Cancelled
            | RunStage::Rejected => error.map(StatusMessage::Error),
        };
        let (history, cut) = self
            .said(run.flow, &snapshot.said, bounds.bytes_max)
            .await?;
        let by_limit = bounds.entries_max == HISTORY_MAX;
        Ok(RunView {
            run: run.run,
            flow: run.flow,
            task: run.task,
            context: run.context,
            status: RunStatus {
                stage: run.stage,
                at: run.status_at,
                message,
            },
            artifacts: self.made(run.flow, run.task, snapshot.artifacts).await?,
            artifacts_left_out: snapshot.artifacts_left_out,
            history,
            history_left_out: cut as u64 + snapshot.said_left_out * u64::from(by_limit),
            references,
            started_at: run.started_at,
            position: snapshot.position,
        })
    }

    /// The newest things that were said, as many as have up to `bytes_max`, oldest first; and how many older ones that
    /// leaves out.
    async fn said(
        &self,
        flow: FlowId,
        versions: &[Version],
        bytes_max: usize,
    ) -> Result<(Vec<HistoryEntry>, usize), Error> {
        let (mut newest_first, mut bytes) = (Vec::new(), 0);
        'read: for chunk in versions.rchunks(CHUNK) {
            let events = self.events_at(flow, chunk.to_vec()).await?;
            for recorded in events.values().rev() {
                let Some((entry, size)) = entry(recorded) else {
                    continue;
                };
                bytes += size;
                if bytes > bytes_max && !newest_first.is_empty() {
                    break 'read;
                }
                newest_first.push(entry);
            }
        }
        let cut = versions.len() - newest_first.len();
        newest_first.reverse();
        Ok((newest_first, cut))
    }

    /// The question that an event asks.
    pub(super) async fn question(&self, flow: FlowId, version: Version) -> Result<Question, Error> {
        let events = self.events_at(flow, vec![version]).await?;
        let question = events.get(&version).and_then(question);
        question.ok_or_else(|| {
            let text = format!("event {version} of flow {flow} asks nothing");
            Failure::Broken(text).into()
        })
    }
}

/// Why a run has failed or was cancelled: what its root says, else of one that has failed what has become of its tasks.
fn error_of(snapshot: &RunSnapshot) -> Option<Arc<str>> {
    match snapshot.run.stage {
        RunStage::Failed | RunStage::Rejected => {
            Some(why_failed(snapshot.error.clone(), snapshot.run.counts))
        }
        RunStage::Cancelled => snapshot.error.clone(),
        RunStage::Submitted
        | RunStage::Working
        | RunStage::InputRequired
        | RunStage::AuthRequired
        | RunStage::Completed => None,
    }
}

fn why_failed(error: Option<Arc<str>>, counts: StatusCounts) -> Arc<str> {
    error.unwrap_or_else(|| {
        let StatusCounts {
            pending,
            in_progress,
            completed,
            failed,
            cancelled,
        } = counts;
        let open = pending + in_progress;
        let total = open + completed + failed + cancelled;
        Arc::from(format!(
            "{completed} of {total} tasks completed, {failed} failed, {cancelled} cancelled, {open} not done"
        ))
    })
}

/// The part of an output that an event holds.
fn part(event: &Event) -> Option<Arc<OutputPart>> {
    if let Event::TaskOutputAppended(e) = event {
        return Some(Arc::new(e.part.clone()));
    }
    None
}

/// What a task of a run of `root` has made, parts of its output left out.
pub(super) fn artifact(row: &TaskRow, root: TaskId) -> Artifact {
    Artifact {
        task: row.id,
        parent: row.parent_id,
        is_result: row.id == root,
        name: row.name.clone(),
        attempt: row.attempt,
        output: Vec::new(),
        result: row.result.clone(),
        at: row.completed_at.unwrap_or(row.updated_at),
    }
}

/// What an event says in the history of a run, and its bytes.
fn entry(recorded: &Recorded) -> Option<(HistoryEntry, usize)> {
    let message = if let Event::RunStarted(e) = &*recorded.event {
        e.origin.as_ref()?.message.clone()?
    } else if let Event::MessageReceived(e) = &*recorded.event {
        e.message.clone()
    } else {
        let question = question(recorded)?;
        let bytes = question.question.as_str().len();
        return Some((HistoryEntry::Question(Box::new(question)), bytes));
    };
    let bytes = message.as_str().len();
    let at = recorded.time;
    Some((HistoryEntry::Message { message, at }, bytes))
}

fn question(recorded: &Recorded) -> Option<Question> {
    let Event::TaskSuspended(e) = &*recorded.event else {
        return None;
    };
    Some(Question {
        task: e.task_id,
        suspension: e.suspension_id,
        asks: e.asks,
        question: e.question.clone(),
        at: recorded.time,
        expires_at: e.expires_at,
    })
}
