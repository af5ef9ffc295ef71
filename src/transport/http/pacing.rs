//! Slows down refusals of credentials once there are many, so that strangers do not take the processor from callers
//! who are known.
//!
//! A refusal costs little and a client that repeats it at once costs as much as the server has. A refusal that waits
//! holds its connection and nothing else: no room for requests, no bytes. Whoever shows credentials that hold is
//! never made to wait.

use std::sync::Mutex;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Refusals per second that leave at once, over all connections: far more than clients with an old token ask for.
const AT_ONCE_PER_SECOND: u32 = 200;
/// Refusals that leave at once after a quiet time.
const AT_ONCE_MAX: u32 = 400;
/// How long each other one waits.
const DELAY: Duration = Duration::from_millis(250);

/// Counts the refusals of a server.
#[derive(Debug)]
pub(super) struct Pace(Mutex<Bucket>);

#[derive(Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Pace {
    /// Of a server that has refused nobody yet.
    pub(super) fn new() -> Self {
        Self(Mutex::new(Bucket {
            left: f64::from(AT_ONCE_MAX),
            at: Instant::now(),
        }))
    }

    /// Returns when a refusal may leave: at once, or after [`DELAY`] if there are many.
    pub(super) async fn refuse(&self) {
        if !self.is_free() {
            sleep(DELAY).await;
        }
    }

    fn is_free(&self) -> bool {
        let mut bucket = self.0.lock().expect("no code panics with it");
        let now = Instant::now();
        let gained = (now - bucket.at).as_secs_f64() * f64::from(AT_ONCE_PER_SECOND);
        bucket.left = (bucket.left + gained).min(f64::from(AT_ONCE_MAX));
        bucket.at = now;
        if bucket.left < 1.0 {
            return false;
        }
        bucket.left -= 1.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn delayed(pace: &Pace, refusals: u32) -> u32 {
        let mut delayed = 0;
        for _ in 0..refusals {
            let before = Instant::now();
            pace.refuse().await;
            delayed += u32::from(before.elapsed() >= DELAY);
        }
        delayed
    }

    #[tokio::test(start_paused = true)]
    async fn many_refusals_wait_and_a_few_do_not() {
        let pace = Pace::new();
        assert_eq!(delayed(&pace, AT_ONCE_MAX).await, 0);
        // Time stands still but for the delays, each of which makes room for what leaves at once meanwhile.
        assert_eq!(delayed(&pace, 1).await, 1);
        let meanwhile = AT_ONCE_PER_SECOND / 4;
        assert_eq!(delayed(&pace, meanwhile).await, 0);
        assert_eq!(delayed(&pace, 1).await, 1);
        sleep(Duration::from_secs(60)).await;
        assert_eq!(delayed(&pace, AT_ONCE_MAX).await, 0);
    }
}
