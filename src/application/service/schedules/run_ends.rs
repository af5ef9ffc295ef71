//! The runs that schedules wait for, as noted when the schedules were looked at.
//!
//! Nothing rests on it: a schedule that waits is looked at every [`REPAIR_MS`] all the same, by any node.

use super::acting::acting_for;
use crate::application::api::schedules::{Run, Schedule};
use crate::application::context::Context;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use taskledger_domain::FlowId;
use taskledger_schedules::LOOK_AGAIN_MS;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Runs that are followed at a time. Each keeps the stream of a flow open; schedules beyond are looked at each second.
const FOLLOWED_MAX: usize = 256;
/// Milliseconds until a schedule is looked at although the run for which it waits is followed.
const REPAIR_MS: u64 = 30_000;

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
    pub(super) schedule: Uuid,
    pub(super) flow: FlowId,
    pub(super) run: Uuid,
    pub(super) context: Context,
    pub(super) stop: CancellationToken,
}

impl RunEnds {
    fn lock(&self) -> MutexGuard<'_, Followed> {
        self.followed
            .lock()
            .expect("no code panics while it holds this")
    }

    /// Has a schedule looked at when this run has ended, if it waits for one, and no more when another one has. Gives
    /// the milliseconds until it is to be looked at whatever was told.
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

    /// Forgets a run that has ended.
    pub(super) fn ended(&self, follow: &Follow) {
        let mut followed = self.lock();
        let known = followed.runs.get(&follow.schedule);
        if known.is_some_and(|(run, _)| *run == follow.run) {
            followed.runs.remove(&follow.schedule);
        }
    }
}
