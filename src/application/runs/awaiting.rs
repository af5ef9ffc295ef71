//! Waiting for a run to end, or to wait for its caller.

use super::super::api::runs::{
    AwaitRun, ReadRun, RunChange, RunItem, RunStage, RunUntil, RunView, WatchRun,
};
use super::super::error::Error;
use super::super::{App, Context};
use std::any::Any;
use std::sync::Arc;
use tokio_stream::StreamExt;

impl App {
    /// A run, once it has ended or waits for its caller.
    ///
    /// # Errors
    /// [`Error`].
    pub(in crate::application) async fn await_run(
        self: &Arc<Self>,
        context: &Context,
        wait: AwaitRun,
        held: impl Any + Send,
    ) -> Result<RunView, Error> {
        let read = ReadRun {
            run: wait.run,
            history: wait.history,
            artifacts: wait.artifacts,
        };
        let settled = |stage: RunStage| stage.is_end() || stage.waits();
        let watch = WatchRun {
            run: wait.run,
            until: RunUntil::Ended,
            history: wait.history,
            results: false,
            parts: wait.artifacts,
            nodes: false,
            behind: None,
            begun: wait.begun,
        };
        let mut watched = self.watch_updates(context, watch, held).await?;
        let now = watched.snapshot.as_ref().map(|view| view.status.stage);
        if now.is_some_and(settled) {
            return self.read_run(context, read).await;
        }
        // Of a run that asks nothing, what is said is what was said at its start.
        let mut begun = watched.snapshot.take().filter(|_| wait.begun.is_some());
        // What comes before results is read from the log.
        let mut has_output = false;
        while let Some(item) = watched.updates.next().await {
            let (status, place) = match item? {
                RunItem::Update(update) => match update.change {
                    RunChange::Status(status) => (status, update.cursor),
                    RunChange::Artifact(_) => {
                        has_output = true;
                        continue;
                    }
                    RunChange::Node(_) => continue,
                },
                RunItem::Silence => continue,
                RunItem::Reset(_) => break,
            };
            if settled(status.stage) {
                let is_known = status.stage == RunStage::Completed && !has_output;
                let begun = begun.take().filter(|_| is_known);
                if let Some(mut view) = begun.filter(|view| self.decides(view.flow)) {
                    view.status = status;
                    view.position = place.cursor.position;
                    let view = match wait.artifacts {
                        true => self.with_results(*view),
                        false => Some(*view),
                    };
                    if let Some(view) = view {
                        return Ok(view);
                    }
                }
                let view = self.read_run(context, read).await?;
                // It may have gone on by itself meanwhile: a time-out, somebody else's answer.
                if settled(view.status.stage) {
                    return Ok(view);
                }
            }
        }
        self.read_run(context, read).await
    }
}
