//! Reads schedules and their runs.

use crate::rows::{self, Run, Schedule, columns, run_columns};
use crate::{Error, ScheduleStore};
use std::sync::Arc;
use taskledger_beside::Owner;
use taskledger_domain::Timestamp;
use taskledger_sql::{Columns, Row};
use uuid::Uuid;

impl ScheduleStore {
    /// A schedule by its name.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn schedule(
        &self,
        owner: &Owner,
        name: &Arc<str>,
    ) -> Result<Option<Schedule>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let found = Self::found(&mut tx, owner, name).await?;
            tx.commit().await?;
            Ok(found)
        };
        self.order(work).await
    }

    /// Schedules of an owner whose names come after `after`, in the order of their names.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn schedules(
        &self,
        owner: &Owner,
        after: Option<&Arc<str>>,
        limit: u32,
    ) -> Result<Vec<Schedule>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            args.text(owner.tenant.clone());
            args.text(owner.column());
            args.text(after.cloned().unwrap_or_else(|| Arc::from("")));
            args.int(i64::from(limit));
            let rows = tx.fetch_all(LIST, args).await?;
            let found = rows
                .iter()
                .map(rows::schedule)
                .collect::<Result<_, Error>>()?;
            tx.commit().await?;
            Ok(found)
        };
        self.order(work).await
    }

    /// A schedule by its name with its newest runs, newest first, both of the same moment: what its counters count is
    /// what its runs show.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn with_runs(
        &self,
        owner: &Owner,
        name: &Arc<str>,
        limit: u32,
    ) -> Result<Option<(Schedule, Vec<Run>)>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let Some(schedule) = Self::found(&mut tx, owner, name).await? else {
                tx.rollback().await?;
                return Ok(None);
            };
            let mut args = tx.args();
            args.id(schedule.id);
            args.int(i64::from(limit));
            let rows = tx.fetch_all(NEWEST, args).await?;
            let runs = rows.iter().map(rows::run).collect::<Result<_, Error>>()?;
            tx.commit().await?;
            Ok(Some((schedule, runs)))
        };
        self.order(work).await
    }

    /// One run of a schedule.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn run(&self, schedule: Uuid, key: &Arc<str>) -> Result<Option<Run>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            args.id(schedule);
            args.text(key.clone());
            let row = tx.fetch_optional(ONE, args).await?;
            let found = row.as_ref().map(rows::run).transpose()?;
            tx.commit().await?;
            Ok(found)
        };
        self.order(work).await
    }

    /// When the next schedule is due, those that a server holds not before their lease is over. Cost: O(1), and
    /// O(schedules that are held).
    ///
    /// # Errors
    /// [`Error`].
    pub async fn soonest(&self, now: Timestamp) -> Result<Option<Timestamp>, Error> {
        let work = async {
            let mut tx = self.read().await?;
            let mut args = tx.args();
            args.time(now);
            let free = tx.fetch_optional(SOONEST, args).await?;
            let mut args = tx.args();
            args.time(now);
            let held = tx.fetch_optional(SOONEST_HELD, args).await?;
            let time = |row: &Row| Columns::of(row).time();
            let free = free.as_ref().map(time).transpose()?;
            let held = held.as_ref().map(time).transpose()?;
            tx.commit().await?;
            Ok(free.into_iter().chain(held).min())
        };
        self.order(work).await
    }
}

const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM schedules WHERE tenant = $1 AND owner = $2 AND name > $3 ORDER BY name LIMIT $4"
);
const NEWEST: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM runs WHERE schedule = $1 ORDER BY scheduled_at DESC, key DESC LIMIT $2"
);
const ONE: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM runs WHERE schedule = $1 AND key = $2"
);
// By the index on due_at.
const SOONEST: &str = "SELECT due_at FROM schedules
    WHERE due_at IS NOT NULL AND leased_until <= $1
    ORDER BY due_at
    LIMIT 1";
// By the index on leased_until.
const SOONEST_HELD: &str =
    "SELECT CASE WHEN due_at > leased_until THEN due_at ELSE leased_until END AS soonest FROM schedules
    WHERE due_at IS NOT NULL AND leased_until > $1 AND leased_until > 0
    ORDER BY soonest
    LIMIT 1";
