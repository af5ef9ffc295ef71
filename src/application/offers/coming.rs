//! Claims under way: a flow has given tasks to workers that waited, and their claims have not reached its mailbox yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// The claims on their way to one flow.
#[derive(Debug, Default)]
pub(in crate::application) struct Coming {
    left: AtomicUsize,
    /// Told when none is left.
    none_left: Notify,
}

impl Coming {
    /// Counts one more claim on its way.
    pub(super) fn one(self: &Arc<Self>) -> OnItsWay {
        self.left.fetch_add(1, Ordering::AcqRel);
        OnItsWay(self.clone())
    }

    /// Whether there is none.
    pub(in crate::application) fn is_empty(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    /// Waits until each is in the mailbox or will not come.
    pub(in crate::application) async fn all(&self) {
        while !self.is_empty() {
            self.none_left.notified().await;
        }
    }
}

/// A claim on its way; dropped when it is in the mailbox, or will not come.
#[derive(Debug)]
pub(in crate::application) struct OnItsWay(Arc<Coming>);

impl Drop for OnItsWay {
    fn drop(&mut self) {
        if self.0.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.none_left.notify_one();
        }
    }
}
