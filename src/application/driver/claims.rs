//! How workers' claims enter a turn: what the turn makes ready is offered before its append is sent, and the claims of
//! workers that waited for it are decided into the same append. A task that a worker does after another one waits for
//! one sync instead of two.
//!
//! What is offered may not become durable. Then the state is dropped, the offers with it (`drop_state`), and the
//! claims are decided again like all commands: on what is stored, where the tasks are perhaps not ready.

use super::Driver;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long an append waits for claims of workers that were given its tasks. They need some ten microseconds.
const CLAIMS_WAIT_MAX: Duration = Duration::from_millis(1);

impl Driver<'_> {
    /// Says what the flow has to offer to workers, before those who claimed of it are answered.
    pub(super) fn offer(&mut self) {
        if self.is_ours()
            && let Some(state) = &mut self.state
        {
            self.flows.enter(self.mailbox.flow, state, &self.coming);
        }
    }

    /// Offers what the next append makes ready and decides the claims of workers that waited for it.
    pub(super) async fn gather_claims(&mut self) {
        // Before a snapshot nothing more is decided.
        if self.next.events.is_empty() || self.next.is_full() || self.owes_snapshot() {
            return;
        }
        if self.flows.offers.is_anybody_waiting() {
            self.offer();
        }
        if self.coming.is_empty() {
            return;
        }
        if timeout(CLAIMS_WAIT_MAX, self.coming.all()).await.is_err() {
            // Those that are late go into a later append, and no other one waits for them.
            self.coming = Arc::default();
        }
        self.decide_waiting(false).await;
    }
}
