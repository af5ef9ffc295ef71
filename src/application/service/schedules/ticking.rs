//! Looks at schedules that are due and starts their runs: on any node, once for each time.
//!
//! A look takes the lease of a schedule, records each decision before it acts on it, and lets go. What a crash leaves
//! between the decision and the start is found by the next look, here or on another node, and started then.

use super::super::Service;
use super::super::audited::Audited;
use super::audited::{found, stored};
use super::look::Look;
use super::run_ends::Follow;
use crate::application::api::Error;
use crate::application::api::schedules::{Overlap, Run, State};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::Timestamp;
use taskledger_schedules::Turn;
use tokio::time::{sleep, timeout_at};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Schedules that are looked at at once.
const AT_ONCE: usize = 8;
/// Milliseconds after which another server may look.
const LEASE_MS: u64 = 10_000;
/// How often servers that share a database look for changes that were made at others.
const POLL: Duration = Duration::from_secs(5);
/// How often a server that is alone looks although it knows of nothing that is due.
const POLL_ALONE: Duration = Duration::from_secs(60);
/// Pause of a server that drains, or whose store does not answer.
const REST: Duration = Duration::from_secs(1);

impl Service {
    /// Starts what schedules start, until cancelled.
    pub async fn keep_schedules(&self, cancel: CancellationToken) {
        cancel.run_until_cancelled(self.keep_looking()).await;
    }

    async fn keep_looking(&self) {
        let poll = self.poll();
        let mut ends = FuturesUnordered::new();
        loop {
            if let Err(error) = self.correct_times().await {
                tracing::warn!(%error, "the times of schedules are not corrected");
            }
            let looked = {
                let looking = self.look_at_schedules();
                tokio::pin!(looking);
                // Ends of runs are told meanwhile.
                loop {
                    tokio::select! {
                        looked = &mut looking => break looked,
                        new = self.schedule_ends.next_new() => ends.extend(self.followed(new)),
                        Some(()) = ends.next() => {}
                    }
                }
            };
            let wait = match looked {
                Ok(soonest) => self.until(soonest, poll),
                Err(error) => {
                    tracing::warn!(%error, "schedules cannot be looked at");
                    REST
                }
            };
            let wait = match self.drains() {
                true => REST,
                false => wait,
            };
            tokio::select! {
                () = self.schedules_changed.notified() => {}
                new = self.schedule_ends.next_new() => ends.extend(self.followed(new)),
                Some(()) = ends.next() => {}
                () = sleep(wait) => {}
            }
        }
    }

    fn followed(&self, new: Vec<Follow>) -> impl Iterator<Item = impl Future<Output = ()>> {
        new.into_iter().map(|follow| self.follow_to_end(follow))
    }

    fn drains(&self) -> bool {
        self.app.flows.slots().is_held_back()
    }

    /// Looks at every schedule that is due now; says when the next one is due. A server that drains does not.
    ///
    /// # Errors
    /// [`Error`]: the store does not answer.
    pub async fn look_at_schedules(&self) -> Result<Option<Timestamp>, Error> {
        let mut looks = FuturesUnordered::new();
        loop {
            let room = AT_ONCE - looks.len();
            let taken = {
                let taking = self.taken_due(room);
                tokio::pin!(taking);
                // Looks go on meanwhile: one of them may hold what this waits for.
                loop {
                    tokio::select! {
                        taken = &mut taking => break taken,
                        Some(()) = looks.next() => {}
                    }
                }
            };
            let (turns, soonest) = match taken {
                Ok(taken) => taken,
                Err(error) => {
                    // Those that are under way come to their end.
                    while looks.next().await.is_some() {}
                    return Err(error);
                }
            };
            let has_taken = !turns.is_empty();
            looks.extend(turns.into_iter().map(|turn| self.look(turn)));
            if looks.is_empty() {
                return Ok(soonest);
            }
            if has_taken && looks.len() < AT_ONCE {
                continue;
            }
            // What gets due meanwhile does not wait for a slow look.
            let wait = match self.drains() {
                true => REST,
                false => self.until(soonest, self.poll()),
            };
            tokio::select! {
                _ = looks.next() => {}
                () = self.schedules_changed.notified() => {}
                () = sleep(wait) => {}
            }
        }
    }

    /// Takes schedules that are due; if there are none, says when the next one is.
    async fn taken_due(&self, room: usize) -> Result<(Vec<Turn>, Option<Timestamp>), Error> {
        if room == 0 {
            return Ok((Vec::new(), None));
        }
        loop {
            let now = self.app.clock.civil();
            let soonest = self.schedules.soonest(now).await?;
            if soonest.is_none_or(|soonest| soonest > now) || self.drains() {
                return Ok((Vec::new(), soonest));
            }
            let room = u32::try_from(room).unwrap_or(u32::MAX);
            let until = now.plus_ms(LEASE_MS);
            let turns = self.schedules.take_due(now, until, room).await?;
            if !turns.is_empty() {
                return Ok((turns, soonest));
            }
        }
    }

    fn poll(&self) -> Duration {
        match self.forward {
            Some(_) => POLL,
            None => POLL_ALONE,
        }
    }

    fn until(&self, soonest: Option<Timestamp>, poll: Duration) -> Duration {
        soonest.map_or(poll, |soonest| {
            let us = soonest.0.saturating_sub(self.app.clock.civil().0).max(0);
            Duration::from_micros(us.unsigned_abs()).min(poll)
        })
    }

    async fn look(&self, turn: Turn) {
        let (id, name) = (turn.schedule.id, turn.schedule.name.clone());
        let mut look = Look::of(self, turn);
        if let Err(error) = look.at_due().await {
            tracing::warn!(schedule.id = %id, schedule.name = %name, %error, "a schedule waits");
        }
        if let Err(error) = look.let_go().await {
            tracing::warn!(schedule.id = %id, schedule.name = %name, %error, "a schedule is held until its lease ends");
        }
    }

    /// Starts a run of this version of a schedule by hand, once for each key; `None`: another server looks at it, it
    /// was changed, or it is gone.
    pub(super) async fn run_by_hand(
        &self,
        (id, version): (Uuid, u32),
        (key, overlap): (&Arc<str>, Option<Overlap>),
        audited: &Audited<'_>,
    ) -> Result<Option<Run>, Error> {
        let before = self.schedules.run(id, key).await.map_err(Error::from);
        if let Some(before) = found(audited, before).await?
            && before.state != State::Starting
        {
            return Ok(Some(before));
        }
        let now = self.app.clock.civil();
        let until = now.plus_ms(LEASE_MS);
        let taken = self.schedules.take(id, now, until).await;
        let Some(turn) = stored(audited, taken).await? else {
            return Ok(None);
        };
        let is_other = turn.schedule.version != version;
        let mut look = Look::of(self, turn);
        if is_other {
            look.let_go().await?;
            return Ok(None);
        }
        let overlap = overlap.unwrap_or(look.schedule.definition.overlap);
        let done = timeout_at(look.until, look.by_hand(key, overlap)).await;
        look.let_go().await?;
        done.map_err(|_| super::look::late())??;
        Ok(self.schedules.run(id, key).await?)
    }
}
