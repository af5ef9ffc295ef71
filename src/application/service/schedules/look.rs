//! One look at one schedule, under its lease: each decision is recorded before it is carried out.

mod missed;

use super::super::Service;
use super::starting::Standing;
use super::{compute, due};
use crate::application::api::Error;
use crate::application::api::schedules::{Overlap, Run, Schedule, State};
use crate::application::figures::TimeOfSchedule;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::Timestamp;
use taskledger_schedules::{
    Calendar, LOOK_AGAIN_MS, OPEN_MAX, Outcome, RUNS_KEPT, Step, Turn, flow_of, key_of_time,
};
use tokio::time::{Instant, timeout_at};

/// How long a look works: the rest of its lease is for letting go.
const LOOK: Duration = Duration::from_secs(7);
/// How long, of that, starts are tried again that did not succeed before.
const RETRY: Duration = Duration::from_secs(3);
/// Starts that are tried again in one look.
const RETRIES_MAX: usize = 16;
/// Times of one schedule that are decided in one look: then it is another one's turn.
const TIMES_MAX: usize = 16;
/// Milliseconds for which a start is tried that is not refused: the log or another node may be away.
const TRIED_MS: u64 = 600_000;
/// Runs that are asked in one look whether they have ended, once more are open than are kept of those that have.
const ASKED_MAX: usize = 2 * TIMES_MAX;

/// One look at one schedule, under its lease.
pub(super) struct Look<'a> {
    service: &'a Service,
    pub(super) schedule: Schedule,
    /// When it ends, whatever is left to be done.
    pub(super) until: Instant,
    /// Runs that go on, as far as is known.
    active: Vec<Run>,
    waiting: Option<Run>,
    /// Runs that were decided and have not begun, as far as is known.
    starting: Vec<Run>,
    /// Whether it was asked how the runs stand.
    is_asked: bool,
    /// Whether the lease is lost: nothing is decided any more.
    is_lost: bool,
    /// Whether it did not come to its end: the next one waits.
    is_broken_off: bool,
    /// Why the first of its starts did not succeed, for now.
    failure: Option<Error>,
}

impl<'a> Look<'a> {
    pub(super) fn of(service: &'a Service, turn: Turn) -> Self {
        let mut look = Self {
            service,
            until: Instant::now() + LOOK,
            active: Vec::new(),
            waiting: None,
            starting: Vec::new(),
            is_asked: false,
            is_lost: false,
            is_broken_off: turn.schedule.waits_since.is_some(),
            failure: None,
            schedule: turn.schedule,
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
        self.service.app.clock.civil()
    }

    fn calendar(&self) -> Option<Calendar> {
        let (schedule, zones) = (&self.schedule, &self.service.zones);
        let definition = &schedule.definition;
        let calendar = || definition.calendar(schedule.created_at, zones);
        let calendar = compute(&definition.timing, calendar);
        calendar
            .inspect_err(|invalid| {
                tracing::error!(schedule.id = %self.schedule.id, reason = %invalid, "a schedule has no times any more");
            })
            .ok()
    }

    fn next(&self, calendar: &Calendar) -> Option<Timestamp> {
        let schedule = &self.schedule;
        // Those that are being started count, as they may have begun.
        let starting = self.starting.iter().filter(|run| !run.is_by_hand());
        let started = schedule.counters.started + starting.count() as u64;
        match schedule.is_paused {
            true => None,
            false => {
                let definition = &schedule.definition;
                let next = || definition.next(calendar, schedule.cursor, started);
                compute(&definition.timing, next)
            }
        }
    }

    /// Does what is due, until its end.
    pub(super) async fn at_due(&mut self) -> Result<(), Error> {
        let done = timeout_at(self.until, self.go()).await;
        let done = done.unwrap_or_else(|_| Err(late()));
        self.is_broken_off = done.is_err();
        done
    }

    async fn go(&mut self) -> Result<(), Error> {
        self.correct_cursor().await?;
        let until = Instant::now() + RETRY;
        if timeout_at(until, self.finish()).await.is_err() {
            self.failure.get_or_insert(late());
        }
        if let Some(waiting) = self.waiting.clone() {
            let goes_on = match waiting.cancels {
                true => !self.starting.is_empty(),
                false => self.is_busy().await?,
            };
            if !goes_on {
                self.waiting = None;
                self.start(waiting, None).await?;
            }
        }
        if let Some(calendar) = self.calendar() {
            self.times(&calendar).await?;
        }
        self.note_ended().await?;
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Decides the times that are due, and starts what is to be started at them.
    async fn times(&mut self, calendar: &Calendar) -> Result<(), Error> {
        for _ in 0..TIMES_MAX {
            let now = self.now();
            let Some(at) = self.next(calendar).filter(|_| !self.is_lost) else {
                break;
            };
            let due = due(self.schedule.id, &self.schedule.definition, at);
            if due > now {
                break;
            }
            let looked = self.looked(now);
            if due.plus_ms(self.schedule.definition.catch_up_seconds * 1000) < looked {
                self.miss(calendar, looked).await?;
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

    /// When the times that are due now were looked at first: times that waited because the log was away are not missed,
    /// unless it was away for longer than a start is tried.
    fn looked(&self, now: Timestamp) -> Timestamp {
        let longest = i64::try_from(TRIED_MS * 1000).unwrap_or(i64::MAX);
        let earliest = Timestamp(now.0.saturating_sub(longest));
        let since = self.schedule.waits_since;
        since.map_or(now, |since| since.max(earliest).min(now))
    }

    /// Starts what was decided before, by a look that did not come so far. One that does not succeed holds up none of
    /// the others; each look begins with another one.
    async fn finish(&mut self) {
        let first = usize::try_from(self.schedule.lease).unwrap_or(0);
        let count = self.starting.len();
        let tried: Vec<Run> = self
            .starting
            .iter()
            .cycle()
            .skip(first % count.max(1))
            .take(count.min(RETRIES_MAX))
            .cloned()
            .collect();
        for run in tried {
            if let Err(error) = self.begin(run).await {
                self.failure.get_or_insert(error);
            }
        }
    }

    pub(super) async fn by_hand(&mut self, key: &Arc<str>, overlap: Overlap) -> Result<(), Error> {
        let begun = self.starting.iter().find(|run| run.key == *key).cloned();
        if let Some(run) = begun {
            return self.begin(run).await;
        }
        let schedules = &self.service.schedules;
        if schedules.run(self.schedule.id, key).await?.is_some() {
            return Ok(());
        }
        let run = self.planned(key.clone(), self.now());
        self.decide(run, None, overlap).await?;
        self.failure.take().map_or(Ok(()), Err)
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
            cancels: false,
        }
    }

    /// Decides what becomes of a time, and has it done.
    async fn decide(
        &mut self,
        mut run: Run,
        cursor: Option<Timestamp>,
        overlap: Overlap,
    ) -> Result<(), Error> {
        // One that is being started goes on, as far as is known.
        let goes_on = match overlap {
            Overlap::Allow => false,
            Overlap::CancelPrevious => !self.starting.is_empty(),
            Overlap::Skip | Overlap::Queue => self.is_busy().await? || self.waiting.is_some(),
        };
        let is_full = self.active.len() + self.starting.len() >= OPEN_MAX;
        run.cancels = overlap == Overlap::CancelPrevious;
        run.state = match (is_full, goes_on, overlap) {
            (true, _, _) => State::Skipped,
            (false, false, _) => State::Starting,
            (false, true, Overlap::Queue | Overlap::CancelPrevious) if self.waiting.is_none() => {
                State::Waiting
            }
            (false, true, _) => State::Skipped,
        };
        match run.state {
            State::Starting => self.start(run, cursor).await,
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

    /// Records that a run is to be started, then starts it. If that does not succeed now, a later look tries it again.
    async fn start(&mut self, mut run: Run, cursor: Option<Timestamp>) -> Result<(), Error> {
        run.state = State::Starting;
        run.decided_at = self.now();
        if self.record(&run, cursor).await? {
            self.starting.push(run.clone());
            if let Err(error) = self.begin(run).await {
                self.failure.get_or_insert(error);
            }
        }
        Ok(())
    }

    /// Whether a run may still be started: nobody has taken the lease, or settled it.
    async fn may_start(&mut self, run: &Run) -> Result<bool, Error> {
        let schedules = &self.service.schedules;
        let may = schedules.may_start(&self.schedule, run, self.now()).await?;
        self.is_lost |= !may;
        Ok(may)
    }

    /// Starts a run that is recorded as one that is being started.
    async fn begin(&mut self, run: Run) -> Result<(), Error> {
        let (service, until) = (self.service, self.until);
        if self.is_lost || !self.may_start(&run).await? {
            // It may have had its run, while a clock was ahead.
            self.starting.retain(|it| it.key != run.key);
            return Ok(());
        }
        if self.schedule.is_paused && run.decided_at < self.schedule.updated_at {
            return self.give_up_paused(run).await;
        }
        if run.cancels && self.cancel_those_before(&run).await? && !self.may_start(&run).await? {
            return Ok(());
        }
        // Boxed: it is large, and looks are not to be.
        let started = Box::pin(service.start_run_of(&self.schedule, &run, until));
        let outcome = match started.await {
            Ok(outcome) => outcome,
            Err(error) if self.now().ms_since(run.decided_at) >= TRIED_MS => {
                // One of the tries may have begun it all the same.
                let begun = service.begun_before(&self.schedule, &run, until).await?;
                begun.unwrap_or_else(|| Outcome::Failed(Arc::from(format!("gave up: {error}"))))
            }
            Err(error) => return Err(error),
        };
        self.settle(run, outcome).await
    }

    /// Skips a run that was being started when its schedule was paused, unless it has begun.
    async fn give_up_paused(&mut self, run: Run) -> Result<(), Error> {
        let service = self.service;
        let begun = service.begun_before(&self.schedule, &run, self.until);
        if let Some(begun) = begun.await? {
            return self.settle(run, begun).await;
        }
        self.starting.retain(|it| it.key != run.key);
        let (id, now) = (self.schedule.id, self.now());
        if service.schedules.skip(id, &run, now).await? {
            self.count(TimeOfSchedule::Skipped, 1);
        }
        Ok(())
    }

    /// Cancels the runs that give way to this one; whether there were any. Doing it again does no harm.
    async fn cancel_those_before(&mut self, run: &Run) -> Result<bool, Error> {
        let service = self.service;
        let is_before = |it: &Run| it.key != run.key && it.decided_at <= run.decided_at;
        let before: Vec<Run> = self.active.extract_if(.., |it| is_before(it)).collect();
        for run in &before {
            let cancelled = service.cancel_run_of(&self.schedule, run, self.until);
            cancelled.await?;
            self.has_ended(run).await?;
        }
        Ok(!before.is_empty())
    }

    /// Notes what became of a run.
    async fn settle(&mut self, mut run: Run, outcome: Outcome) -> Result<(), Error> {
        let service = self.service;
        self.starting.retain(|it| it.key != run.key);
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
        if !self.starting.is_empty() {
            return Ok(true);
        }
        if !self.is_asked {
            // The newest is the likeliest to go on.
            while let Some(run) = self.active.pop() {
                if !self.has_ended(&run).await? {
                    self.active.push(run);
                    break;
                }
            }
            self.is_asked = true;
        }
        Ok(!self.active.is_empty())
    }

    /// Asks how a run stands, and notes when it has ended.
    async fn has_ended(&self, run: &Run) -> Result<bool, Error> {
        let (service, schedule) = (self.service, &self.schedule);
        match service.stage_of(schedule, run, Some(self.until)).await? {
            Standing::Open(_) => Ok(false),
            ended @ (Standing::Ended(_) | Standing::Gone) => {
                let noted = service
                    .schedules
                    .ended(schedule.id, &run.key, ended.as_str());
                noted.await?;
                Ok(true)
            }
        }
    }

    /// Notes some of the runs that have ended, where nothing else asks: more than are started in the same time.
    async fn note_ended(&mut self) -> Result<(), Error> {
        let count = self.active.len();
        if count <= RUNS_KEPT as usize {
            return Ok(());
        }
        let first = usize::try_from(self.schedule.lease)
            .unwrap_or(0)
            .wrapping_mul(ASKED_MAX);
        for n in 0..count.min(ASKED_MAX) {
            if let Some(run) = self.active.get(first.wrapping_add(n) % count) {
                self.has_ended(run).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn let_go(&mut self) -> Result<(), Error> {
        let next = self.calendar().and_then(|calendar| self.next(&calendar));
        let due = next.map(|next| due(self.schedule.id, &self.schedule.definition, next));
        let now = self.now();
        let due = match self.is_broken_off {
            true => due.map(|due| due.max(now.plus_ms(LOOK_AGAIN_MS))),
            false => due,
        };
        let service = self.service;
        let waits = self.waiting.as_ref().is_some_and(|run| !run.cancels);
        let run = self
            .active
            .last()
            .filter(|_| waits && self.starting.is_empty());
        let waiting_ms = match self.is_lost {
            true => LOOK_AGAIN_MS,
            false => service.schedule_ends.waits_for(&self.schedule, run),
        };
        let (at, broken_off) = ((next, due), self.is_broken_off);
        let let_go = service
            .schedules
            .let_go(&self.schedule, at, broken_off, (now, waiting_ms));
        Ok(let_go.await?)
    }

    fn count(&self, what: TimeOfSchedule, times: u64) {
        let figures = self.service.app.flows.figures();
        figures.schedule_times[what as usize].add(times);
    }
}

/// The error that a look ran out of time before its work was done.
pub(super) fn late() -> Error {
    Error::Busy {
        reason: "the log or another server did not answer in time".to_owned(),
        retry_after_ms: LOOK_AGAIN_MS,
    }
}
