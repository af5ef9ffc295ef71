//! How ends of attempts enter a turn: reported ends are gathered, and those of pure executors are decided by the turn
//! that starts them.
//!
//! What a pure executor makes of a job needs no sync between its start and its end: either both are in
//! the log or neither is. A chain of such tasks is one append, and no other thread works on it.

use super::Driver;
use crate::application::batch::Batch;
use crate::application::mailbox::Order;

/// How often decisions are put off for ends of attempts that keep arriving.
const GATHER_ROUNDS_MAX: u32 = 16;

/// Ends that are decided before others get the thread: about a millisecond.
const ENDS_AT_A_STRETCH_MAX: usize = 64;

/// Bytes that attempts which end at once may work through for one append: some milliseconds.
const AT_ONCE_BYTES_MAX: usize = 512 * 1024;

impl Driver<'_> {
    /// Decides an order, and the ends of attempts that it starts and that end at once.
    pub(super) async fn decide_with_ends(&mut self, order: Order) {
        self.decide(order);
        let mut ends = 0;
        while let Some(end) = self.end_at_once() {
            self.decide(end);
            ends += 1;
            if ends % ENDS_AT_A_STRETCH_MAX == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    /// The end of the next attempt that ends at once, for this turn to decide; those before it are
    /// launched when their starts are durable, and so are all when the append is full.
    fn end_at_once(&mut self) -> Option<Order> {
        while let Some((started, slot)) = self.next.starts.pop_front() {
            let mut left = AT_ONCE_BYTES_MAX - self.next.at_once_bytes;
            let undurable = |version| {
                let event = self.next.event(version);
                event.or_else(|| self.under_way.event(version)).cloned()
            };
            let end = if self.next.is_full() {
                None
            } else {
                let attempts = self.flows.attempts();
                attempts.end_at_once(&started, &undurable, &mut left)
            };
            self.next.at_once_bytes = AT_ONCE_BYTES_MAX - left;
            match end {
                Some(command) => {
                    let mut order = self.flows.order_about(&started, command);
                    order.slot = Some(slot);
                    order.of_turn = true;
                    return Some(order);
                }
                None => self.next.launch(started, slot),
            }
        }
        None
    }

    /// Lets attempts that are about to end come along: what a fan of short tasks reports arrives within
    /// some hundred microseconds, and each append costs a sync. Nobody waits for anything but what is
    /// ready to run, so an end that comes alone is not held up. Before they are decided, because the
    /// slots that this frees must not be taken in an append that comes first.
    pub(super) async fn gather_ends(&mut self) {
        let mut ends = self.mailbox.ends();
        for _ in 0..GATHER_ROUNDS_MAX {
            if ends == 0 || ends >= Batch::EVENTS_MAX {
                return;
            }
            tokio::task::yield_now().await;
            if std::mem::replace(&mut ends, self.mailbox.ends()) == ends {
                return;
            }
        }
    }
}
