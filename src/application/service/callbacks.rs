//! Starts runs whose events are sent to an address of the caller's.

use super::Service;
use crate::application::api::{Error, Reply};
use crate::application::authorize::UseCase;
use crate::application::context::Context;
use crate::webhooks::callback::Callback;
use std::sync::Arc;
use taskledger_domain::CallbackId;

impl Service {
    /// Starts a run. Where the caller wants to be called is kept before the command, whose event names it;
    /// a callback that no event names is removed.
    pub(super) async fn starting(
        &self,
        context: &Context,
        use_case: UseCase,
        callback: Option<Callback>,
        start: impl AsyncFnOnce(Option<CallbackId>) -> Result<Reply, Error>,
    ) -> Result<Reply, Error> {
        let kept = match callback {
            None => None,
            // Boxed, here and below: hardly a call needs the room, and every one would be moved with it.
            Some(callback) => {
                let owner = context.caller.reach().owner().cloned();
                if let Some(owner) = &owner
                    && let Err(error) = Box::pin(self.one_more_callback(context, owner)).await
                {
                    return Box::pin(self.app.repeated_or(context, use_case, error)).await;
                }
                Some(Box::pin(self.webhooks.keep_callback(callback, owner)).await?)
            }
        };
        let started = start(kept).await;
        if let (Some(callback), Err(error)) = (kept, &started)
            && error.changed_nothing()
        {
            Box::pin(self.webhooks.drop_callback(callback)).await;
        }
        if let (Some(_), Ok(Reply::Started(run))) = (kept, &started) {
            // What is sent there shows its results.
            Box::pin(self.flow_was_read(context, run.root.as_flow())).await;
        }
        started
    }

    /// Whether the caller may have one callback more.
    pub(super) async fn one_more_callback(
        &self,
        context: &Context,
        owner: &Arc<str>,
    ) -> Result<(), Error> {
        let Some(max) = self.limits.callbacks_max(context) else {
            return Ok(());
        };
        let used = self.webhooks.callbacks_of(owner, max.get()).await?;
        self.limits.one_more_callback(context, used)
    }
}
