//! Runs that are begun by messages, answered, read and followed. Commands go to the node that owns the flow; reads and
//! streams are served by any.

use super::Service;
use crate::application::api::runs::{
    ArtifactPage, AwaitRun, BegunRun, CancelRun, FollowUp, FollowedUp, ListRuns, ReadArtifacts,
    ReadRun, RunPage, RunView, StartRun, StartedRun, WatchRun, WatchedRun,
};
use crate::application::api::{Error, Failure, Reply, Request, Started};
use crate::application::authorize::UseCase;
use crate::application::context::Context;
use crate::application::limits::HeldPlace;
use std::sync::Arc;

impl Service {
    /// Begins a run by a message, and answers once it is stored: what it creates and its start are one commit.
    ///
    /// # Errors
    /// [`Error`]; nothing is stored then.
    pub async fn start_run(&self, context: &Context, start: StartRun) -> Result<StartedRun, Error> {
        self.access.authorize(context, UseCase::StartRun, None)?;
        let named = start.origin.context.as_deref().map(Arc::from);
        let is_reported = start.reported.is_some();
        let request = Request::StartRun(Box::new(start));
        let Reply::Started(started) = self.call(context, request).await? else {
            return Err(other_reply("runs.start"));
        };
        let Started {
            root,
            run,
            task_ids,
            task: _,
            // New tasks: all of them.
            will_run: _,
        } = started;
        if is_reported {
            Box::pin(self.attach_reports(context, run)).await;
        }
        Ok(StartedRun {
            run,
            root,
            context: named.unwrap_or_else(|| Arc::from(root.to_string())),
            task_ids,
            begun: BegunRun {
                run,
                flow: root.as_flow(),
            },
        })
    }

    /// Lets a caller in who will read a run that it is about to begin or to answer: what would be refused of the look
    /// is refused before anything is stored.
    ///
    /// # Errors
    /// `Forbidden`, `RateLimited`.
    pub fn admit_read(&self, context: &Context) -> Result<(), Error> {
        self.admit(context, UseCase::ReadRun)
    }

    /// The same for one who will follow it, with its place among the streams.
    ///
    /// # Errors
    /// `Forbidden`, `RateLimited`, `QuotaExceeded`.
    pub fn admit_watch(&self, context: &Context) -> Result<Option<HeldPlace>, Error> {
        self.admit(context, UseCase::FollowRun)?;
        self.limits.stream(context)
    }

    /// The same for one who will wait for it.
    ///
    /// # Errors
    /// `Forbidden`, `RateLimited`, `QuotaExceeded`.
    pub fn admit_wait(&self, context: &Context) -> Result<Option<HeldPlace>, Error> {
        self.admit(context, UseCase::AwaitRun)?;
        self.limits.stream(context)
    }

    /// A run as it is.
    ///
    /// # Errors
    /// [`Error`]; `Refused` for somebody else's as for one that does not exist.
    pub async fn read_run(&self, context: &Context, read: ReadRun) -> Result<RunView, Error> {
        self.admit(context, UseCase::ReadRun)?;
        self.read_run_admitted(context, read).await
    }

    /// The same for a caller who was let in before.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn read_run_admitted(
        &self,
        context: &Context,
        read: ReadRun,
    ) -> Result<RunView, Error> {
        self.access.authorize(context, UseCase::ReadRun, None)?;
        let view = self.app.read_run(context, read).await?;
        Box::pin(self.was_read(context, view.task)).await;
        Ok(view)
    }

    /// Results of a run, page by page.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn artifacts_of_run(
        &self,
        context: &Context,
        read: ReadArtifacts,
    ) -> Result<ArtifactPage, Error> {
        self.admit(context, UseCase::ReadRun)?;
        let run = read.run;
        let page = self.app.artifacts_of(context, read).await?;
        Box::pin(self.run_was_read(context, run)).await;
        Ok(page)
    }

    /// Runs of the caller, those whose status is newest first.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list_runs(&self, context: &Context, list: ListRuns) -> Result<RunPage, Error> {
        self.admit(context, UseCase::ListRuns)?;
        let page = self.app.list_runs(context, list).await?;
        let flows = page.runs.iter().map(|run| run.flow);
        Box::pin(self.flows_were_read(context, flows)).await;
        Ok(page)
    }

    /// Cancels everything of a run that has not ended, and with it the run, as the answer shows.
    ///
    /// # Errors
    /// [`Error`]; `Refused` for a run that has ended.
    pub async fn cancel_run(&self, context: &Context, cancel: CancelRun) -> Result<RunView, Error> {
        self.access.authorize(context, UseCase::CancelRun, None)?;
        let read = ReadRun {
            run: cancel.run,
            history: None,
            artifacts: true,
        };
        self.of_run(context, Request::CancelRun(cancel)).await?;
        self.app.read_run(context, read).await
    }

    /// Takes a message to a run as the answer to a question of one of its tasks.
    ///
    /// # Errors
    /// [`Error`]; `Refused` for a run that has ended, one in which nobody waits, and a message that is no answer.
    pub async fn message_run(
        &self,
        context: &Context,
        message: FollowUp,
    ) -> Result<FollowedUp, Error> {
        self.access.authorize(context, UseCase::MessageRun, None)?;
        self.of_run(context, Request::FollowUp(Box::new(message)))
            .await
    }

    /// A run, and what happens to it.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn watch_run(&self, context: &Context, watch: WatchRun) -> Result<WatchedRun, Error> {
        self.admit(context, UseCase::FollowRun)?;
        let place = self.limits.stream(context)?;
        self.watch_run_admitted(context, watch, place).await
    }

    /// The same for a caller who was let in before.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn watch_run_admitted(
        &self,
        context: &Context,
        watch: WatchRun,
        place: Option<HeldPlace>,
    ) -> Result<WatchedRun, Error> {
        self.access.authorize(context, UseCase::FollowRun, None)?;
        let run = watch.run;
        let watched = self.app.watch_updates(context, watch, place).await?;
        Box::pin(self.run_was_read(context, run)).await;
        Ok(watched)
    }

    /// A run, once it has ended or waits for its caller. Takes the place of a stream.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn await_run(&self, context: &Context, wait: AwaitRun) -> Result<RunView, Error> {
        self.admit(context, UseCase::AwaitRun)?;
        let place = self.limits.stream(context)?;
        self.await_run_admitted(context, wait, place).await
    }

    /// The same for a caller who was let in before.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn await_run_admitted(
        &self,
        context: &Context,
        wait: AwaitRun,
        place: Option<HeldPlace>,
    ) -> Result<RunView, Error> {
        self.access.authorize(context, UseCase::AwaitRun, None)?;
        let view = Box::pin(self.app.await_run(context, wait, place)).await?;
        Box::pin(self.flow_was_read(context, view.flow)).await;
        Ok(view)
    }

    async fn of_run(&self, context: &Context, request: Request) -> Result<FollowedUp, Error> {
        let name = request.use_case().as_str();
        let Reply::OfRun(done) = self.call(context, request).await? else {
            return Err(other_reply(name));
        };
        Ok(done)
    }
}

fn other_reply(name: &str) -> Error {
    Failure::Broken(format!(
        "`{name}` was answered with a reply of another kind"
    ))
    .into()
}
