//! A limit on what a connection sends that is part of no request and no message: HTTP/2 frames such as PING, SETTINGS,
//! PRIORITY and WINDOW_UPDATE, and control frames and fragments of a WebSocket. Each costs the server time, and nothing
//! else limits how many a client sends.
//!
//! One token bucket for each connection, counted in bytes. Requests, messages and answers add to it, because clients
//! send some of these frames with each of them. A connection whose bucket is empty is closed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Bytes of overhead that a connection may send at once. More than one WebSocket message in fragments, and 4,096 frames
/// of HTTP/2.
pub(crate) const OVERHEAD_BYTES_MAX: u32 = 256 * 1024;
/// Bytes of overhead for each second: 128 frames of HTTP/2, or 30 pings on a WebSocket.
pub(crate) const OVERHEAD_BYTES_PER_SECOND: u32 = 8 * 1024;

/// The connection has sent more overhead than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exhausted;

/// The overhead that one connection may still send.
#[derive(Debug)]
pub(crate) struct Overhead {
    bucket: Mutex<Bucket>,
    /// Set once and never cleared: the connection is about to be closed.
    exhausted: AtomicBool,
    on_exhausted: Notify,
    /// Whether each byte that is read is overhead until a whole message has arrived.
    counts_bytes: AtomicBool,
}

#[derive(Debug)]
struct Bucket {
    bytes_left: u32,
    refilled: Instant,
}

impl Default for Overhead {
    fn default() -> Self {
        Self {
            bucket: Mutex::new(Bucket {
                bytes_left: OVERHEAD_BYTES_MAX,
                refilled: Instant::now(),
            }),
            exhausted: AtomicBool::new(false),
            on_exhausted: Notify::new(),
            counts_bytes: AtomicBool::new(false),
        }
    }
}

impl Overhead {
    /// Takes `bytes` out of the bucket.
    ///
    /// # Errors
    /// [`Exhausted`], from then on each time.
    pub(crate) fn spend(&self, bytes: u32) -> Result<(), Exhausted> {
        if self.is_exhausted() {
            return Err(Exhausted);
        }
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        if bucket.bytes_left < bytes {
            bucket.refill();
        }
        match bucket.bytes_left.checked_sub(bytes) {
            Some(left) => {
                bucket.bytes_left = left;
                Ok(())
            }
            None => {
                self.exhausted.store(true, Ordering::Relaxed);
                self.on_exhausted.notify_one();
                Err(Exhausted)
            }
        }
    }

    /// Adds `bytes`, up to [`OVERHEAD_BYTES_MAX`].
    pub(crate) fn earn(&self, bytes: u32) {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.add(bytes);
    }

    /// Whether the connection has sent too much.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.exhausted.load(Ordering::Relaxed)
    }

    /// Waits until the connection has sent too much.
    pub(crate) async fn exhausted(&self) {
        // One permit is kept, so that a notice before the wait is not lost.
        self.on_exhausted.notified().await;
    }

    /// From now on the connection is a WebSocket: [`Self::counts_bytes`].
    pub(crate) fn count_bytes(&self) {
        self.counts_bytes.store(true, Ordering::Relaxed);
    }

    /// Whether the bytes of the connection are spent as they are read.
    pub(crate) fn counts_bytes(&self) -> bool {
        self.counts_bytes.load(Ordering::Relaxed)
    }
}

impl Bucket {
    fn refill(&mut self) {
        let now = Instant::now();
        let gained =
            (now - self.refilled).as_millis() * u128::from(OVERHEAD_BYTES_PER_SECOND) / 1000;
        if gained > 0 {
            self.refilled = now;
            self.add(u32::try_from(gained).unwrap_or(u32::MAX));
        }
    }

    fn add(&mut self, bytes: u32) {
        self.bytes_left = self
            .bytes_left
            .saturating_add(bytes)
            .min(OVERHEAD_BYTES_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_sends_too_much_is_exhausted_for_good() {
        let overhead = Overhead::default();
        assert_eq!(overhead.spend(OVERHEAD_BYTES_MAX), Ok(()));
        overhead.earn(10);
        assert_eq!(overhead.spend(10), Ok(()));
        assert!(!overhead.is_exhausted());
        assert_eq!(overhead.spend(1), Err(Exhausted));
        overhead.exhausted().await;
        overhead.earn(10);
        assert_eq!(overhead.spend(1), Err(Exhausted));
    }

    #[tokio::test(start_paused = true)]
    async fn the_bucket_fills_up_with_time_and_never_above_its_maximum() {
        let overhead = Overhead::default();
        assert_eq!(overhead.spend(OVERHEAD_BYTES_MAX), Ok(()));
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(overhead.spend(2 * OVERHEAD_BYTES_PER_SECOND), Ok(()));
        tokio::time::sleep(Duration::from_secs(3600)).await;
        overhead.earn(u32::MAX);
        assert_eq!(overhead.spend(OVERHEAD_BYTES_MAX + 1), Err(Exhausted));
    }
}
