//! Has times computed again that were right when they were computed: clocks of zones, and of machines, are changed.

use crate::{Error, ScheduleStore};
use std::sync::Arc;
use taskledger_domain::Timestamp;
use taskledger_sql::Columns;

/// Milliseconds by which a time that a server has dealt with, or the end of a lease, may be ahead of the clock of
/// another server before it counts as noted by a clock that was wrong.
pub const AHEAD_MS: u64 = 600_000;
/// Milliseconds within which servers that use an edition note it again.
pub const EDITION_NOTED_MS: u64 = 60_000;
/// Milliseconds after which an edition that no server has noted again is not in use any more.
const EDITION_USED_MS: u64 = 3 * EDITION_NOTED_MS;
/// Milliseconds after which it is forgotten: a year.
const EDITION_KEPT_MS: u64 = 365 * 24 * 3_600_000;

/// The editions of the time zone database that servers use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Editions {
    /// Those that other servers use at the same time.
    pub others: Vec<Arc<str>>,
    /// Whether the times of schedules may have been computed with another edition until now.
    pub is_other: bool,
}

impl ScheduleStore {
    /// Notes that a server computes times with an edition of the time zone database. If the newest note is of another
    /// edition that no server uses any more, or there is none, all schedules are due now, so that their times are
    /// computed again.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn note_edition(
        &self,
        edition: &Arc<str>,
        now: Timestamp,
    ) -> Result<Editions, Error> {
        let work = async {
            let mut tx = self.write().await?;
            let args = tx.args();
            let rows = tx.fetch_all(EDITIONS, args).await?;
            let noted = rows.iter().map(|row| {
                let mut columns = Columns::of(row);
                Ok::<_, Error>((columns.text()?, columns.time()?))
            });
            let noted = noted.collect::<Result<Vec<(Arc<str>, Timestamp)>, Error>>()?;
            let is_known = noted
                .iter()
                .any(|(known, at)| known == edition && at.plus_ms(EDITION_USED_MS) > now);
            let is_other = !is_known && noted.first().is_none_or(|(newest, _)| newest != edition);
            let others = noted
                .iter()
                .filter(|(other, at)| other != edition && at.plus_ms(EDITION_USED_MS) > now);
            let editions = Editions {
                others: others.map(|(other, _)| other.clone()).collect(),
                is_other,
            };
            let mut args = tx.args();
            args.text(edition.clone());
            args.time(now);
            tx.execute(NOTE, args).await?;
            let mut args = tx.args();
            args.time(before(now, EDITION_KEPT_MS));
            tx.execute(FORGET, args).await?;
            if is_other {
                let mut args = tx.args();
                args.time(now);
                tx.execute(LOOK_AT_ALL, args).await?;
            }
            tx.commit().await?;
            Ok(editions)
        };
        self.order(work).await
    }

    /// Has those schedules looked at now of which a clock that was ahead has noted times, and takes the leases that end
    /// as late. How many. Cost: O(schedules).
    ///
    /// # Errors
    /// [`Error`].
    pub async fn correct_ahead(&self, now: Timestamp) -> Result<u64, Error> {
        let work = async {
            let mut tx = self.write().await?;
            let mut args = tx.args();
            args.time(now);
            args.time(now.plus_ms(AHEAD_MS));
            let corrected = tx.execute(CORRECT, args).await?;
            tx.commit().await?;
            Ok(corrected)
        };
        self.order(work).await
    }
}

fn before(now: Timestamp, ms: u64) -> Timestamp {
    let us = i64::try_from(ms).unwrap_or(i64::MAX).saturating_mul(1_000);
    Timestamp(now.0.saturating_sub(us))
}

const EDITIONS: &str =
    "SELECT edition, noted_at FROM zone_editions ORDER BY noted_at DESC, edition";
const NOTE: &str = "INSERT INTO zone_editions (edition, noted_at) VALUES ($1, $2)
    ON CONFLICT (edition) DO UPDATE SET noted_at = excluded.noted_at";
const FORGET: &str = "DELETE FROM zone_editions WHERE noted_at < $1";
const LOOK_AT_ALL: &str = "UPDATE schedules SET due_at = $1 WHERE due_at > $1";
// A time that is not after the cursor is decided again, but its flow starts once: its id follows from the time.
const CORRECT: &str = "UPDATE schedules SET due_at = $1, leased_until = 0, lease = lease + 1
    WHERE leased_until > $2 OR (cursor > $2 AND (due_at IS NULL OR due_at > $1))";
