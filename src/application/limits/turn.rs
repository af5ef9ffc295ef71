//! The turn of one large call, from before it is read until it is done.

use super::recent::{Key, Recent};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep};

/// The longest that a turn rests behind a call.
const REST_MAX: Duration = Duration::from_secs(1);

/// The turn of a large call, which lasts until this is dropped, and then rests.
#[derive(Debug)]
pub struct Turn {
    pub(super) held: Option<Held>,
}

/// What a large call holds of its caller's places.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) _room: OwnedSemaphorePermit,
    pub(super) _kib: OwnedSemaphorePermit,
    pub(super) under_way: OwnedSemaphorePermit,
    pub(super) began: Instant,
    pub(super) caller: Key,
    pub(super) recent: Arc<Recent>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        if !held.recent.is_shared(&held.caller) {
            return;
        }
        let rest = held.began.elapsed().min(REST_MAX);
        // Without a runtime nobody waits for the turn.
        if let Ok(runtime) = Handle::try_current() {
            let under_way = held.under_way;
            runtime.spawn(async move {
                sleep(rest).await;
                drop(under_way);
            });
        }
    }
}

/// The turn that a call may have got before it was read, for the first request that it becomes.
#[derive(Debug, Clone, Default)]
pub struct EarlyTurn(Option<Arc<Mutex<Option<Turn>>>>);

impl EarlyTurn {
    /// Of a call that waits when it becomes a request.
    pub const NONE: Self = Self(None);

    /// The early turn of a call that has this turn.
    #[must_use]
    pub fn of(turn: Turn) -> Self {
        Self(Some(Arc::new(Mutex::new(Some(turn)))))
    }

    /// Gives it back: the call was read, and is none that keeps it.
    pub fn end(&self) {
        drop(self.take());
    }

    /// The turn, once.
    pub(super) fn take(&self) -> Option<Turn> {
        let held = self.0.as_ref()?;
        held.lock().expect("no code panics with it").take()
    }
}

/// When a call may begin does not change what it is.
impl PartialEq for EarlyTurn {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for EarlyTurn {}
