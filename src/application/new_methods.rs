//! Methods with tasks for workers that do not know beforehand what they will ask for. Owns which of them a caller is
//! told of: those of flows that it sees.

use super::offers::{Appeared, Whose};
use std::sync::Arc;
use taskledger_auth::Caller;
use tokio::sync::broadcast::{self, error::RecvError};

/// Tells a caller of methods that have tasks for workers. Made by `Service::new_methods`.
#[derive(Debug)]
pub struct NewMethods {
    pub(super) caller: Arc<Caller>,
    pub(super) appearing: broadcast::Receiver<Appeared>,
}

impl NewMethods {
    /// Waits for one that `is_wanted`; `None`: there may be some, `Service::waiting_methods` knows. Dropping the future
    /// loses nothing.
    pub async fn next(&mut self, is_wanted: impl Fn(&str) -> bool) -> Option<Arc<str>> {
        loop {
            let Appeared { method, of } = match self.appearing.recv().await {
                Ok(appeared) => appeared,
                Err(RecvError::Lagged(_)) => return None,
                // The server ends, and with it whoever asks.
                Err(RecvError::Closed) => std::future::pending().await,
            };
            let allowed = self.caller.methods();
            if !is_wanted(&method) || allowed.is_some_and(|it| !it.contains(&method)) {
                continue;
            }
            match of {
                Whose::Elsewhere => return None,
                Whose::Owner(owner) if self.caller.reach().covers(owner.as_deref()) => {
                    return Some(method);
                }
                Whose::Owner(_) => {}
            }
        }
    }
}
