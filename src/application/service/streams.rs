//! Streams of notices. Any node serves them.

use super::Service;
use super::work::name;
use crate::application::api::work::{ClaimWatch, HeldLease, LeaseOf};
use crate::application::api::{
    Error, Failure, Reply, Request, Run, Subscribe, Subscribed, Watch, Watching,
};
use crate::application::authorize::UseCase;
use crate::application::context::Context;
use crate::subscription::notice::Kind;
use crate::subscription::stream::{From, Notices};
use std::sync::Arc;
use taskledger_domain::TaskId;

impl Service {
    /// What happens from a place on, without an end. That it was opened is in the audit log once, if it shows what
    /// belongs to somebody else.
    ///
    /// # Errors
    /// [`Error`]; `NotFound` for a flow or a task that never existed.
    pub async fn watch(
        &self,
        context: &Context,
        watch: Watch,
        from: From,
    ) -> Result<Watching, Error> {
        self.admit(context, UseCase::WatchEvents)?;
        let (flow, task, user) = (watch.flow, watch.task, watch.user.clone());
        let watching = self.watching(context, watch, from).await?;
        match (flow, task) {
            (Some(flow), _) => Box::pin(self.flow_was_read(context, flow)).await,
            (None, Some(task)) => Box::pin(self.was_read(context, task)).await,
            (None, None) => self.access.flows_watched(context, user.as_deref()),
        }
        Ok(watching)
    }

    /// How far tasks of all flows that the caller sees are, from now on. Whoever asks for it tells of those alone that
    /// the caller has published, so it is no read of what belongs to somebody else.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn watch_progress(&self, context: &Context) -> Result<Watching, Error> {
        self.admit(context, UseCase::WatchEvents)?;
        let watch = Watch {
            kinds: Some(vec![Kind::ProgressUpdate]),
            ..Watch::default()
        };
        self.watching(context, watch, From::Now).await
    }

    async fn watching(
        &self,
        context: &Context,
        watch: Watch,
        from: From,
    ) -> Result<Watching, Error> {
        let place = self.limits.stream(context)?;
        let mut watching = self.app.watch(context, watch, from).await?;
        watching.stream.hold(place);
        Ok(watching)
    }

    /// How a caller learns that something was taken back from it that it has claimed.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn watch_claims(&self, context: &Context) -> Result<ClaimWatch, Error> {
        self.access.authorize(context, UseCase::ClaimTasks, None)?;
        let place = self.limits.stream(context)?;
        self.claim_ends.watch(Box::new(place)).await
    }

    /// The lease by which a worker of the caller holds a task now; `worker`: its name, unless it is that of its
    /// principal.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn held_by_worker(
        &self,
        context: &Context,
        task: TaskId,
        worker: Option<Arc<str>>,
    ) -> Result<Option<HeldLease>, Error> {
        let worker = worker.unwrap_or_else(|| name(&context.caller));
        let asked = Request::Lease(LeaseOf { task, worker });
        let reply = self.call(context, asked).await?;
        if let Reply::Lease(held) = reply {
            return Ok(held);
        }
        Err(Failure::Broken(format!("a lease was answered {reply:?}")).into())
    }

    /// What happens in a run, from its start to its end.
    ///
    /// # Errors
    /// [`Error`]; `Failed` when the flow has no such run.
    pub async fn follow(&self, context: &Context, run: Run) -> Result<Notices, Error> {
        self.admit(context, UseCase::WatchRun)?;
        let place = self.limits.stream(context)?;
        let mut stream = self.app.watch_run(context, run.flow, run.id).await?;
        stream.hold(place);
        Box::pin(self.flow_was_read(context, run.flow)).await;
        Ok(stream)
    }

    /// A task, and what happens in its flow until nothing runs any more.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn subscribe(
        &self,
        context: &Context,
        subscribe: Subscribe,
    ) -> Result<Subscribed, Error> {
        self.admit(context, UseCase::SubscribeTask)?;
        let place = self.limits.stream(context)?;
        let task = subscribe.task;
        let mut subscribed = self.app.subscribe(context, subscribe).await?;
        subscribed.stream.hold(place);
        Box::pin(self.was_read(context, task)).await;
        Ok(subscribed)
    }
}
