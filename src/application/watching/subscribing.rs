//! `tasks.subscribe` and `tasks.resubscribe`: a snapshot of a task at an exact place of the log, then what happens in
//! its flow after that place, until the stream ends.

use crate::application::App;
use crate::application::api::{Scope, Subscribe, Subscribed};
use crate::application::context::Context;
use crate::application::error::Error;
use crate::application::queries::Consistency;
use crate::application::readings::failed;
use crate::subscription::cursor::{Cursor, PARTS_ALL};
use crate::subscription::live::Published;
use crate::subscription::stream::{Filter, From, Reader, Reset, Until};
use std::sync::Arc;
use taskledger_domain::flow::{Argument, Event};
use taskledger_domain::task::Status;
use taskledger_domain::{FlowId, TaskId};
use taskledger_projections::Snapshot;

/// What a subscription is about.
#[derive(Debug, Clone)]
struct Subject {
    flow: FlowId,
    task: TaskId,
    scope: Scope,
    /// The owner that the flow must keep; `None`: any.
    owner: Option<Arc<str>>,
}

/// Where a flow stands that nothing runs.
enum Rest {
    /// It has never run, and may.
    Waits,
    /// A run is on, or its end lies ahead: behind this event.
    Behind(u64),
    /// This is the last that was, or is, to be told.
    Over(Arc<Published>),
}

impl App {
    /// The task as it is at an exactly known place, and what happens in its flow behind that place until
    /// nothing runs any more. One that goes on behind the cursor of an earlier stream shows no task; if
    /// there is no such place, it says why and begins as a new one does.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn subscribe(
        &self,
        context: &Context,
        subscribe: Subscribe,
    ) -> Result<Subscribed, Error> {
        let of = self
            .watched(context, subscribe.task, subscribe.scope)
            .await?;
        let Some(behind) = subscribe.behind else {
            return self.begun_at_snapshot(context, &of, None).await;
        };
        let Ok(cursor) = Cursor::parse(&behind) else {
            return self
                .begun_at_snapshot(context, &of, Some(Reset::Malformed))
                .await;
        };
        let (reader, reset) = self.begun(&of, From::Cursor(cursor)).await?;
        if reset.is_some() {
            return self.begun_at_snapshot(context, &of, reset).await;
        }
        let rows = self.snapshot(context, &of).await?;
        let (reader, is_final) = self.ending(&of, reader, &rows, Some(cursor)).await?;
        Ok(Subscribed {
            task: None,
            root: of.flow.root(),
            run: None,
            resumed: Some(true),
            reset: None,
            cursor: reader.place(),
            is_final,
            stream: reader.into(),
        })
    }

    async fn watched(
        &self,
        context: &Context,
        task: TaskId,
        scope: Scope,
    ) -> Result<Subject, Error> {
        let flow = self
            .await_task(Argument::Task, task, Consistency::Strong)
            .await?;
        self.is_seen(context, Argument::Task, task, flow).await?;
        Ok(Subject {
            flow,
            task,
            scope,
            owner: context.caller.reach().owner().cloned(),
        })
    }

    async fn snapshot(&self, context: &Context, of: &Subject) -> Result<Snapshot, Error> {
        let found = self.queries.snapshot(of.task).await.map_err(failed)?;
        match found {
            Some(found) => Ok(found),
            None => Err(self
                .missing(context, Argument::Task, of.task, of.flow)
                .await),
        }
    }

    /// The task as it is, and the stream of what happens behind that. `reset`: why it does not go on
    /// from elsewhere.
    async fn begun_at_snapshot(
        &self,
        context: &Context,
        of: &Subject,
        reset: Option<Reset>,
    ) -> Result<Subscribed, Error> {
        let rows = self.snapshot(context, of).await?;
        let (reader, _) = self.begun(of, From::Position(rows.position)).await?;
        let (reader, is_final) = self.ending(of, reader, &rows, None).await?;
        Ok(Subscribed {
            root: of.flow.root(),
            run: rows.task.run,
            task: Some(rows.task),
            resumed: reset.map(|_| false),
            reset,
            cursor: reader.place(),
            is_final,
            stream: reader.into(),
        })
    }

    async fn begun(&self, of: &Subject, from: From) -> Result<(Reader, Option<Reset>), Error> {
        let filter = Filter {
            flow: Some(of.flow),
            task: match of.scope {
                Scope::Task => Some(of.task),
                Scope::Flow => None,
            },
            user: of.owner.clone(),
            ..Filter::default()
        };
        let live = self.live.clone();
        Ok(Reader::begin(live, filter, from, Until::NothingRuns).await?)
    }

    /// The stream with its end, and whether the watcher, who goes on from `resumed`, was told of that end
    /// before. To be called when the stream has begun, so that a run that begins meanwhile is seen by one
    /// of both.
    async fn ending(
        &self,
        of: &Subject,
        reader: Reader,
        rows: &Snapshot,
        resumed: Option<Cursor>,
    ) -> Result<(Reader, bool), Error> {
        if rows.open_runs > 0 {
            // Whatever had ended up to here, something was on.
            return Ok((reader.ending_after(rows.position), false));
        }
        let last = match self.rest(of, rows).await? {
            Rest::Waits => return Ok((reader.of_unrun(), false)),
            Rest::Behind(position) => return Ok((reader.ending_after(position), false)),
            Rest::Over(last) => last,
        };
        let of_run = last.notice.run.is_some();
        if of_run && last.cursor > reader.place() {
            return Ok((reader.ending_after(last.cursor.position - 1), false));
        }
        // As the last event of another stream, or as the end of an earlier one.
        let told = resumed.is_some_and(|place| {
            (of_run && place == last.cursor) || (place.parts > PARTS_ALL && last.cursor <= place)
        });
        Ok(if told {
            (reader.ending_silently(rows.position), true)
        } else {
            (reader.ending_with(last, rows.position), false)
        })
    }

    /// Where a flow stands in which, as the rows say, nothing runs. Cost: O(tasks) in the read models
    /// when it never ran, else O(events behind the last start or end of a run).
    async fn rest(&self, of: &Subject, rows: &Snapshot) -> Result<Rest, Error> {
        if self.queries.has_run(of.flow).await.map_err(failed)? {
            let of_runs =
                |event: &Event| matches!(event, Event::RunStarted(_) | Event::RunEnded(_));
            let last = self.latest(of.flow, of_runs).await?;
            return Ok(match last {
                None => Rest::Waits,
                Some(last) => match self.live.published(&last).await?.pop() {
                    Some(end) if end.notice.ended_run().is_some_and(|run| run.others == 0) => {
                        Rest::Over(end)
                    }
                    Some(_) | None => Rest::Behind(last.position),
                },
            });
        }
        let (subject, is_over) = match of.scope {
            Scope::Task => (of.task, rows.task.row.status == Status::Cancelled),
            Scope::Flow => {
                let summary = self.queries.flow_summary(of.flow).await.map_err(failed)?;
                let counts = summary.map(|summary| summary.counts);
                let is_over =
                    counts.is_some_and(|c| c.pending == 0 && c.in_progress == 0 && c.failed == 0);
                (of.flow.root(), is_over)
            }
        };
        if !is_over {
            return Ok(Rest::Waits);
        }
        let ends = |event: &Event| matches!(event, Event::TaskCancelled(e) if e.task_id == subject);
        let end = self.latest(of.flow, ends).await?;
        let end = match end {
            Some(end) => self.live.at_rest(&end).await?,
            None => None,
        };
        Ok(end.map_or(Rest::Waits, Rest::Over))
    }
}
