//! The port through which the door reads and starts runs.

use crate::application::api::Error;
use crate::application::api::runs::{
    ArtifactPage, AwaitRun, CancelRun, FollowUp, FollowedUp, HeldPlace, ListRuns, ReadArtifacts,
    ReadRun, RunPage, RunView, StartRun, StartedRun, WatchRun, WatchedRun,
};
use crate::application::api::webhooks::{Callback, Page, Receiver};
use crate::application::api::workflows::{RunWorkflow, UnfitWorkflow, Version};
use crate::application::{Context, Service};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::Arc;
use taskledger_domain::RunId;
use taskledger_domain::task::call::TaskList;

type RunFuture<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// How a caller looks at a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Looks {
    /// As it is.
    Once,
    /// Once it has ended, or waits for its caller.
    Waiting,
    /// At all that happens to it.
    Following,
}

/// A caller was let in for a look: its place among the streams, if it takes one.
pub(in super::super) type Ahead = Option<HeldPlace>;

/// The use cases of the application that the door calls.
pub(in super::super) trait Runs: Send + Sync + fmt::Debug + 'static {
    fn start<'a>(&'a self, context: &'a Context, request: StartRun) -> RunFuture<'a, StartedRun>;
    /// Lets a caller in for a look at a run.
    fn look_ahead(&self, context: &Context, looks: Looks) -> Result<Ahead, Error>;
    fn read<'a>(
        &'a self,
        context: &'a Context,
        request: ReadRun,
        ahead: Ahead,
    ) -> RunFuture<'a, RunView>;
    fn list<'a>(&'a self, context: &'a Context, request: ListRuns) -> RunFuture<'a, RunPage>;
    fn cancel<'a>(&'a self, context: &'a Context, request: CancelRun) -> RunFuture<'a, RunView>;
    fn message<'a>(&'a self, context: &'a Context, request: FollowUp) -> RunFuture<'a, FollowedUp>;
    fn watch<'a>(
        &'a self,
        context: &'a Context,
        request: WatchRun,
        ahead: Ahead,
    ) -> RunFuture<'a, WatchedRun>;
    fn wait<'a>(
        &'a self,
        context: &'a Context,
        request: AwaitRun,
        ahead: Ahead,
    ) -> RunFuture<'a, RunView>;
    fn artifacts<'a>(
        &'a self,
        context: &'a Context,
        read: ReadArtifacts,
    ) -> RunFuture<'a, ArtifactPage>;
    /// The tasks of a run of a saved workflow.
    fn tasks_of_workflow<'a>(
        &'a self,
        context: &'a Context,
        run: RunWorkflow,
    ) -> RunFuture<'a, Result<TaskList, UnfitWorkflow>>;
    /// Saved workflows of the caller, by name, at most so many.
    fn workflows<'a>(&'a self, context: &'a Context, limit: u32) -> RunFuture<'a, Vec<Version>>;
    /// What workers have declared of a method for everybody, in words for people.
    fn described(&self, method: &str) -> Option<Arc<str>>;
    fn report<'a>(
        &'a self,
        context: &'a Context,
        run: RunId,
        callback: Callback,
    ) -> RunFuture<'a, Receiver>;
    fn report_of<'a>(
        &'a self,
        context: &'a Context,
        run: RunId,
        name: &'a Arc<str>,
    ) -> RunFuture<'a, Option<Receiver>>;
    fn reports_of<'a>(
        &'a self,
        context: &'a Context,
        run: RunId,
        after: i64,
        limit: usize,
    ) -> RunFuture<'a, Page<Vec<Receiver>>>;
    fn unreport<'a>(
        &'a self,
        context: &'a Context,
        run: RunId,
        name: &'a Arc<str>,
    ) -> RunFuture<'a, ()>;
}

impl Runs for Service {
    fn start<'a>(&'a self, context: &'a Context, request: StartRun) -> RunFuture<'a, StartedRun> {
        self.start_run(context, request).boxed()
    }

    fn look_ahead(&self, context: &Context, looks: Looks) -> Result<Ahead, Error> {
        match looks {
            Looks::Once => self.admit_read(context).map(|()| None),
            Looks::Waiting => self.admit_wait(context),
            Looks::Following => self.admit_watch(context),
        }
    }

    fn read<'a>(
        &'a self,
        context: &'a Context,
        request: ReadRun,
        _: Ahead,
    ) -> RunFuture<'a, RunView> {
        self.read_run_admitted(context, request).boxed()
    }

    fn list<'a>(&'a self, context: &'a Context, request: ListRuns) -> RunFuture<'a, RunPage> {
        self.list_runs(context, request).boxed()
    }

    fn cancel<'a>(&'a self, context: &'a Context, request: CancelRun) -> RunFuture<'a, RunView> {
        self.cancel_run(context, request).boxed()
    }

    fn message<'a>(&'a self, context: &'a Context, request: FollowUp) -> RunFuture<'a, FollowedUp> {
        self.message_run(context, request).boxed()
    }

    fn watch<'a>(
        &'a self,
        context: &'a Context,
        request: WatchRun,
        ahead: Ahead,
    ) -> RunFuture<'a, WatchedRun> {
        self.watch_run_admitted(context, request, ahead).boxed()
    }

    fn wait<'a>(
        &'a self,
        context: &'a Context,
        request: AwaitRun,
        ahead: Ahead,
    ) -> RunFuture<'a, RunView> {
        self.await_run_admitted(context, request, ahead).boxed()
    }

    fn artifacts<'a>(
        &'a self,
        context: &'a Context,
        read: ReadArtifacts,
    ) -> RunFuture<'a, ArtifactPage> {
        self.artifacts_of_run(context, read).boxed()
    }

    fn tasks_of_workflow<'a>(
        &'a self,
        context: &'a Context,
        run: RunWorkflow,
    ) -> RunFuture<'a, Result<TaskList, UnfitWorkflow>> {
        Service::tasks_of_workflow(self, context, run).boxed()
    }

    fn workflows<'a>(&'a self, context: &'a Context, limit: u32) -> RunFuture<'a, Vec<Version>> {
        self.kept_workflows(context, None, None, limit).boxed()
    }

    fn described(&self, method: &str) -> Option<Arc<str>> {
        self.declared_description(method)
    }

    fn report<'a>(
        &'a self,
        context: &'a Context,
        run: RunId,
        callback: Callback,
    ) -> RunFuture<'a, Receiver> {
        self.report_run(context, run, callback).boxed()
    }

    fn report_of<'a>(
        &'a self,
        context: &'a Context,
        run: RunId,
        name: &'a Arc<str>,
    ) -> RunFuture<'a, Option<Receiver>> {
        self.report_of_run(context, run, name).boxed()
    }

    fn reports_of<'a>(
        &'a self,
        context: &'a Context,
        run: RunId,
        after: i64,
        limit: usize,
    ) -> RunFuture<'a, Page<Vec<Receiver>>> {
        self.reports_of_run(context, run, after, limit).boxed()
    }

    fn unreport<'a>(
        &'a self,
        context: &'a Context,
        run: RunId,
        name: &'a Arc<str>,
    ) -> RunFuture<'a, ()> {
        self.unreport_run(context, run, name).boxed()
    }
}
