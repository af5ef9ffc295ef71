//! Streams of notices, which any node serves.

use super::Service;
use crate::application::api::work::ClaimWatch;
use crate::application::api::{Error, Run, Subscribe, Subscribed, Watch, Watching};
use crate::application::authorize::{UseCase, authorize};
use crate::application::context::Context;
use crate::subscription::stream::{From, Notices};

impl Service {
    /// What happens from a place on, without an end.
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
        authorize(context, UseCase::ClaimTasks)?;
        let place = self.limits.stream(context)?;
        self.claim_ends.watch(Box::new(place)).await
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
        let mut subscribed = self.app.subscribe(context, subscribe).await?;
        subscribed.stream.hold(place);
        Ok(subscribed)
    }
}
