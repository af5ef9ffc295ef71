//! Streams of what happens: which one answers which wish, and where it begins.
//!
//! Owns: finding the flow, the run and the place that a watcher means, and the snapshot that a
//! subscription begins with. What a stream then gives is `subscription::stream`'s.

use super::App;
use super::commands::raw;
use super::error::{Error, Failure};
pub use super::history::Scope;
use super::queries::Consistency;
use super::readings::failed;
use super::stream_reader::StreamReader;
use crate::store::PIECE_EVENTS_MAX;
use crate::subscription::cursor::{Cursor, PARTS_ALL};
use crate::subscription::live::Frame;
use crate::subscription::notice::Kind;
use crate::subscription::stream::{Covered, Filter, From, Reset, Stream, Until};
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::sync::Arc;
use taskledger_domain::flow::{Event, Rejection, RunKind, RunStarted};
use taskledger_domain::violation::Violation;
use taskledger_domain::{FlowId, Recorded, RunId, TaskId, Version};
use taskledger_projections::{RunView, Snapshot, TaskView, covers};

/// What a watcher asks to be told of; all of it must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// Only this flow.
    pub flow: Option<FlowId>,
    /// Only this task.
    pub task: Option<TaskId>,
    /// Only flows of this user.
    pub user: Option<Arc<str>>,
    /// Only these kinds.
    pub kinds: Option<Vec<Kind>>,
}

/// A subscription to a task.
#[derive(Debug)]
pub struct Subscribed {
    /// The answer to the call.
    pub answer: Box<RawValue>,
    /// What happens behind it.
    pub stream: Stream,
}

#[derive(Serialize)]
struct Answer<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<&'a TaskView>,
    root_task_id: TaskId,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resumed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    cursor: String,
}

impl App {
    /// What happens from `from` on, without an end; and why it begins now instead, if it does.
    ///
    /// # Errors
    /// [`Error`]; `NotFound` for a flow or a task that never existed.
    pub async fn watch(&self, asked: Asked, from: From) -> Result<(Stream, Option<Reset>), Error> {
        let mut flow = asked.flow;
        if let Some(task) = asked.task {
            let of = self.flow_of("task", task).await?;
            if let Some(named) = flow.filter(|named| *named != of) {
                let expected = format!("the flow of the task, `{of}`, or none");
                let actual = named.to_string().into();
                let fault = Violation::of("flow", "not the task's flow", expected, &actual);
                return Err(Error::invalid(vec![fault]));
            }
            flow = Some(of);
        } else if let Some(flow) = flow
            && self.store.stream_head(flow).await?.is_none()
        {
            return Err(Rejection::not_found("flow", flow.root()).into());
        }
        let filter = Filter {
            flow,
            task: asked.task,
            user: asked.user,
            kinds: asked.kinds,
            run: None,
        };
        let live = self.live.clone();
        Ok(Stream::begin(live, filter, from, Until::Forever).await?)
    }

    /// What happens in a run, from its start to its end, whether these are in the past or not. Cost:
    /// O(events since its start); for a run whose root is not the flow's, one pass over the flow.
    ///
    /// # Errors
    /// [`Error`]; `Failed` when the flow has no such run.
    pub async fn watch_run(&self, flow: FlowId, run: RunId) -> Result<Stream, Error> {
        let begins =
            |event: &Event| matches!(event, Event::RunStarted(started) if started.run_id == run);
        let Some(at) = self.latest(flow, begins).await? else {
            let text = format!("run {run} of flow {flow} has no beginning");
            return Err(Failure::Broken(text).into());
        };
        let Event::RunStarted(started) = at.event.as_ref() else {
            unreachable!("it was looked for");
        };
        // A retry of the root leaves out what another run may be busy with.
        let whole = started.task_id == flow.root() && started.kind == RunKind::Execute;
        let tasks = if whole {
            None
        } else {
            Some(self.covered(flow, started, at.version).await?)
        };
        let filter = Filter {
            flow: Some(flow),
            run: Some(Covered { run, tasks }),
            ..Filter::default()
        };
        let from = From::Cursor(Cursor::behind(&at, PARTS_ALL));
        let (stream, _) =
            Stream::begin(self.live.clone(), filter, from, Until::RunEnds(run)).await?;
        Ok(stream)
    }

    /// `tasks.subscribe`: the task as it is at an exactly known place, and what happens in its flow
    /// behind that place until nothing runs any more.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn subscribe(&self, task: TaskId, scope: Scope) -> Result<Subscribed, Error> {
        let flow = self
            .await_task("task_id", task, Consistency::Strong)
            .await?;
        let (snapshot, stream) = self.begun_at_snapshot(flow, task, scope).await?;
        let answer = raw(&Answer {
            task: Some(&snapshot.task),
            root_task_id: flow.root(),
            run: snapshot.task.run,
            resumed: None,
            reason: None,
            cursor: stream.place().to_string(),
        });
        Ok(Subscribed { answer, stream })
    }

    /// `tasks.resubscribe`: goes on behind the cursor of an earlier stream; if there is no such place,
    /// says why and begins as [`Self::subscribe`] does.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn resubscribe(
        &self,
        task: TaskId,
        scope: Scope,
        cursor: &str,
    ) -> Result<Subscribed, Error> {
        let flow = self
            .await_task("task_id", task, Consistency::Strong)
            .await?;
        let reset = match Cursor::parse(cursor) {
            Err(_) => Reset::Malformed,
            Ok(cursor) => match self.begun(flow, task, scope, From::Cursor(cursor)).await? {
                (_, Some(reset)) => reset,
                (stream, None) => {
                    let summary = self.queries.flow_summary(flow).await.map_err(failed)?;
                    let open_runs = summary.map_or(0, |summary| summary.open_runs);
                    let stream = self.ending(flow, stream, open_runs).await?;
                    let answer = raw(&Answer {
                        task: None,
                        root_task_id: flow.root(),
                        run: None,
                        resumed: Some(true),
                        reason: None,
                        cursor: stream.place().to_string(),
                    });
                    return Ok(Subscribed { answer, stream });
                }
            },
        };
        let (snapshot, stream) = self.begun_at_snapshot(flow, task, scope).await?;
        let answer = raw(&Answer {
            task: Some(&snapshot.task),
            root_task_id: flow.root(),
            run: snapshot.task.run,
            resumed: Some(false),
            reason: Some(reset.as_str()),
            cursor: stream.place().to_string(),
        });
        Ok(Subscribed { answer, stream })
    }

    /// The task as it is, and the stream of what happens behind that.
    async fn begun_at_snapshot(
        &self,
        flow: FlowId,
        task: TaskId,
        scope: Scope,
    ) -> Result<(Snapshot, Stream), Error> {
        let found = self.queries.snapshot(task).await.map_err(failed)?;
        let snapshot = found.ok_or_else(|| Rejection::not_found("task_id", task))?;
        let from = From::Position(snapshot.position);
        let (stream, _) = self.begun(flow, task, scope, from).await?;
        let stream = self.ending(flow, stream, snapshot.open_runs).await?;
        Ok((snapshot, stream))
    }

    async fn begun(
        &self,
        flow: FlowId,
        task: TaskId,
        scope: Scope,
        from: From,
    ) -> Result<(Stream, Option<Reset>), Error> {
        let filter = Filter {
            flow: Some(flow),
            task: match scope {
                Scope::Task => Some(task),
                Scope::Flow => None,
            },
            ..Filter::default()
        };
        let live = self.live.clone();
        Ok(Stream::begin(live, filter, from, Until::NothingRuns).await?)
    }

    /// A stream of a flow in which nothing runs, and whose last run ended before the stream's place,
    /// ends with the end of that run. To be called when the stream has begun, so that a run that begins
    /// meanwhile is seen by one of both.
    async fn ending(&self, flow: FlowId, stream: Stream, open_runs: u32) -> Result<Stream, Error> {
        if open_runs > 0 {
            return Ok(stream);
        }
        let of_runs = |event: &Event| matches!(event, Event::RunStarted(_) | Event::RunEnded(_));
        let last = self.latest(flow, of_runs).await?;
        let end = last.and_then(|recorded| Frame::of(&recorded).next());
        Ok(match end {
            Some(frame)
                if frame.cursor <= stream.place() && frame.ended.is_some_and(|e| e.others == 0) =>
            {
                stream.ending_with(frame)
            }
            Some(_) | None => stream,
        })
    }

    /// The newest event of a flow that `is` it. Cost: O(events behind it).
    async fn latest(
        &self,
        flow: FlowId,
        is: impl Fn(&Event) -> bool,
    ) -> Result<Option<Arc<Recorded>>, Error> {
        let reader = StreamReader::of(&*self.store, flow);
        let Some((head, _)) = self.store.stream_head(flow).await? else {
            return Ok(None);
        };
        let mut before = head + 1;
        loop {
            let piece = reader.before(before, PIECE_EVENTS_MAX).await?;
            let Some(oldest) = piece.last() else {
                return Ok(None);
            };
            before = oldest.version;
            if let Some(found) = piece.into_iter().find(|recorded| is(&recorded.event)) {
                return Ok(Some(found));
            }
        }
    }

    /// The tasks that a run covers from its start on.
    async fn covered(
        &self,
        flow: FlowId,
        started: &RunStarted,
        at: Version,
    ) -> Result<HashSet<TaskId>, Error> {
        let reader = StreamReader::of(&*self.store, flow);
        let (mut tasks, mut after) = (HashSet::new(), 0);
        while after < at {
            let piece = reader.after(after).await?;
            let Some(last) = piece.last() else { break };
            after = last.version;
            for recorded in piece.iter().filter(|recorded| recorded.version < at) {
                if let Event::TaskCreated(created) = recorded.event.as_ref()
                    && covers(&started.covers, created.ordinal)
                {
                    tasks.insert(created.task_id);
                }
            }
        }
        Ok(tasks)
    }
}
