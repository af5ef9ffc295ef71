//! Counts the work of drivers, for `Figures`.

use super::Driver;
use crate::application::mailbox::Order;

impl Driver<'_> {
    /// The next order of the mailbox; what it has waited there is counted.
    pub(super) fn take(&self) -> Option<Order> {
        let order = self.mailbox.pop()?;
        let waited = order.made_at.elapsed();
        self.flows.figures.mailbox_wait.observe_time(waited);
        Some(order)
    }
}
