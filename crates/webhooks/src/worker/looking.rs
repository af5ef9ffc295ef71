//! Looks for endpoints that have something due, and gives each its turn.
//!
//! Woken by changes of the store, by turns that end, by the next time that is stored; and it asks from
//! time to time, which is what it relies on.

use super::turn::Turn;
use super::{LEASE, STORE_AGAIN_AFTER, Shared};
use crate::delivery::Unavailable;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::Timestamp;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The longest pause: a lost hint, or a clock that has leapt, costs no more than that.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The shortest pause, however many hints come.
const GATHER: Duration = Duration::from_millis(20);
/// The pause when something is due that somebody else holds.
const HELD_ELSEWHERE: Duration = Duration::from_millis(500);
/// Endpoints that are taken at once; the others are left to other servers.
const TAKEN_MAX: usize = 64;
/// Endpoints that have or want a place for an attempt. More than attempts at once, so that none of those
/// is left empty while endpoints are read.
const AT_WORK_MAX: usize = 512;
/// Endpoints in all, those included that wait for their host. They cost a kilobyte or two each, and a
/// host that does not answer must not keep those of others out.
const HELD_MAX: usize = 20_000;

/// Until `stop`.
pub(super) async fn look(
    shared: &Arc<Shared>,
    turns: &TaskTracker,
    stop: &CancellationToken,
    cut: &CancellationToken,
) {
    let mut failing = false;
    while !stop.is_cancelled() {
        let begun = Instant::now();
        // Listening begins before looking, so that nothing falls between the two.
        let mut changed = shared.parts.deliveries.changed();
        let hinted = futures_util::poll!(&mut changed).is_ready();
        if hinted {
            shared.hints.send_replace(());
        }
        let looked = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            looked = once(shared, turns, stop, cut) => looked,
        };
        if let (Err(error), false) = (&looked, failing) {
            tracing::warn!(error = %error, "it could not be seen which webhooks are due");
        }
        failing = looked.is_err();
        let (least, most) = match looked {
            Ok(most) => (GATHER, most),
            Err(_) => (STORE_AGAIN_AFTER, LOOK_EVERY),
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = &mut changed, if !hinted => {
                shared.hints.send_replace(());
            }
            () = shared.ended.notified() => {}
            () = sleep_until(begun + if hinted { least } else { most }) => {}
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = sleep_until(begun + least) => {}
        }
    }
}

/// Takes what is due and can be taken. How long to wait before the next look.
async fn once(
    shared: &Arc<Shared>,
    turns: &TaskTracker,
    stop: &CancellationToken,
    cut: &CancellationToken,
) -> Result<Duration, Unavailable> {
    let deliveries = &shared.parts.deliveries;
    let held = shared.holdings.len();
    let at_work = held.saturating_sub(shared.room.parked());
    let limit = TAKEN_MAX
        .min(AT_WORK_MAX.saturating_sub(at_work))
        .min(HELD_MAX.saturating_sub(held));
    if limit == 0 {
        return Ok(LOOK_EVERY);
    }
    let (asked, now) = (Instant::now(), shared.time.now());
    let until = shared.until_of_lease();
    let taken = shared
        .ask(deliveries.lease(shared.me, now, until, limit))
        .await?;
    let count = taken.len();
    for leased in taken {
        if let Some(holding) = shared.holdings.take(leased.lease.clone(), asked) {
            let turn = Turn::new(shared.clone(), leased, holding, stop.clone());
            turns.spawn(turn.run(cut.clone()));
        }
    }
    if count == limit {
        return Ok(Duration::ZERO);
    }
    let next = shared.ask(deliveries.next_due()).await?;
    let wait = next.map_or(LOOK_EVERY, |at| shared.time.until(at));
    Ok(if wait.is_zero() && count == 0 {
        HELD_ELSEWHERE
    } else {
        wait.min(LOOK_EVERY)
    })
}

impl Shared {
    /// When a lease ends that is asked for now.
    pub(super) fn until_of_lease(&self) -> Timestamp {
        let ms = u64::try_from(LEASE.as_millis()).unwrap_or(u64::MAX);
        self.time.now().plus_ms(ms)
    }
}
