//! Where the door gets runs from.

use crate::application::api::Error;
use crate::application::api::runs::{
    AwaitRun, CancelRun, FollowUp, FollowedUp, ListRuns, ReadRun, RunPage, RunView, StartRun,
    StartedRun, WatchRun, WatchedRun,
};
use crate::application::{Context, Service};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::fmt;

type Asked<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// The use cases of the application that the door calls.
pub(in super::super) trait Runs: Send + Sync + fmt::Debug + 'static {
    fn start<'a>(&'a self, context: &'a Context, request: StartRun) -> Asked<'a, StartedRun>;
    fn read<'a>(&'a self, context: &'a Context, request: ReadRun) -> Asked<'a, RunView>;
    fn list<'a>(&'a self, context: &'a Context, request: ListRuns) -> Asked<'a, RunPage>;
    fn cancel<'a>(&'a self, context: &'a Context, request: CancelRun) -> Asked<'a, RunView>;
    fn message<'a>(&'a self, context: &'a Context, request: FollowUp) -> Asked<'a, FollowedUp>;
    fn watch<'a>(&'a self, context: &'a Context, request: WatchRun) -> Asked<'a, WatchedRun>;
    fn wait<'a>(&'a self, context: &'a Context, request: AwaitRun) -> Asked<'a, RunView>;
}

impl Runs for Service {
    fn start<'a>(&'a self, context: &'a Context, request: StartRun) -> Asked<'a, StartedRun> {
        self.start_run(context, request).boxed()
    }

    fn read<'a>(&'a self, context: &'a Context, request: ReadRun) -> Asked<'a, RunView> {
        self.read_run(context, request).boxed()
    }

    fn list<'a>(&'a self, context: &'a Context, request: ListRuns) -> Asked<'a, RunPage> {
        self.list_runs(context, request).boxed()
    }

    fn cancel<'a>(&'a self, context: &'a Context, request: CancelRun) -> Asked<'a, RunView> {
        self.cancel_run(context, request).boxed()
    }

    fn message<'a>(&'a self, context: &'a Context, request: FollowUp) -> Asked<'a, FollowedUp> {
        self.message_run(context, request).boxed()
    }

    fn watch<'a>(&'a self, context: &'a Context, request: WatchRun) -> Asked<'a, WatchedRun> {
        self.watch_run(context, request).boxed()
    }

    fn wait<'a>(&'a self, context: &'a Context, request: AwaitRun) -> Asked<'a, RunView> {
        self.await_run(context, request).boxed()
    }
}
