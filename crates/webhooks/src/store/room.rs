//! How many more rows the limits allow; counted seldom.

use std::sync::atomic::{AtomicI64, Ordering};

/// Of the room that was counted, a server takes up this share before it counts again: so many servers
/// together never take more than there is.
const SERVERS_MAX: i64 = 16;

/// Rows that may be made before they are counted again.
#[derive(Debug, Default)]
pub(super) struct Room(AtomicI64);

impl Room {
    /// Whether one more may be made without counting.
    pub(super) fn take(&self) -> bool {
        let less = |left: i64| (left > 0).then(|| left - 1);
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_ok()
    }

    /// There are `count` of `max`, and one more is made now.
    pub(super) fn counted(&self, count: i64, max: i64) {
        let share = (max - count) / SERVERS_MAX - 1;
        self.0.store(share.max(0), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_seldom_while_there_is_room_and_each_time_at_the_end() {
        let (room, max) = (Room::default(), 20_000);
        let (mut rows, mut counted) = (0, 0);
        while rows < max {
            if !room.take() {
                counted += 1;
                room.counted(rows, max);
            }
            rows += 1;
        }
        assert!(counted < 200, "{counted}");
        assert!(!room.take(), "the last of the room is gone");
    }
}
