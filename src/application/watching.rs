//! Opens streams of notices: decides which stream answers a request, and where it begins.
//!
//! Owns: finding the flow, the run and the place that a watcher means (`subscribing`: with a snapshot,
//! and with an end). What a stream then gives is `subscription::stream`'s.

mod subscribing;

use super::App;
use super::api::{Watch, Watching};
use super::context::Context;
use super::error::{Error, Failure};
use super::ownership::{Ownership, Place};
use super::positions::Positions;
use super::stream_reader::StreamReader;
use crate::store::PIECE_EVENTS_MAX;
use crate::subscription::cursor::{Cursor, PARTS_ALL};
use crate::subscription::live::Reads;
use crate::subscription::runs::covered;
use crate::subscription::stream::{Covered, Filter, From, Notices, Reader, Until};
use futures_util::future::{self, BoxFuture, FutureExt};
use std::sync::Arc;
use taskledger_domain::flow::{Argument, Event, Refusal, RunKind};
use taskledger_domain::violation::Violation;
use taskledger_domain::{FlowId, Position, Recorded, RunId};

/// Reads of flows that this node decides show what it has confirmed; those of others wait for the read models
/// by themselves.
#[derive(Debug)]
pub struct ConfirmedReads {
    /// What it has confirmed.
    pub positions: Arc<Positions>,
    /// Which flows those are.
    pub ownership: Arc<dyn Ownership>,
}

impl Reads for ConfirmedReads {
    fn show(&self, flow: FlowId, position: Position) -> BoxFuture<'_, ()> {
        match self.ownership.of(flow) {
            Place::Here(_) => self.positions.reaches(flow, position).boxed(),
            Place::There(_) | Place::Nobody => future::ready(()).boxed(),
        }
    }
}

impl App {
    /// What happens from `from` on, without an end; and why it begins now instead, if it does.
    ///
    /// # Errors
    /// [`Error`]; `NotFound` for a flow or a task that never existed.
    pub async fn watch(
        &self,
        context: &Context,
        mut watch: Watch,
        from: From,
    ) -> Result<Watching, Error> {
        let mut flow = watch.flow;
        if let Some(task) = watch.task {
            let of = self.flow_of(Argument::Followed, task).await?;
            self.is_owned(context, of, || Refusal::not_found(Argument::Followed, task))
                .await?;
            if let Some(named) = flow.filter(|named| *named != of) {
                let expected = format!("the flow of the task, `{of}`, or none");
                let actual = named.to_string().into();
                let fault = Violation::of("flow", "not the task's flow", expected, &actual);
                return Err(Error::invalid(vec![fault]));
            }
            flow = Some(of);
        } else if let Some(flow) = flow {
            if self.store.stream_head(flow).await?.is_none() {
                return Err(Refusal::FlowNotFound { flow }.into());
            }
            self.is_owned(context, flow, || Refusal::FlowNotFound { flow })
                .await?;
        }
        if let Some(owner) = context.caller.reach().owner().cloned() {
            if watch.user.is_some_and(|user| user != owner) {
                // As for a user of whom nothing is known.
                watch.kinds = Some(Vec::new());
            }
            watch.user = Some(owner);
        }
        let filter = Filter {
            flow,
            task: watch.task,
            user: watch.user,
            kinds: watch.kinds,
            run: None,
            labels: watch.labels,
        };
        let live = self.live.clone();
        let (reader, reset) = Reader::begin(live, filter, from, Until::Forever).await?;
        let stream = reader.into();
        Ok(Watching { stream, reset })
    }

    /// What happens in a run, from its start to its end, whether these are in the past or not. Cost:
    /// O(events since its start); for a run whose root is not the flow's, one pass over the flow.
    ///
    /// # Errors
    /// [`Error`]; `Failed` when the flow has no such run.
    pub async fn watch_run(
        &self,
        context: &Context,
        flow: FlowId,
        run: RunId,
    ) -> Result<Notices, Error> {
        let Some(at) = self.start_of_run(flow, run).await? else {
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
            Some(covered(&*self.store, flow, started, at.version).await?)
        };
        let filter = Filter {
            flow: Some(flow),
            run: Some(Covered { run, tasks }),
            user: context.caller.reach().owner().cloned(),
            ..Filter::default()
        };
        let from = From::Cursor(Cursor::behind(&at, PARTS_ALL));
        let (reader, _) =
            Reader::begin(self.live.clone(), filter, from, Until::RunEnds(run)).await?;
        Ok(reader.into())
    }

    /// The event that began a run of a flow. Cost: O(events behind it).
    pub(super) async fn start_of_run(
        &self,
        flow: FlowId,
        run: RunId,
    ) -> Result<Option<Arc<Recorded>>, Error> {
        let begins =
            |event: &Event| matches!(event, Event::RunStarted(started) if started.run_id == run);
        self.latest(flow, begins).await
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
}
