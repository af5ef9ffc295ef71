//! Looking at schedules that are due, and starting what they start: on any node, each time once.
//!
//! A look takes the lease of a schedule, records each decision before it acts on it, and lets go. What a crash leaves
//! between the decision and the start is found by the next look, here or on another node, and started then.

use super::super::Service;
use super::due;
use super::starting::Standing;
use crate::application::api::Error;
use crate::application::api::schedules::{Overlap, Run, Schedule, State};
use crate::application::figures::TimeOfSchedule;
use futures_util::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::Timestamp;
use taskledger_schedules::{Calendar, LOOK_AGAIN_MS, Outcome, Step, Turn, flow_of, key_of_time};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Schedules that are taken at a time.
const BATCH: u32 = 32;
/// Of them, those that are looked at at once.
const AT_ONCE: usize = 8;
/// Milliseconds that a look may take; after them another server may look.
const LEASE_MS: u64 = 10_000;
/// Times of one schedule that are decided in one look: then it is another one's turn.
const TIMES_MAX: usize = 16;
/// Missed times that are counted in one look; those after them are counted in the next.
const MISSED_MAX: u64 = 10_000;
/// Milliseconds for which a start is tried that is not refused: the log or another node may be away.
const TRIED_MS: u64 = 600_000;
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
        let poll = match self.forward {
            Some(_) => POLL,
            None => POLL_ALONE,
        };
        loop {
            let wait = match self.look_at_schedules().await {
                Ok(Some(soonest)) => {
                    let us = soonest.0.saturating_sub(self.app.clock.now().0).max(0);
                    Duration::from_micros(us.unsigned_abs()).min(poll)
                }
                Ok(None) => poll,
                Err(error) => {
                    tracing::warn!(%error, "schedules cannot be looked at");
                    REST
                }
            };
            let wait = match self.drains() {
                true => REST,
                false => wait,
            };
            // Whichever comes first.
            let _ = timeout(wait, self.schedules_changed.notified()).await;
        }
    }

    fn drains(&self) -> bool {
        self.app.flows.slots().is_held_back()
    }

    /// Looks at every schedule that is due now; says when the next one is due. A server that drains does not.
    ///
    /// # Errors
    /// [`Error`]: the store does not answer.
    pub async fn look_at_schedules(&self) -> Result<Option<Timestamp>, Error> {
        loop {
            let now = self.app.clock.now();
            let soonest = self.schedules.soonest(now).await?;
            if soonest.is_none_or(|soonest| soonest > now) || self.drains() {
                return Ok(soonest);
            }
            let until = now.plus_ms(LEASE_MS);
            let turns = self.schedules.take_due(now, until, BATCH).await?;
            futures_util::stream::iter(turns)
                .for_each_concurrent(AT_ONCE, |turn| self.look(turn))
                .await;
        }
    }

    async fn look(&self, turn: Turn) {
        let (id, name) = (turn.schedule.id, turn.schedule.name.clone());
        let mut look = Look::of(self, turn);
        if let Err(error) = look.go().await {
            look.is_broken_off = true;
            tracing::warn!(schedule.id = %id, schedule.name = %name, %error, "a schedule waits");
        }
        if let Err(error) = look.let_go().await {
            tracing::warn!(schedule.id = %id, schedule.name = %name, %error, "a schedule is held until its lease ends");
        }
    }

    /// Starts a run of a schedule by hand, once for each key; `None`: another server looks at it, or it is gone.
    pub(super) async fn run_by_hand(
        &self,
        id: Uuid,
        key: &Arc<str>,
        overlap: Option<Overlap>,
    ) -> Result<Option<Run>, Error> {
        if let Some(before) = self.schedules.run(id, key).await?
            && before.state != State::Starting
        {
            return Ok(Some(before));
        }
        let now = self.app.clock.now();
        let until = now.plus_ms(LEASE_MS);
        let Some(turn) = self.schedules.take(id, now, until).await? else {
            return Ok(None);
        };
        let mut look = Look::of(self, turn);
        let overlap = overlap.unwrap_or(look.schedule.definition.overlap);
        let done = look.by_hand(key, overlap).await;
        look.let_go().await?;
        done?;
        Ok(self.schedules.run(id, key).await?)
    }
}

/// One look at one schedule, under its lease.
struct Look<'a> {
    service: &'a Service,
    schedule: Schedule,
    /// Runs that go on, as far as is known.
    active: Vec<Run>,
    waiting: Option<Run>,
    starting: Vec<Run>,
    /// Whether it was asked how the runs stand.
    is_asked: bool,
    /// Whether the lease is lost: nothing is decided any more.
    is_lost: bool,
    /// Whether it did not come to its end: the next one waits.
    is_broken_off: bool,
}

impl<'a> Look<'a> {
    fn of(service: &'a Service, turn: Turn) -> Self {
        let mut look = Self {
            service,
            schedule: turn.schedule,
            active: Vec::new(),
            waiting: None,
            starting: Vec::new(),
            is_asked: false,
            is_lost: false,
            is_broken_off: false,
        };
        for run in turn.open {
            match run.state {
                State::Waiting => look.waiting = Some(run),
                State::Starting => look.starting.push(run),
                State::Started => look.active.push(run),
                State::Skipped | State::Failed => {}
            }
        }
        look
    }

    fn now(&self) -> Timestamp {
        self.service.app.clock.now()
    }

    fn calendar(&self) -> Option<Calendar> {
        let calendar = self.schedule.definition.calendar(self.schedule.created_at);
        calendar
            .inspect_err(|invalid| {
                tracing::error!(schedule.id = %self.schedule.id, ?invalid, "a schedule has no times any more");
            })
            .ok()
    }

    fn next(&self, calendar: &Calendar) -> Option<Timestamp> {
        let (schedule, counters) = (&self.schedule, &self.schedule.counters);
        match schedule.is_paused {
            true => None,
            false => schedule
                .definition
                .next(calendar, schedule.cursor, counters.started),
        }
    }

    /// Does what is due.
    async fn go(&mut self) -> Result<(), Error> {
        self.finish().await?;
        if let Some(waiting) = self.waiting.clone()
            && !self.is_busy().await?
        {
            self.waiting = None;
            self.start(waiting, None).await?;
        }
        let Some(calendar) = self.calendar() else {
            return Ok(());
        };
        for _ in 0..TIMES_MAX {
            let now = self.now();
            let Some(at) = self.next(&calendar).filter(|_| !self.is_lost) else {
                break;
            };
            let due = due(self.schedule.id, &self.schedule.definition, at);
            if due > now {
                break;
            }
            if due.plus_ms(self.schedule.definition.catch_up_seconds * 1000) < now {
                self.miss(&calendar, now).await?;
                continue;
            }
            self.service
                .app
                .flows
                .figures()
                .schedule_lag
                .observe_time(Duration::from_millis(now.ms_since(due)));
            let overlap = self.schedule.definition.overlap;
            let run = self.planned(key_of_time(at), at);
            self.decide(run, Some(at), overlap).await?;
        }
        Ok(())
    }

    /// Starts what was decided before, by a look that did not come so far.
    async fn finish(&mut self) -> Result<(), Error> {
        for run in std::mem::take(&mut self.starting) {
            self.begin(run).await?;
        }
        Ok(())
    }

    async fn by_hand(&mut self, key: &Arc<str>, overlap: Overlap) -> Result<(), Error> {
        self.finish().await?;
        if self
            .service
            .schedules
            .run(self.schedule.id, key)
            .await?
            .is_some()
        {
            // It was one of those.
            return Ok(());
        }
        let run = self.planned(key.clone(), self.now());
        self.decide(run, None, overlap).await
    }

    fn planned(&self, key: Arc<str>, at: Timestamp) -> Run {
        Run {
            flow: flow_of(self.schedule.id, &key),
            key,
            scheduled_at: at,
            state: State::Starting,
            run: None,
            stage: None,
            error: None,
            decided_at: self.now(),
        }
    }

    /// Decides what becomes of a time, and has it done.
    async fn decide(
        &mut self,
        mut run: Run,
        cursor: Option<Timestamp>,
        overlap: Overlap,
    ) -> Result<(), Error> {
        let is_busy = match overlap {
            Overlap::Allow => false,
            Overlap::Skip | Overlap::Queue | Overlap::CancelPrevious => {
                self.is_busy().await? || self.waiting.is_some()
            }
        };
        run.state = match (is_busy, overlap) {
            (false, _) | (true, Overlap::CancelPrevious | Overlap::Allow) => State::Starting,
            (true, Overlap::Queue) if self.waiting.is_none() => State::Waiting,
            (true, Overlap::Queue | Overlap::Skip) => State::Skipped,
        };
        match run.state {
            State::Starting => {
                if overlap == Overlap::CancelPrevious {
                    for before in std::mem::take(&mut self.active) {
                        self.service.cancel_run_of(&self.schedule, &before).await?;
                    }
                }
                self.start(run, cursor).await
            }
            State::Waiting | State::Skipped | State::Started | State::Failed => {
                self.record(&run, cursor).await?;
                match run.state {
                    State::Waiting => self.waiting = Some(run),
                    State::Skipped => self.count(TimeOfSchedule::Skipped, 1),
                    State::Starting | State::Started | State::Failed => {}
                }
                Ok(())
            }
        }
    }

    /// Counts times that are too old to be made up.
    async fn miss(&mut self, calendar: &Calendar, now: Timestamp) -> Result<(), Error> {
        let window = self.schedule.definition.catch_up_seconds * 1000;
        let (mut missed, mut cursor) = (0, self.schedule.cursor);
        while missed < MISSED_MAX {
            let started = self.schedule.counters.started;
            match self.schedule.definition.next(calendar, cursor, started) {
                Some(at)
                    if due(self.schedule.id, &self.schedule.definition, at).plus_ms(window)
                        < now =>
                {
                    missed += 1;
                    cursor = at;
                }
                Some(_) | None => break,
            }
        }
        let step = Step {
            cursor: Some(cursor),
            missed,
            run: None,
        };
        if self.service.schedules.decide(&self.schedule, &step).await? {
            self.schedule.cursor = cursor;
            self.count(TimeOfSchedule::Missed, missed);
            tracing::warn!(schedule.id = %self.schedule.id, schedule.name = %self.schedule.name, missed, "a schedule has missed times: no server ran");
        } else {
            self.is_lost = true;
        }
        Ok(())
    }

    /// Records a decision; whether it holds.
    async fn record(&mut self, run: &Run, cursor: Option<Timestamp>) -> Result<bool, Error> {
        let step = Step {
            cursor,
            missed: 0,
            run: Some(run.clone()),
        };
        let holds = self.service.schedules.decide(&self.schedule, &step).await?;
        match (holds, cursor) {
            (false, _) => self.is_lost = true,
            (true, Some(cursor)) => self.schedule.cursor = cursor,
            (true, None) => {}
        }
        Ok(holds)
    }

    /// Records that a run is to be started, then starts it.
    async fn start(&mut self, mut run: Run, cursor: Option<Timestamp>) -> Result<(), Error> {
        run.state = State::Starting;
        run.decided_at = self.now();
        match self.record(&run, cursor).await? {
            true => self.begin(run).await,
            false => Ok(()),
        }
    }

    /// Starts a run that is recorded as one that is being started.
    async fn begin(&mut self, mut run: Run) -> Result<(), Error> {
        let service = self.service;
        let outcome = match service.start_run_of(&self.schedule, &run).await {
            Ok(outcome) => outcome,
            Err(error) if self.now().ms_since(run.decided_at) >= TRIED_MS => {
                Outcome::Failed(Arc::from(format!("gave up: {error}")))
            }
            Err(error) => return Err(error),
        };
        let (id, now) = (self.schedule.id, self.now());
        if !service.schedules.settle(id, &run, &outcome, now).await? {
            // Another look was faster.
            return Ok(());
        }
        match outcome {
            Outcome::Started(started) => {
                if !run.is_by_hand() {
                    self.schedule.counters.started += 1;
                }
                self.count(TimeOfSchedule::Started, 1);
                run.state = State::Started;
                run.run = started;
                self.active.push(run);
            }
            Outcome::Failed(reason) => {
                self.count(TimeOfSchedule::Failed, 1);
                tracing::warn!(schedule.id = %id, schedule.name = %self.schedule.name, %reason, "a schedule could not start its run");
            }
        }
        Ok(())
    }

    /// Whether a run of the schedule goes on. Notes those that have ended.
    async fn is_busy(&mut self) -> Result<bool, Error> {
        if !self.is_asked {
            let mut open = Vec::with_capacity(self.active.len());
            for run in std::mem::take(&mut self.active) {
                match self.service.stage_of(&self.schedule, &run).await? {
                    Standing::Open(_) => open.push(run),
                    ended @ (Standing::Ended(_) | Standing::Gone) => {
                        let schedules = &self.service.schedules;
                        schedules
                            .ended(self.schedule.id, &run.key, ended.as_str())
                            .await?;
                    }
                }
            }
            self.active = open;
            self.is_asked = true;
        }
        Ok(!self.active.is_empty())
    }

    async fn let_go(&mut self) -> Result<(), Error> {
        if self.is_lost {
            return Ok(());
        }
        let next = self.calendar().and_then(|calendar| self.next(&calendar));
        let due = next.map(|next| due(self.schedule.id, &self.schedule.definition, next));
        let now = self.now();
        let due = match self.is_broken_off {
            true => due.map(|due| due.max(now.plus_ms(LOOK_AGAIN_MS))),
            false => due,
        };
        let schedules = &self.service.schedules;
        Ok(schedules.let_go(&self.schedule, (next, due), now).await?)
    }

    fn count(&self, what: TimeOfSchedule, times: u64) {
        let figures = self.service.app.flows.figures();
        figures.schedule_times[what as usize].add(times);
    }
}
