//! Schedules. They lie beside the log, so any node answers and any node starts their runs.

mod acting;
mod audited;
mod corrections;
mod defining;
mod following;
mod look;
mod run_ends;
mod starting;
mod tasks;
mod ticking;

use self::audited::{found, stored};
pub(super) use self::corrections::Clocks;
use self::defining::{Fit, changed, checked, compute, dropped, due, has_other_times, never};
pub(super) use self::run_ends::RunEnds;
use super::Service;
use super::audited::Audited;
use super::auth::ALL;
use super::documents::owner_for;
use crate::application::api::schedules::{
    CreateSchedule, NEXT_SHOWN, Named, Overlap, Refusal, Run, RunByHand, Schedule, ScheduleChanges,
    ShownSchedule, State, UnfitSchedule,
};
use crate::application::api::{Error, Failure};
use crate::application::authorize::UseCase;
use crate::application::context::Context;
use std::sync::Arc;
use std::time::Duration;
use taskledger_auth::{Action, Scope, Scopes};
use taskledger_beside::Owner;
use taskledger_domain::flow::RunKind;
use taskledger_domain::{TaskId, Timestamp};
use taskledger_schedules::{Calendar, Deleted, NewSchedule, key_by_hand};
use tokio::time::sleep;

/// What a caller is told to wait when the store of schedules does not answer, or another server holds a schedule, in
/// milliseconds.
const AWAY_RETRY_MS: u64 = 1000;
/// Times that a change is made again because a server has looked at the schedule meanwhile.
const ROUNDS_MAX: usize = 20;
/// Pause before that.
const ROUND_PAUSE: Duration = Duration::from_millis(50);
/// Runs that `schedules.get` shows.
const RUNS_SHOWN: u32 = 20;
/// What a schedule may do in the name of whoever made it: what that one's credentials allowed, of this.
const SCOPES: [Scope; 5] = [
    Scope::TasksRead,
    Scope::TasksWrite,
    Scope::TasksRun,
    Scope::UsersAny,
    Scope::ExecLocal,
];

impl Service {
    /// What `create_schedule` does for a caller who was let in.
    async fn schedule_created(
        &self,
        context: &Context,
        create: CreateSchedule,
    ) -> Result<Fit<ShownSchedule>, Error> {
        let owner = owner_for(context, create.named.owner.clone())?;
        let at = self.app.clock.civil();
        let definition = create.definition;
        let calendar = match checked(&definition, at, &self.zones) {
            Ok(calendar) => calendar,
            Err(unfit) => return Ok(Err(UnfitSchedule::Invalid(unfit))),
        };
        let new = NewSchedule {
            id: self.app.clock.uuid(),
            name: create.named.name,
            actor: context.caller.actor().clone(),
            scopes: scopes_for(context, &owner),
            paused: create.is_paused.then_some(create.note),
            at,
            cursor: at,
            next_at: None,
            due_at: None,
            work_version: None,
            owner,
            definition,
        };
        let mut new = match self.timed(new, &calendar) {
            Ok(new) => new,
            Err(unfit) => return Ok(Err(unfit)),
        };
        let work = (&new.owner, &new.definition.work, &new.actor, &new.scopes);
        new.work_version = match Box::pin(self.check_work(work, (new.id, &new.name, at))).await? {
            Ok(version) => version,
            Err(unfit) => return Ok(Err(unfit)),
        };
        if let Some(found) = self.schedules.schedule(&new.owner, &new.name).await? {
            let exists = Refusal::Exists(found.version);
            return Ok(Err(UnfitSchedule::NotKept(exists)));
        }
        let named = (&new.owner, &new.name);
        let mut audited = self.audited(context, Action::ScheduleCreate, named);
        audited.begin().await?;
        match stored(&audited, self.schedules.create(&new).await).await? {
            Ok(schedule) => {
                self.schedules_changed.notify_one();
                let warnings = Box::pin(self.warnings_of_schedule(context, &schedule)).await;
                let view = self.schedule_view(schedule, Vec::new(), at);
                Ok(Ok(ShownSchedule { warnings, ..view }))
            }
            Err(refusal) => {
                audited.refused().await;
                Ok(Err(UnfitSchedule::NotKept(refusal)))
            }
        }
    }

    /// A new schedule with its first time.
    fn timed(&self, mut new: NewSchedule, calendar: &Calendar) -> Fit<NewSchedule> {
        let first = || new.definition.next(calendar, new.cursor, 0);
        let first = compute(&new.definition.timing, first);
        let Some(first) = first else {
            return Err(UnfitSchedule::Invalid(never(&new.definition)));
        };
        if new.paused.is_none() {
            new.next_at = Some(first);
            new.due_at = Some(due(new.id, &new.definition, first));
        }
        Ok(new)
    }

    /// Schedules of one user whose names come after `after`.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn list_schedules(
        &self,
        context: &Context,
        owner: Option<Arc<str>>,
        after: Option<Arc<str>>,
        limit: u32,
    ) -> Result<Vec<Schedule>, Error> {
        self.admit(context, UseCase::ListSchedules)?;
        let owner = owner_for(context, owner)?;
        let found = self.schedules.schedules(&owner, after.as_ref(), limit);
        let found = found.await?;
        let read = (Action::ScheduleRead, ALL);
        self.access.read_beside(context, read, owner.user.as_ref());
        Ok(found)
    }

    /// A schedule with its next times and its newest runs.
    ///
    /// # Errors
    /// [`Error`]; inside, that there is none.
    pub async fn get_schedule(
        &self,
        context: &Context,
        named: Named,
    ) -> Result<Fit<ShownSchedule>, Error> {
        self.admit(context, UseCase::GetSchedule)?;
        let owner = owner_for(context, named.owner)?;
        let found = self.schedules.with_runs(&owner, &named.name, RUNS_SHOWN);
        let Some((schedule, mut runs)) = found.await? else {
            return Ok(Err(UnfitSchedule::Absent));
        };
        let read = (Action::ScheduleRead, &*named.name);
        self.access.read_beside(context, read, owner.user.as_ref());
        for run in &mut runs {
            if run.state == State::Started && run.stage.is_none() {
                run.stage = self.stage_of(&schedule, run, None).await?.shown();
            }
        }
        Ok(Ok(self.schedule_view(
            schedule,
            runs,
            self.app.clock.civil(),
        )))
    }

    /// What `update_schedule` does.
    async fn schedule_updated(
        &self,
        context: &Context,
        named: Named,
        changes: ScheduleChanges,
        expected_version: Option<u32>,
    ) -> Result<Fit<ShownSchedule>, Error> {
        let owner = owner_for(context, named.owner.clone())?;
        let mut checked_version = None;
        let of = (&owner, &named.name);
        let mut audited = self.audited_update(context, &changes, of);
        for _ in 0..ROUNDS_MAX {
            let at = self.app.clock.civil();
            let seen = self.seen(&owner, &named.name, expected_version).await;
            let seen = match found(&audited, seen).await? {
                Ok(seen) => seen,
                Err(unfit) => return Ok(audited.refusal(unfit).await),
            };
            let mut new = seen.clone();
            let calendar = changed(&mut new.definition, &changes)
                .and_then(|()| checked(&new.definition, seen.created_at, &self.zones));
            let calendar = match calendar {
                Ok(calendar) => calendar,
                Err(invalid) => return Ok(audited.refusal(UnfitSchedule::Invalid(invalid)).await),
            };
            new.actor = context.caller.actor().clone();
            new.scopes = scopes_for(context, &owner);
            if has_other_times(&seen.definition, &new.definition) {
                new.counters.missed += dropped(&seen, at, &self.zones);
                new.cursor = at;
            }
            let started = new.counters.started;
            let first = || new.definition.next(&calendar, new.cursor, started);
            match compute(&new.definition.timing, first) {
                None => {
                    let never = UnfitSchedule::Invalid(never(&new.definition));
                    return Ok(audited.refusal(never).await);
                }
                Some(first) => plan(&mut new, Some(first)),
            }
            new.work_version = match checked_version {
                Some((version, work)) if work == new.definition.work => version,
                Some(_) | None => {
                    let work = (&owner, &new.definition.work, &new.actor, &new.scopes);
                    let checked = Box::pin(self.check_work(work, (new.id, &new.name, at))).await;
                    match found(&audited, checked).await? {
                        Ok(version) => version,
                        Err(unfit) => return Ok(audited.refusal(unfit).await),
                    }
                }
            };
            checked_version = Some((new.work_version, new.definition.work.clone()));
            audited.begin().await?;
            let replaced = self.schedules.replace(&seen, &new, at).await;
            if let Some(kept) = stored(&audited, replaced).await? {
                self.schedules_changed.notify_one();
                let warnings = match changes.work {
                    Some(_) => Box::pin(self.warnings_of_schedule(context, &kept)).await,
                    None => Vec::new(),
                };
                let view = self.schedule_view(kept, Vec::new(), at);
                return Ok(Ok(ShownSchedule { warnings, ..view }));
            }
            sleep(ROUND_PAUSE).await;
        }
        audited.refused().await;
        Err(held())
    }

    /// What `pause_schedule` does.
    async fn schedule_paused(
        &self,
        context: &Context,
        named: Named,
        (is_paused, note): (bool, Option<Arc<str>>),
    ) -> Result<Fit<ShownSchedule>, Error> {
        let action = match is_paused {
            true => Action::SchedulePause,
            false => Action::ScheduleResume,
        };
        let owner = owner_for(context, named.owner.clone())?;
        let mut audited = self.audited(context, action, (&owner, &named.name));
        for _ in 0..ROUNDS_MAX {
            let at = self.app.clock.civil();
            let seen = self.seen(&owner, &named.name, None).await;
            let seen = match found(&audited, seen).await? {
                Ok(seen) => seen,
                Err(unfit) => return Ok(audited.refusal(unfit).await),
            };
            if seen.is_paused && !is_paused {
                self.lets_run(context, &seen, &audited).await?;
            }
            audited.begin().await?;
            let mut new = seen.clone();
            new.is_paused = is_paused;
            new.note = note.clone();
            // Pausing twice, or resuming what runs, loses no time.
            if seen.is_paused {
                new.cursor = at;
            }
            let next = compute(&new.definition.timing, || {
                let calendar = new.definition.calendar(seen.created_at, &self.zones);
                let started = new.counters.started;
                new.definition.next(&calendar.ok()?, new.cursor, started)
            });
            plan(&mut new, next);
            let replaced = self.schedules.replace(&seen, &new, at).await;
            if let Some(kept) = stored(&audited, replaced).await? {
                self.schedules_changed.notify_one();
                return Ok(Ok(self.schedule_view(kept, Vec::new(), at)));
            }
            sleep(ROUND_PAUSE).await;
        }
        audited.refused().await;
        Err(held())
    }

    /// What `delete_schedule` does.
    async fn schedule_deleted(
        &self,
        context: &Context,
        named: Named,
        expected_version: Option<u32>,
    ) -> Result<Fit<bool>, Error> {
        let owner = owner_for(context, named.owner.clone())?;
        match self.seen(&owner, &named.name, expected_version).await? {
            Ok(_) => {}
            Err(UnfitSchedule::Absent) => return Ok(Ok(false)),
            Err(unfit) => return Ok(Err(unfit)),
        }
        let of = (&owner, &named.name);
        let mut audited = self.audited(context, Action::ScheduleDelete, of);
        audited.begin().await?;
        for _ in 0..ROUNDS_MAX {
            let at = self.app.clock.civil();
            let deleted = self
                .schedules
                .delete(&owner, &named.name, expected_version, at);
            match stored(&audited, deleted.await).await? {
                Ok(Deleted::Gone) => return Ok(Ok(true)),
                Ok(Deleted::Absent) => {
                    audited.refused().await;
                    return Ok(Ok(false));
                }
                Ok(Deleted::Held) => sleep(ROUND_PAUSE).await,
                Err(refusal) => return Ok(audited.refusal(UnfitSchedule::NotKept(refusal)).await),
            }
        }
        audited.refused().await;
        Err(held())
    }

    /// What `run_schedule` does.
    async fn schedule_run(
        &self,
        context: &Context,
        named: Named,
        overlap: Option<Overlap>,
    ) -> Result<Fit<RunByHand>, Error> {
        let owner = owner_for(context, named.owner.clone())?;
        let Some(mut schedule) = self.schedules.schedule(&owner, &named.name).await? else {
            return Ok(Err(UnfitSchedule::Absent));
        };
        let key = match &context.idempotency {
            Some(given) => key_by_hand(&format!("{}/{}", context.caller.actor(), given.key)),
            None => key_by_hand(&self.app.clock.uuid().to_string()),
        };
        // A call that is repeated starts nothing.
        if let Some(run) = self.schedules.run(schedule.id, &key).await?
            && run.state != State::Starting
        {
            let root = TaskId(run.flow);
            let warnings = Vec::new();
            return Ok(Ok(RunByHand {
                run,
                root,
                warnings,
            }));
        }
        let of = (&owner, &named.name);
        let mut audited = self.audited(context, Action::ScheduleRun, of);
        for _ in 0..ROUNDS_MAX {
            self.lets_run(context, &schedule, &audited).await?;
            audited.begin().await?;
            let of_version = (schedule.id, schedule.version);
            let done = self
                .run_by_hand(of_version, (&key, overlap), &audited)
                .await;
            // The look may have left something to do, also where it failed.
            self.schedules_changed.notify_one();
            if let Some(run) = done? {
                match run.state {
                    State::Skipped | State::Failed => audited.refused().await,
                    State::Waiting | State::Starting | State::Started => {}
                }
                let root = TaskId(run.flow);
                let warnings = match run.state {
                    State::Started => {
                        let warnings = self.warnings_of_run(context, root, RunKind::Execute);
                        Box::pin(warnings).await
                    }
                    State::Skipped | State::Failed | State::Waiting | State::Starting => Vec::new(),
                };
                return Ok(Ok(RunByHand {
                    run,
                    root,
                    warnings,
                }));
            }
            let newest = self.schedules.schedule(&owner, &named.name).await;
            schedule = match found(&audited, newest.map_err(Error::from)).await? {
                Some(newest) => newest,
                None => return Ok(audited.refusal(UnfitSchedule::Absent).await),
            };
            sleep(ROUND_PAUSE).await;
        }
        audited.refused().await;
        Err(held())
    }

    /// Refuses to have a schedule run, now or at its times, for a caller whose credentials do not allow what it starts.
    ///
    /// # Errors
    /// `Forbidden`; [`Error`].
    async fn lets_run(
        &self,
        context: &Context,
        schedule: &Schedule,
        audited: &Audited<'_>,
    ) -> Result<(), Error> {
        // Boxed: it is large, and seldom asked.
        found(
            audited,
            Box::pin(self.may_have_run(context, schedule)).await,
        )
        .await
    }

    fn schedule_view(&self, schedule: Schedule, runs: Vec<Run>, now: Timestamp) -> ShownSchedule {
        let definition = &schedule.definition;
        let next = schedule.next_at.map_or_else(Vec::new, |first| {
            let left = definition.max_runs.map_or(NEXT_SHOWN, |max| {
                let left = max.saturating_sub(schedule.counters.started);
                usize::try_from(left).unwrap_or(NEXT_SHOWN).min(NEXT_SHOWN)
            });
            // Times that have passed and are about to be started are not shown as coming.
            let after = Timestamp(first.0 - 1).max(now);
            compute(&definition.timing, || {
                let calendar = definition.calendar(schedule.created_at, &self.zones);
                let upcoming = |it: Calendar| it.upcoming(after, definition.end_at, left);
                calendar.map_or_else(|_| Vec::new(), upcoming)
            })
        });
        ShownSchedule {
            schedule,
            next,
            runs,
            warnings: Vec::new(),
        }
    }

    async fn seen(
        &self,
        owner: &Owner,
        name: &Arc<str>,
        expected: Option<u32>,
    ) -> Result<Fit<Schedule>, Error> {
        let Some(seen) = self.schedules.schedule(owner, name).await? else {
            return Ok(Err(UnfitSchedule::Absent));
        };
        Ok(match expected {
            Some(expected) if expected != seen.version => {
                Err(UnfitSchedule::NotKept(Refusal::Changed(seen.version)))
            }
            Some(_) | None => Ok(seen),
        })
    }
}

/// Notes when a schedule is to be looked at next.
fn plan(schedule: &mut Schedule, next: Option<Timestamp>) {
    let next = next.filter(|_| !schedule.is_paused);
    schedule.next_at = next;
    schedule.due_at = next.map(|next| due(schedule.id, &schedule.definition, next));
}

/// What a schedule may do that this caller makes or changes.
fn scopes_for(context: &Context, owner: &Owner) -> Arc<str> {
    let scopes = context.caller.scopes().and(Scopes::of(SCOPES));
    // For others only where it is for others.
    let is_own = owner.user.as_ref() == Some(context.caller.owner());
    let scopes = match is_own {
        true => scopes.without(Scope::UsersAny),
        false => scopes,
    };
    Arc::from(scopes.to_string())
}

fn held() -> Error {
    Error::Busy {
        reason: "the schedule is being processed; nothing was changed".to_owned(),
        retry_after_ms: AWAY_RETRY_MS,
    }
}

impl From<taskledger_schedules::Error> for Error {
    fn from(error: taskledger_schedules::Error) -> Self {
        use taskledger_schedules::Error as Stored;
        match error {
            Stored::Database(_) | Stored::Late => {
                tracing::warn!(%error, "a call did not reach the store of schedules");
                Self::Busy {
                    reason: "the store of schedules does not answer".to_owned(),
                    retry_after_ms: AWAY_RETRY_MS,
                }
            }
            Stored::Damaged(_) => Failure::Schedules(error.to_string()).into(),
        }
    }
}
