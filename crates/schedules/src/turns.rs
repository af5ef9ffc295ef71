//! Looks at schedules that are due: one server at a time, each decision recorded before it is carried out.
//!
//! A lease is a number that rises with each look and each change. What is decided under an older one is refused, so two
//! servers, or one that stood still, never decide the same time. A decision to start is a row `starting`: whoever looks
//! next after a crash finds it and starts the same flow, once.

use crate::rows::{self, Run, Schedule, State, columns, run_columns};
use crate::{Error, ScheduleStore};
use std::sync::Arc;
use taskledger_domain::Timestamp;
use taskledger_sql::{Columns, Tx};
use uuid::Uuid;

/// Runs of a schedule that are remembered when they are over, the newest.
pub const RUNS_KEPT: u32 = 100;
/// Runs of a schedule that may be open at a time.
pub const OPEN_MAX: usize = 1_000;
/// Runs that are forgotten at a time: a decision adds one.
const FORGOTTEN_MAX: i64 = 20;
/// Milliseconds until a schedule that cannot be read is tried again: a newer release may have written it.
const UNREADABLE_AGAIN_MS: u64 = 30_000;
/// Milliseconds until a time that could not be started, or that waits for what is not followed, is looked at again.
pub const LOOK_AGAIN_MS: u64 = 1_000;

/// The right to decide about one schedule, until its lease ends or it is changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The schedule, with the number of this lease.
    pub schedule: Schedule,
    /// Its runs that wait, are being started or have not ended, as far as is known; oldest first.
    pub open: Vec<Run>,
}

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Step {
    /// All times up to here are dealt with; `None`: as before.
    pub cursor: Option<Timestamp>,
    /// Times that were missed.
    pub missed: u64,
    /// What becomes of a time, or of a start by hand. One that waited is replaced.
    pub run: Option<Run>,
}

/// The outcome of a run that was being started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It began; its id, if that is known.
    Started(Option<Uuid>),
    /// It could not be started: why.
    Failed(Arc<str>),
}

impl ScheduleStore {
    /// Takes up to `limit` schedules that are due and that no other server holds, until then. Those that cannot be read
    /// are left out, with an error in the log.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn take_due(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<Turn>, Error> {
        let work = async {
            let mut tx = self.write().await?;
            let mut args = tx.args();
            args.time(now);
            args.int(i64::from(limit));
            let rows = tx.fetch_all(DUE, args).await?;
            let mut turns = Vec::with_capacity(rows.len());
            for row in &rows {
                let turn = match rows::schedule(row) {
                    Ok(schedule) => leased(&mut tx, schedule, until).await,
                    Err(error) => Err(error),
                };
                match turn {
                    Ok(turn) => turns.push(turn),
                    Err(Error::Damaged(reason)) => {
                        let id = Columns::of(row).id()?;
                        tracing::error!(schedule.id = %id, %reason, "a schedule is left out");
                        let mut args = tx.args();
                        args.id(id);
                        args.time(now.plus_ms(UNREADABLE_AGAIN_MS));
                        tx.execute(LEAVE_OUT, args).await?;
                    }
                    Err(error @ (Error::Database(_) | Error::Late)) => return Err(error),
                }
            }
            tx.commit().await?;
            Ok(turns)
        };
        self.order(work).await
    }

    /// Takes one schedule, due or not; `None`: another server holds it, or it is gone.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn take(
        &self,
        id: Uuid,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Turn>, Error> {
        let work = async {
            let mut tx = self.write().await?;
            let mut args = tx.args();
            args.id(id);
            args.time(now);
            let row = tx.fetch_optional(FREE, args).await?;
            let Some(schedule) = row.as_ref().map(rows::schedule).transpose()? else {
                tx.rollback().await?;
                return Ok(None);
            };
            let turn = leased(&mut tx, schedule, until).await?;
            tx.commit().await?;
            Ok(Some(turn))
        };
        self.order(work).await
    }

    /// Records a decision. Whether the lease was still the newest: else nothing is recorded.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn decide(&self, schedule: &Schedule, step: &Step) -> Result<bool, Error> {
        let work = async {
            let mut tx = self.write().await?;
            let skipped = step
                .run
                .as_ref()
                .is_some_and(|it| it.state == State::Skipped);
            let mut args = tx.args();
            args.id(schedule.id);
            args.int(schedule.lease);
            args.time(step.cursor.unwrap_or(schedule.cursor));
            args.int(i64::try_from(step.missed).unwrap_or(i64::MAX));
            args.int(i64::from(skipped));
            if tx.execute(ADVANCE, args).await? == 0 {
                tx.rollback().await?;
                return Ok(false);
            }
            if let Some(run) = &step.run {
                let mut args = tx.args();
                args.id(schedule.id);
                args.text(run.key.clone());
                args.time(run.scheduled_at);
                args.name(run.state.as_str());
                args.id(run.flow);
                args.time(run.decided_at);
                args.int(i64::from(run.cancels));
                tx.execute(PUT_RUN, args).await?;
                Self::forget(&mut tx, schedule.id).await?;
            }
            tx.commit().await?;
            Ok(true)
        };
        self.order(work).await
    }

    /// Records what became of a run that was being started, whoever holds the lease. Whether it was: what is recorded
    /// already stays.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn settle(
        &self,
        schedule: Uuid,
        run: &Run,
        outcome: &Outcome,
        at: Timestamp,
    ) -> Result<bool, Error> {
        let work = async {
            let mut tx = self.write().await?;
            let mut args = tx.args();
            args.id(schedule);
            args.text(run.key.clone());
            let (state, id, error) = match outcome {
                Outcome::Started(id) => (State::Started, *id, None),
                Outcome::Failed(error) => (State::Failed, None, Some(error.clone())),
            };
            args.name(state.as_str());
            args.opt_id(id);
            args.text(error.clone());
            args.time(at);
            if tx.execute(SETTLE, args).await? == 0 {
                tx.rollback().await?;
                return Ok(false);
            }
            let mut args = tx.args();
            args.id(schedule);
            args.int(i64::from(error.is_none() && !run.is_by_hand()));
            args.int(i64::from(error.is_none() && run.is_by_hand()));
            args.int(i64::from(error.is_some()));
            args.text(error);
            tx.execute(COUNT_STARTED, args).await?;
            Self::forget(&mut tx, schedule).await?;
            tx.commit().await?;
            Ok(true)
        };
        self.order(work).await
    }

    /// Forgets some of the oldest runs that are over, all but the newest.
    async fn forget(tx: &mut Tx<'_>, schedule: Uuid) -> Result<(), Error> {
        let mut args = tx.args();
        args.id(schedule);
        args.int(i64::from(RUNS_KEPT));
        args.int(FORGOTTEN_MAX);
        tx.execute(FORGET, args).await?;
        Ok(())
    }

    /// Whether a run is still to be started, by whoever has this lease, now.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn may_start(
        &self,
        schedule: &Schedule,
        run: &Run,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            args.id(schedule.id);
            args.int(schedule.lease);
            args.time(now);
            args.text(run.key.clone());
            let found = tx.fetch_optional(MAY_START, args).await?.is_some();
            tx.commit().await?;
            Ok(found)
        };
        self.order(work).await
    }

    /// Records that a run is not started after all, because its schedule was paused. Whether it was not settled before.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn skip(&self, schedule: Uuid, run: &Run, at: Timestamp) -> Result<bool, Error> {
        let work = async {
            let mut tx = self.write().await?;
            let mut args = tx.args();
            args.id(schedule);
            args.text(run.key.clone());
            args.time(at);
            if tx.execute(SKIP, args).await? == 0 {
                tx.rollback().await?;
                return Ok(false);
            }
            let mut args = tx.args();
            args.id(schedule);
            tx.execute(COUNT_SKIPPED, args).await?;
            tx.commit().await?;
            Ok(true)
        };
        self.order(work).await
    }

    /// Records how a run has ended.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn ended(&self, schedule: Uuid, key: &Arc<str>, stage: &str) -> Result<(), Error> {
        let work = async {
            let mut tx = self.write().await?;
            let mut args = tx.args();
            args.id(schedule);
            args.text(key.clone());
            args.text(Arc::<str>::from(stage));
            tx.execute(ENDED, args).await?;
            Ok(tx.commit().await?)
        };
        self.order(work).await
    }

    /// Lets go of a schedule. `due_at`: when it is to be looked at next, if nothing of it waits or is being started;
    /// if something waits, `waiting_ms` after `now` at the latest. `waits`: the look did not come to its end.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn let_go(
        &self,
        schedule: &Schedule,
        (next_at, due_at): (Option<Timestamp>, Option<Timestamp>),
        waits: bool,
        (now, waiting_ms): (Timestamp, u64),
    ) -> Result<(), Error> {
        let work = async {
            let mut tx = self.write().await?;
            let mut args = tx.args();
            args.id(schedule.id);
            args.int(schedule.lease);
            args.time(next_at);
            args.time(due_at);
            args.time(waits.then(|| schedule.waits_since.unwrap_or(now)));
            if tx.execute(LET_GO, args).await? > 0 {
                Self::keep_looking(&mut tx, schedule.id, now, waiting_ms).await?;
            }
            Ok(tx.commit().await?)
        };
        self.order(work).await
    }

    /// Has a schedule looked at soon while something of it is being started, and within `waiting_ms` while something
    /// waits.
    pub(crate) async fn keep_looking(
        tx: &mut Tx<'_>,
        schedule: Uuid,
        now: Timestamp,
        waiting_ms: u64,
    ) -> Result<(), Error> {
        let mut args = tx.args();
        args.id(schedule);
        args.time(now.plus_ms(LOOK_AGAIN_MS));
        args.time(now.plus_ms(waiting_ms));
        tx.execute(LOOK_AGAIN, args).await?;
        Ok(())
    }

    /// Has a schedule looked at now if something of it waits; false: somebody looks at it now, so ask again later.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn wake(&self, schedule: Uuid, now: Timestamp) -> Result<bool, Error> {
        let work = async {
            let mut tx = self.write().await?;
            let mut args = tx.args();
            args.id(schedule);
            args.time(now);
            let is_woken = tx.execute(WAKE, args).await? > 0;
            let mut args = tx.args();
            args.id(schedule);
            args.time(now);
            let is_held = !is_woken && tx.fetch_optional(HELD, args).await?.is_some();
            tx.commit().await?;
            Ok(!is_held)
        };
        self.order(work).await
    }
}

async fn leased(tx: &mut Tx<'_>, mut schedule: Schedule, until: Timestamp) -> Result<Turn, Error> {
    schedule.lease += 1;
    let mut args = tx.args();
    args.id(schedule.id);
    args.int(schedule.lease);
    args.time(until);
    tx.execute(LEASE, args).await?;
    let mut args = tx.args();
    args.id(schedule.id);
    let open = tx.fetch_all(OPEN, args).await?;
    let open = open.iter().map(rows::run).collect::<Result<_, Error>>()?;
    Ok(Turn { schedule, open })
}

impl ScheduleStore {
    /// Schedules that are kept, of all owners.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn count(&self) -> Result<u64, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let args = tx.args();
            let row = tx.fetch_one("SELECT count(*) FROM schedules", args).await?;
            let count = Columns::of(&row).number()?;
            tx.commit().await?;
            Ok(count)
        };
        self.order(work).await
    }
}

// By the index on due_at.
const DUE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM schedules WHERE due_at <= $1 AND leased_until <= $1 ORDER BY due_at LIMIT $2"
);
const FREE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM schedules WHERE id = $1 AND leased_until <= $2"
);
const LEASE: &str = "UPDATE schedules SET lease = $2, leased_until = $3 WHERE id = $1";
const OPEN: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM runs WHERE schedule = $1 AND (state IN ('waiting', 'starting') OR (state = 'started' AND stage IS NULL))
    ORDER BY scheduled_at, key"
);
const ADVANCE: &str =
    "UPDATE schedules SET cursor = $3, missed = missed + $4, skipped = skipped + $5
    WHERE id = $1 AND lease = $2";
const PUT_RUN: &str =
    "INSERT INTO runs (schedule, key, scheduled_at, state, flow, run, stage, error, decided_at, at, cancels)
    VALUES ($1, $2, $3, $4, $5, NULL, NULL, NULL, $6, $6, $7)
    ON CONFLICT (schedule, key) DO UPDATE SET
        state = excluded.state, decided_at = excluded.decided_at, at = excluded.at, cancels = excluded.cancels
    WHERE runs.state = 'waiting'";
const SETTLE: &str = "UPDATE runs SET state = $3, run = $4, error = $5, at = $6
    WHERE schedule = $1 AND key = $2 AND state = 'starting'";
const COUNT_STARTED: &str = "UPDATE schedules SET
        started = started + $2, started_by_hand = started_by_hand + $3, failed = failed + $4,
        last_error = coalesce($5, last_error)
    WHERE id = $1";
// By the index on scheduled_at; what is open stays.
const FORGET: &str = "DELETE FROM runs WHERE schedule = $1 AND key IN (
        SELECT key FROM runs
        WHERE schedule = $1 AND (state IN ('skipped', 'failed') OR (state = 'started' AND stage IS NOT NULL))
        ORDER BY scheduled_at DESC, key DESC LIMIT $3 OFFSET $2)";
const LEAVE_OUT: &str = "UPDATE schedules SET due_at = $2, leased_until = 0 WHERE id = $1";
const MAY_START: &str = "SELECT 1 FROM schedules
    WHERE id = $1 AND lease = $2 AND leased_until > $3
        AND EXISTS (SELECT 1 FROM runs WHERE schedule = $1 AND key = $4 AND state = 'starting')";
const SKIP: &str = "UPDATE runs SET state = 'skipped', decided_at = $3, at = $3
    WHERE schedule = $1 AND key = $2 AND state = 'starting'";
const COUNT_SKIPPED: &str = "UPDATE schedules SET skipped = skipped + 1 WHERE id = $1";
const ENDED: &str = "UPDATE runs SET stage = $3 WHERE schedule = $1 AND key = $2 AND stage IS NULL";
const LET_GO: &str =
    "UPDATE schedules SET leased_until = 0, next_at = $3, due_at = $4, waits_since = $5
    WHERE id = $1 AND lease = $2";
// A start that is tried again is not tried at once, whatever else is due.
const LOOK_AGAIN: &str = "UPDATE schedules SET due_at = CASE
        WHEN EXISTS (SELECT 1 FROM runs WHERE schedule = $1 AND state = 'starting') THEN $2
        ELSE $3
    END
    WHERE id = $1 AND (
        EXISTS (SELECT 1 FROM runs WHERE schedule = $1 AND state = 'starting')
        OR (due_at IS NULL OR due_at > $3)
            AND EXISTS (SELECT 1 FROM runs WHERE schedule = $1 AND state = 'waiting'))";
const WAKE: &str = "UPDATE schedules SET due_at = $2
    WHERE id = $1 AND leased_until <= $2
        AND EXISTS (SELECT 1 FROM runs WHERE schedule = $1 AND state = 'waiting')";
const HELD: &str = "SELECT 1 FROM schedules WHERE id = $1 AND leased_until > $2";
