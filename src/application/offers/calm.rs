//! Offers while the server drains or stops: no task is given out.

use super::Offers;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Offers {
    /// Nothing is given out any more, because the server stops; who waits is told that there is nothing.
    pub(in crate::application) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let waiting = self.inner().dismiss();
        drop(waiting);
    }

    /// Whether nothing is given out until it is said otherwise. Who waits goes on waiting.
    pub(in crate::application) fn hold_back(self: &Arc<Self>, holds: bool) {
        self.held_back.store(holds, Ordering::Release);
        if !holds {
            let mut inner = self.inner();
            let methods = inner.methods();
            let matches = self.matches(&mut inner, methods.iter());
            drop(inner);
            self.hand_out(matches);
        }
    }

    /// Nothing is given out any more, because the server stops soon. Who waits goes on waiting.
    pub(in crate::application) fn stop_soon(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    pub(super) fn gives_nothing(&self) -> bool {
        [&self.closed, &self.held_back, &self.is_stopping]
            .into_iter()
            .any(|it| it.load(Ordering::Acquire))
    }
}
