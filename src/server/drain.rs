//! Graceful shutdown: nothing new begins, and what is under way gets time to end.

use super::Server;
use crate::application::App;
use crate::engine::Dispatcher;
use std::sync::Arc;

/// Drains a server. Attempts of workers outside are not waited for: their leases outlive the server.
#[derive(Debug, Clone)]
pub struct Drain {
    app: Arc<App>,
    engine: Arc<Dispatcher>,
}

impl Server {
    /// What keeps attempts from beginning while those under way end.
    #[must_use]
    pub fn drain(&self) -> Drain {
        Drain {
            app: self.app.clone(),
            engine: self.engine.clone(),
        }
    }
}

impl Drain {
    /// From now on nothing begins, and the server says that it is not ready. `system.drain` cannot undo it.
    pub fn begin(&self) {
        self.app.flows.stop_soon();
    }

    /// Attempts of this process that are under way.
    #[must_use]
    pub fn running(&self) -> usize {
        self.app.flows.slots().running_here()
    }

    /// Waits until every attempt of this process has ended and that is recorded. Without [`Self::begin`] it may
    /// never be so.
    pub async fn ended(&self) {
        self.app.flows.slots().at_rest().await;
        self.engine.at_rest().await;
    }
}
