//! Creates, changes and deletes schedules.

use crate::rows::{self, NewSchedule, Schedule};
use crate::turns::LOOK_AGAIN_MS;
use crate::{Error, ScheduleStore};
use std::sync::Arc;
use taskledger_beside::Owner;
use taskledger_domain::Timestamp;
use taskledger_sql::Columns;

/// Schedules of one owner: each costs a look at each of its times.
pub const SCHEDULES_MAX: usize = 1_000;

/// Why nothing is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The owner has too many.
    #[error("an owner has at most {SCHEDULES_MAX} schedules; delete others first")]
    TooMany,
    /// The name is taken.
    #[error("a schedule of this name exists, version {0}")]
    Exists(u32),
    /// Its version is another than the caller expects.
    #[error("its version is {0}")]
    Changed(u32),
}

/// The result of deleting a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// It is gone.
    Gone,
    /// There was none.
    Absent,
    /// A server is starting a run of it: nothing was done.
    Held,
}

impl ScheduleStore {
    /// Keeps a new schedule.
    ///
    /// # Errors
    /// [`Error`]; within, [`Refusal`].
    pub async fn create(&self, new: &NewSchedule) -> Result<Result<Schedule, Refusal>, Error> {
        let work = async {
            let mut tx = self.write().await?;
            if let Some(found) = Self::found(&mut tx, &new.owner, &new.name).await? {
                tx.rollback().await?;
                return Ok(Err(Refusal::Exists(found.version)));
            }
            let mut args = tx.args();
            args.text(new.owner.tenant.clone());
            args.text(new.owner.column());
            let row = tx.fetch_one(COUNT, args).await?;
            let count: usize = Columns::of(&row).number()?;
            if count >= SCHEDULES_MAX {
                tx.rollback().await?;
                return Ok(Err(Refusal::TooMany));
            }
            let mut args = tx.args();
            args.id(new.id);
            args.text(new.owner.tenant.clone());
            args.text(new.owner.column());
            args.text(new.name.clone());
            args.text(new.actor.clone());
            args.text(new.scopes.clone());
            args.text(rows::written(&new.definition));
            args.int(i64::from(new.paused.is_some()));
            args.text(new.paused.clone().flatten());
            args.time(new.at);
            args.time(new.cursor);
            args.time(new.next_at);
            args.time(new.due_at);
            args.int(new.work_version.map(i64::from));
            tx.execute(ADD, args).await?;
            let found = Self::found(&mut tx, &new.owner, &new.name).await?;
            tx.commit().await?;
            let missing = || Error::Damaged("a new schedule is missing".to_owned());
            Ok(Ok(found.ok_or_else(missing)?))
        };
        self.order(work).await
    }

    /// Puts a schedule in the place of `seen`, with the next version, if it is still as it was then; whoever holds its
    /// lease decides nothing about it any more. When it is paused in the middle of a start, the next look comes once
    /// that one is over. `None`: it is not.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn replace(
        &self,
        seen: &Schedule,
        new: &Schedule,
        at: Timestamp,
    ) -> Result<Option<Schedule>, Error> {
        let work = async {
            let mut tx = self.write().await?;
            let mut args = tx.args();
            args.id(seen.id);
            args.int(i64::from(seen.version));
            args.time(seen.cursor);
            args.text(new.actor.clone());
            args.text(new.scopes.clone());
            args.text(rows::written(&new.definition));
            args.int(i64::from(new.is_paused));
            args.text(new.note.clone());
            args.time(at);
            args.time(new.cursor);
            args.time(new.next_at);
            args.time(new.due_at);
            let missed = new.counters.missed.saturating_sub(seen.counters.missed);
            args.int(i64::try_from(missed).unwrap_or(i64::MAX));
            args.int(new.work_version.map(i64::from));
            if tx.execute(REPLACE, args).await? == 0 {
                tx.rollback().await?;
                return Ok(None);
            }
            if new.is_paused {
                // What waits is skipped: nothing begins while it is paused.
                let mut args = tx.args();
                args.id(seen.id);
                args.time(at);
                let skipped = tx.execute(SKIP_WAITING, args).await?;
                let mut args = tx.args();
                args.id(seen.id);
                args.int(i64::try_from(skipped).unwrap_or(i64::MAX));
                tx.execute(COUNT_SKIPPED, args).await?;
            }
            Self::keep_looking(&mut tx, seen.id, at, LOOK_AGAIN_MS).await?;
            let found = Self::found(&mut tx, &seen.owner, &seen.name).await?;
            tx.commit().await?;
            Ok(found)
        };
        self.order(work).await
    }

    /// Deletes a schedule, with what is known of its runs; those go on. Not while a server is starting one of them.
    /// `expected`: its version.
    ///
    /// # Errors
    /// [`Error`]; within, [`Refusal::Changed`].
    pub async fn delete(
        &self,
        owner: &Owner,
        name: &Arc<str>,
        expected: Option<u32>,
        now: Timestamp,
    ) -> Result<Result<Deleted, Refusal>, Error> {
        let work = async {
            let mut tx = self.write().await?;
            let Some(found) = Self::found(&mut tx, owner, name).await? else {
                tx.rollback().await?;
                return Ok(Ok(Deleted::Absent));
            };
            if expected.is_some_and(|expected| expected != found.version) {
                tx.rollback().await?;
                return Ok(Err(Refusal::Changed(found.version)));
            }
            let mut args = tx.args();
            args.id(found.id);
            args.time(now);
            if tx.fetch_optional(UNDER_WAY, args).await?.is_some() {
                tx.rollback().await?;
                return Ok(Ok(Deleted::Held));
            }
            for statement in [REMOVE_RUNS, REMOVE] {
                let mut args = tx.args();
                args.id(found.id);
                tx.execute(statement, args).await?;
            }
            tx.commit().await?;
            Ok(Ok(Deleted::Gone))
        };
        self.order(work).await
    }
}

// By the index of the names; at most SCHEDULES_MAX rows.
const COUNT: &str = "SELECT count(*) FROM schedules WHERE tenant = $1 AND owner = $2";
const ADD: &str = "INSERT INTO schedules (id, tenant, owner, name, actor, scopes, version, definition, paused, note,
        created_at, updated_at, cursor, next_at, due_at, lease, leased_until,
        started, started_by_hand, skipped, missed, failed, last_error, work_version)
    VALUES ($1, $2, $3, $4, $5, $6, 1, $7, $8, $9, $10, $10, $11, $12, $13, 0, 0, 0, 0, 0, 0, 0, NULL, $14)";
const REPLACE: &str = "UPDATE schedules SET
        actor = $4, scopes = $5, definition = $6, paused = $7, note = $8, updated_at = $9,
        cursor = $10, next_at = $11, due_at = $12, missed = missed + $13, work_version = $14,
        version = version + 1, lease = lease + 1, waits_since = CASE WHEN $7 = 1 THEN NULL ELSE waits_since END,
        leased_until = CASE WHEN $7 = 1 AND EXISTS (
            SELECT 1 FROM runs WHERE schedule = $1 AND state = 'starting') THEN leased_until ELSE 0 END
    WHERE id = $1 AND version = $2 AND cursor = $3";
const SKIP_WAITING: &str = "UPDATE runs SET state = 'skipped', decided_at = $2, at = $2
    WHERE schedule = $1 AND state = 'waiting'";
const COUNT_SKIPPED: &str = "UPDATE schedules SET skipped = skipped + $2 WHERE id = $1";
const UNDER_WAY: &str = "SELECT lease FROM schedules WHERE id = $1 AND leased_until > $2
    AND EXISTS (SELECT 1 FROM runs WHERE schedule = $1 AND state = 'starting')";
const REMOVE_RUNS: &str = "DELETE FROM runs WHERE schedule = $1";
const REMOVE: &str = "DELETE FROM schedules WHERE id = $1";
