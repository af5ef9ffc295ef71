//! Follows a run that a schedule waits for: `keep_schedules` reads the stream of that run, on whichever node it is, and
//! has the schedule looked at once the run has ended.
//!
//! A stream begins at the start of its run, so an end that came before it is seen too.

use super::super::Service;
use super::run_ends::Follow;
use crate::subscription::stream::{Batch, Item};
use std::time::Duration;
use taskledger_domain::RunId;
use tokio::time::sleep;
use tokio_stream::StreamExt;

/// Pause after the log could not be read.
const REST: Duration = Duration::from_secs(1);
/// Pause while another look holds the schedule.
const HELD: Duration = Duration::from_millis(100);
/// Times that it is asked whether that look has ended: longer than a lease lasts.
const HELD_MAX: usize = 120;

impl Service {
    /// Waits for the end of a run, then has the schedule that waits for it looked at.
    pub(super) async fn follow_to_end(&self, follow: Follow) {
        let ended = follow.stop.run_until_cancelled(self.end_of(&follow)).await;
        if ended.is_none() {
            return;
        }
        // First: a look that goes on now follows the run again, and finds its end.
        self.schedule_ends.ended(&follow);
        for _ in 0..HELD_MAX {
            let now = self.app.clock.civil();
            match self.schedules.wake(follow.schedule, now).await {
                Ok(true) => break,
                Ok(false) => sleep(HELD).await,
                Err(error) => {
                    tracing::warn!(schedule.id = %follow.schedule, %error, "a schedule that waits is looked at later");
                    break;
                }
            }
        }
        self.schedules_changed.notify_one();
    }

    async fn end_of(&self, follow: &Follow) {
        let (flow, run) = (follow.flow, RunId(follow.run));
        let stream = self.app.watch_run(&follow.context, flow, run).await;
        let mut stream = match stream {
            Ok(stream) => stream,
            Err(error) => {
                tracing::debug!(run.id = %run, %error, "a run cannot be followed");
                return sleep(REST).await;
            }
        };
        while let Some(item) = stream.next().await {
            match item {
                // What is missing may be the end.
                Ok(Item::Batch(Batch::Reset(_))) => return,
                Ok(Item::Batch(_) | Item::Silence) => {}
                Err(_) => sleep(REST).await,
            }
        }
    }
}
