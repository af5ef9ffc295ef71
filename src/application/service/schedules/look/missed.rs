//! The times that a look does not start: those that passed too long ago, and those that a clock noted too early.

use super::{Look, due};
use crate::application::api::Error;
use crate::application::figures::TimeOfSchedule;
use crate::runtime::maybe_block_in_place;
use std::time::Duration;
use taskledger_domain::Timestamp;
use taskledger_schedules::{AHEAD_MS, Calendar, Step};
use tokio::time::Instant;

/// Missed times that are counted at once; those after them are counted next.
const MISSED_MAX: u64 = 10_000;
/// How long they are counted at once.
const MISSED: Duration = Duration::from_millis(500);

impl Look<'_> {
    /// Takes back that times are dealt with which are still to come: a clock that was ahead has noted them. Of those
    /// that have had their run none starts another one, as the id of its flow follows from the time.
    pub(super) async fn correct_cursor(&mut self) -> Result<(), Error> {
        let now = self.now();
        let noted = self.schedule.cursor;
        if noted <= now.plus_ms(AHEAD_MS) {
            return Ok(());
        }
        let step = Step {
            cursor: Some(now),
            ..Step::default()
        };
        if self.service.schedules.decide(&self.schedule, &step).await? {
            self.schedule.cursor = now;
            tracing::warn!(schedule.id = %self.schedule.id, schedule.name = %self.schedule.name, %noted, "a schedule goes on from now: a clock that was ahead had dealt with its times up to then");
        } else {
            self.is_lost = true;
        }
        Ok(())
    }

    /// Counts times that were too old to be made up at `looked`: as many as are counted at once.
    pub(super) async fn miss(
        &mut self,
        calendar: &Calendar,
        looked: Timestamp,
    ) -> Result<(), Error> {
        let schedule = &self.schedule;
        let window = schedule.definition.catch_up_seconds * 1000;
        let end = Instant::now() + MISSED;
        let mut is_first = true;
        let counts = |at| {
            let has_time = std::mem::take(&mut is_first) || Instant::now() < end;
            has_time && due(schedule.id, &schedule.definition, at).plus_ms(window) < looked
        };
        let definition = &schedule.definition;
        let passed = || definition.passed(calendar, schedule.cursor, MISSED_MAX, counts);
        let (missed, last) = maybe_block_in_place(usize::MAX, passed);
        let cursor = last.unwrap_or(schedule.cursor);
        let step = Step {
            cursor: Some(cursor),
            missed,
            run: None,
        };
        if self.service.schedules.decide(&self.schedule, &step).await? {
            self.schedule.cursor = cursor;
            self.count(TimeOfSchedule::Missed, missed);
            let reason = self.service.clocks.why_missed(cursor);
            tracing::warn!(schedule.id = %self.schedule.id, schedule.name = %self.schedule.name, missed, reason, "a schedule has missed times");
        } else {
            self.is_lost = true;
        }
        Ok(())
    }
}
