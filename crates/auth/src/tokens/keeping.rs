//! Background work on tokens: it hears of changes elsewhere, notes when tokens were used, writes what the audit log has
//! counted, and removes old rows.

use super::Tokens;
use crate::audit::AUDIT_KEPT_DAYS;
use crate::store::Error;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;
use taskledger_domain::Timestamp;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// How often it looks whether something has changed elsewhere, and writes what the audit log has counted.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long one look may take.
const LOOK_WAIT: Duration = Duration::from_secs(2);
/// Looks after which it is noted when tokens were used: a minute.
const NOTE_EVERY: u64 = 60;
/// Looks after which what is old is removed: an hour.
const SWEEP_EVERY: u64 = 3_600;
/// Looks after which tokens that end soon are named in the server's own log: a day.
const WARN_EVERY: u64 = 24 * 3_600;
/// How long before its end a token is named.
const WARN_BEFORE_MS: u64 = 14 * 24 * 3_600 * 1_000;
/// Tokens that are looked at in one go for that.
const WARN_AT_A_TIME: usize = 500;
const DAY_MICROS: i64 = 24 * 3_600 * 1_000_000;

impl Tokens {
    /// Does all of it until it is dropped. Call [`Tokens::finish`] then.
    pub async fn keep(&self) {
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for n in 0_u64.. {
            ticks.tick().await;
            self.look().await;
            self.forget_old(self.clock.now());
            log_failure(
                self.audit.flush().await.map(drop),
                "the audit log is behind",
            );
            if n % NOTE_EVERY == NOTE_EVERY - 1 {
                log_failure(self.note_used().await, "the use of tokens is not noted");
            }
            if n % SWEEP_EVERY == 0 {
                log_failure(self.sweep().await, "old tokens and audit rows are kept");
            }
            if n % WARN_EVERY == 0 {
                log_failure(self.warn().await, "tokens that end soon are not known");
            }
        }
    }

    /// Writes what is only in memory: before the server stops.
    pub async fn finish(&self) {
        log_failure(self.note_used().await, "the use of tokens is not noted");
        log_failure(
            self.audit.flush().await.map(drop),
            "the audit log is behind",
        );
    }

    /// Forgets what it knows if something has changed since it last looked. A store that does not answer
    /// changes nothing.
    pub async fn look(&self) {
        let Ok(Ok(generation)) = timeout(LOOK_WAIT, self.store.generation()).await else {
            return;
        };
        if self.generation.swap(generation, Ordering::Relaxed) != generation {
            self.forget();
        }
        self.denied.follow(generation).await;
    }

    /// Notes when tokens were used since this was last done: one transaction for all.
    ///
    /// # Errors
    /// [`Error`]: it is tried again the next time.
    pub async fn note_used(&self) -> Result<(), Error> {
        let used = {
            let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *used)
        };
        if used.is_empty() {
            return Ok(());
        }
        let times: Vec<_> = used.into_iter().collect();
        let noted = self.store.used(&times).await;
        if noted.is_err() {
            let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
            for (id, at) in times {
                used.entry(id).or_insert(at);
            }
        }
        noted
    }

    /// Removes rows of the audit log, and tokens that have ended and JWTs that are refused, after [`AUDIT_KEPT_DAYS`].
    ///
    /// # Errors
    /// [`Error`]: what was removed is removed.
    pub async fn sweep(&self) -> Result<(), Error> {
        let old = Timestamp(self.clock.now().0 - AUDIT_KEPT_DAYS * DAY_MICROS);
        self.store.sweep_tokens(old).await?;
        self.store.sweep_denied(old).await?;
        self.store.sweep_audit(old).await?;
        Ok(())
    }

    /// Names tokens in use that end within [`WARN_BEFORE_MS`].
    async fn warn(&self) -> Result<(), Error> {
        let now = self.clock.now();
        let mut after = 0;
        loop {
            let rows = self.store.tokens(None, after, WARN_AT_A_TIME).await?;
            for row in &rows {
                let soon = row
                    .expires_at
                    .filter(|ends| *ends > now && ends.ms_since(now) < WARN_BEFORE_MS);
                if let (Some(expires_at), None, Some(_)) = (soon, row.revoked_at, row.last_used_at)
                {
                    let owner = format!("{}:{}", row.owner.kind.as_str(), row.owner.name);
                    tracing::warn!(token.id = %row.id, owner, %expires_at, "a token in use ends soon: rotate it");
                }
            }
            match rows.last() {
                Some(last) if rows.len() == WARN_AT_A_TIME => after = last.no,
                Some(_) | None => return Ok(()),
            }
        }
    }
}

fn log_failure(done: Result<(), Error>, what: &'static str) {
    if let Err(error) = done {
        tracing::warn!(%error, "{what}");
    }
}
