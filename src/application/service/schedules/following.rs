//! Runs for whose end a time of a schedule waits. A look notes the run; `keep_schedules` reads the stream of that run, on
//! whichever node it is, and has the schedule looked at once it has ended.
//!
//! A stream begins at the start of its run, so an end that came before it is seen too. Nothing rests on it: a schedule that
//! waits is looked at every [`REPAIR_MS`] all the same, by any node.

use super::super::Service;
use super::starting::acting_for;
use crate::application::api::schedules::{Run, Schedule};
use crate::application::context::Context;
use crate::subscription::stream::{Batch, Item};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use taskledger_domain::{FlowId, RunId};
use taskledger_schedules::LOOK_AGAIN_MS;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_stream::StreamExt;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Runs that are followed at a time. Each keeps the stream of a flow open; schedules beyond are looked at each second.
const FOLLOWED_MAX: usize = 256;
/// Milliseconds until a schedule is looked at although the run for which it waits is followed.
const REPAIR_MS: u64 = 30_000;
/// Pause after the log could not be read.
const REST: Duration = Duration::from_secs(1);
/// Pause while another look holds the schedule.
const HELD: Duration = Duration::from_millis(100);
/// Times that it is asked whether that look has ended: longer than a lease lasts.
const HELD_MAX: usize = 120;

/// What is followed here, by schedule.
#[derive(Debug, Default)]
pub(in crate::application::service) struct RunEnds {
    followed: Mutex<Followed>,
    /// Told when there are runs whose streams nobody reads yet.
    noted: Notify,
}

#[derive(Debug, Default)]
struct Followed {
    runs: HashMap<Uuid, (Uuid, CancellationToken)>,
    /// Nobody reads their streams yet.
    new: Vec<Follow>,
}

/// A run that is followed.
#[derive(Debug)]
pub(super) struct Follow {
    schedule: Uuid,
    flow: FlowId,
    run: Uuid,
    context: Context,
    stop: CancellationToken,
}

impl RunEnds {
    fn lock(&self) -> MutexGuard<'_, Followed> {
        self.followed
            .lock()
            .expect("no code panics while it holds this")
    }

    /// Has a schedule looked at when this run has ended, if it waits for one, and no more when another one has. Gives the
    /// milliseconds until it is to be looked at whatever was told.
    pub(super) fn waits_for(&self, schedule: &Schedule, run: Option<&Run>) -> u64 {
        match run {
            Some(run) if self.follow(schedule, run) => REPAIR_MS,
            Some(_) | None => {
                self.leave(schedule.id);
                LOOK_AGAIN_MS
            }
        }
    }

    fn follow(&self, schedule: &Schedule, of: &Run) -> bool {
        let mut followed = self.lock();
        let Some(run) = of.run else { return false };
        if let Some((known, stop)) = followed.runs.get(&schedule.id) {
            if *known == run {
                return true;
            }
            stop.cancel();
            followed.runs.remove(&schedule.id);
        }
        let Ok(context) = acting_for(schedule, of) else {
            return false;
        };
        if followed.runs.len() >= FOLLOWED_MAX {
            return false;
        }
        let stop = CancellationToken::new();
        followed.runs.insert(schedule.id, (run, stop.clone()));
        followed.new.push(Follow {
            schedule: schedule.id,
            flow: FlowId(of.flow),
            run,
            context,
            stop,
        });
        self.noted.notify_one();
        true
    }

    fn leave(&self, schedule: Uuid) {
        if let Some((_, stop)) = self.lock().runs.remove(&schedule) {
            stop.cancel();
        }
    }

    /// Waits for what has come since this was asked. Dropping the future loses nothing.
    pub(super) async fn next_new(&self) -> Vec<Follow> {
        loop {
            let new = std::mem::take(&mut self.lock().new);
            if !new.is_empty() {
                return new;
            }
            self.noted.notified().await;
        }
    }

    fn ended(&self, follow: &Follow) {
        let mut followed = self.lock();
        let known = followed.runs.get(&follow.schedule);
        if known.is_some_and(|(run, _)| *run == follow.run) {
            followed.runs.remove(&follow.schedule);
        }
    }
}

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
            let now = self.app.clock.now();
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
