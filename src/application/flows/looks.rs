//! Reads the state of a flow: in the flow's own turn, or from the log for a flow of another node.

use super::Flows;
use crate::application::error::{Error, Failure};
use crate::application::loading::{self, FOREIGN_LOADS_MAX};
use crate::application::mailbox::Look;
use crate::runtime::maybe_block_in_place;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use taskledger_domain::flow::Flow;
use taskledger_domain::{FlowId, Metadata};
use tokio::time::timeout;

/// How long such a look waits for its turn.
const FOREIGN_LOAD_WAIT: Duration = Duration::from_secs(2);
/// Milliseconds after which it may have one.
const FOREIGN_LOAD_RETRY_MS: u64 = 500;

impl Flows {
    /// Looks at the state of a flow once everything decided before is durable.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn look<T: Send + 'static>(
        self: &Arc<Self>,
        flow: FlowId,
        metadata: Metadata,
        look: impl Fn(&Flow) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let seen = Arc::new(Mutex::new(None));
        let place = seen.clone();
        let look: Look = Box::new(move |state| {
            let found = look(state);
            *place
                .lock()
                .expect("no code panics while it holds what was seen") = Some(found);
        });
        self.ask(flow, self.order(None, Some(look), metadata, false))
            .await?;
        let found = seen
            .lock()
            .expect("no code panics while it holds what was seen")
            .take();
        found.ok_or_else(|| Failure::Broken("a look at a flow gave nothing".to_owned()).into())
    }

    /// The same wherever the flow belongs: of a flow that another node owns, the state that the log
    /// has is looked at, which holds everything that was answered. Cost: for such a flow that of
    /// loading it.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn look_anywhere<T: Send + 'static>(
        self: &Arc<Self>,
        flow: FlowId,
        metadata: Metadata,
        look: impl Fn(&Flow) -> T + Clone + Send + 'static,
    ) -> Result<T, Error> {
        match self.look(flow, metadata, look.clone()).await {
            Err(Error::Elsewhere(_)) => {
                let place = timeout(FOREIGN_LOAD_WAIT, self.foreign_loads.acquire());
                let place = place.await.map_err(|_| Error::Busy {
                    reason: format!("{FOREIGN_LOADS_MAX} flows of other servers are being read"),
                    retry_after_ms: FOREIGN_LOAD_RETRY_MS,
                })?;
                let _place = place.expect("the places are never closed");
                let stored = loading::stored(&*self.store, flow).await?;
                Ok(maybe_block_in_place(stored.flow.size(), || {
                    look(&stored.flow)
                }))
            }
            other => other,
        }
    }
}
