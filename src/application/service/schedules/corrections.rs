//! Notices that clocks have changed: that of the machine, which jumps, and those of zones, whose database is replaced.
//!
//! Both make times wrong that were right when they were stored. The store has those schedules looked at again; a look
//! takes back what was noted too early (`look`).

use super::super::Service;
use crate::application::api::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use taskledger_domain::Timestamp;
use taskledger_schedules::{EDITION_NOTED_MS, Editions};
use tokio::time::Instant;

/// Milliseconds by which the time of schedules must differ from what has passed to have jumped.
const JUMP_MS: u64 = 60_000;

/// The state of the clocks when they were looked at last.
#[derive(Debug, Default)]
pub(in super::super) struct Clocks(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    last: Option<(Instant, Timestamp)>,
    /// When the store is read again at the latest.
    due: Option<Instant>,
    /// The times that the last jump ahead left out: after the first, up to the second.
    left_out: Option<(Timestamp, Timestamp)>,
    editions: Editions,
}

impl Clocks {
    /// Whether the time of schedules jumped back since it was looked at last. Notes what a jump ahead left out.
    fn see(&self, instant: Instant, now: Timestamp) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((before_instant, before)) = seen.last.replace((instant, now)) else {
            return false;
        };
        let passed = instant.saturating_duration_since(before_instant);
        let expected = before.plus_ms(u64::try_from(passed.as_millis()).unwrap_or(u64::MAX));
        if now > expected.plus_ms(JUMP_MS) {
            seen.left_out = Some((expected, now));
        }
        now.plus_ms(JUMP_MS) < expected
    }

    fn is_due(&self, instant: Instant) -> bool {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.due.is_none_or(|due| due <= instant)
    }

    fn note(&self, due: Instant, editions: Editions) -> Editions {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.due = Some(due);
        std::mem::replace(&mut seen.editions, editions)
    }

    /// The editions that other servers use.
    pub(in super::super) fn other_editions(&self) -> Vec<Arc<str>> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.editions.others.clone()
    }

    /// Why times up to this one were missed.
    pub(super) fn why_missed(&self, last: Timestamp) -> &'static str {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match seen.left_out {
            Some((from, to)) if from < last && last <= to => {
                "the clock of this server jumped ahead over them"
            }
            Some(_) | None => "no server looked at them within `catch_up_seconds`",
        }
    }
}

impl Service {
    /// Has schedules looked at again whose stored times are wrong now: because the clock that noted them was ahead, or
    /// because the time zone database is another one. Reads the store once a minute, and when the clock jumps back.
    ///
    /// # Errors
    /// [`Error`]: the store does not answer.
    pub async fn correct_times(&self) -> Result<(), Error> {
        let (instant, now) = (Instant::now(), self.app.clock.civil());
        let is_back = self.clocks.see(instant, now);
        if is_back {
            tracing::warn!(%now, "the clock of schedules went back; their times are computed again");
        }
        if !is_back && !self.clocks.is_due(instant) {
            return Ok(());
        }
        let corrected = self.schedules.correct_ahead(now).await?;
        if corrected > 0 {
            tracing::warn!(
                schedules = corrected,
                "schedules have times that a clock noted which was ahead; they are looked at again"
            );
        }
        self.zones.refresh();
        let edition = self.zones.edition();
        let found = self.schedules.note_edition(&edition, now).await?;
        // Alone, a server is what replaced the one that used the other edition.
        let others = match self.forward {
            Some(_) => found.others,
            None => Vec::new(),
        };
        let due = instant + Duration::from_millis(EDITION_NOTED_MS);
        let before = self.clocks.note(
            due,
            Editions {
                others: others.clone(),
                ..found
            },
        );
        if found.is_other {
            tracing::info!(%edition, "times of schedules are computed with this edition of the time zone database from now on");
        }
        if !others.is_empty() && before.others != others {
            tracing::warn!(
                %edition,
                others = %others.join(", "),
                "servers of this database use different editions of the time zone database, so they may compute different times"
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_a_jump_left_out_have_that_as_their_reason() {
        let clocks = Clocks::default();
        let (begin, at) = (Instant::now(), |seconds: i64| {
            Timestamp(seconds * 1_000_000)
        });
        assert!(!clocks.see(begin, at(0)));
        let later = begin + Duration::from_secs(30);
        assert!(
            !clocks.see(later, at(45)),
            "a clock that is slewed does not jump"
        );
        assert!(clocks.why_missed(at(40)).contains("no server"));
        assert!(!clocks.see(later, at(86_400)));
        for (missed, is_jump) in [(40, false), (46, true), (86_400, true), (86_401, false)] {
            let why = clocks.why_missed(at(missed));
            assert_eq!(why.contains("jumped ahead"), is_jump, "{missed}: {why}");
        }
        assert!(clocks.see(later, at(50)), "it went back");
    }
}
