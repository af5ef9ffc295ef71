//! Changes schedules, and writes each change to the audit log.

use super::super::Service;
use super::super::audited::{Audited, changed};
use super::defining::Fit;
use crate::application::api::Error;
use crate::application::api::schedules::{
    Bound, CreateSchedule, Named, Overlap, RunByHand, ScheduleChanges, ShownSchedule, Timing, Work,
};
use crate::application::authorize::UseCase;
use crate::application::context::Context;
use serde_json::json;
use std::sync::Arc;
use taskledger_auth::Action;
use taskledger_beside::Owner;
use taskledger_schedules::Error as Stored;

impl Service {
    /// Makes a schedule.
    ///
    /// # Errors
    /// [`Error`]; inside, why it is not made.
    pub async fn create_schedule(
        &self,
        context: &Context,
        create: CreateSchedule,
    ) -> Result<Fit<ShownSchedule>, Error> {
        self.admit(context, UseCase::CreateSchedule)?;
        let change = (Action::ScheduleCreate, Some(create.named.name.clone()));
        let created = Box::pin(self.schedule_created(context, create)).await;
        self.access.noted(context, change, created)
    }

    /// Changes a schedule. When its times change, those that are due are counted as missed. It acts in the name of
    /// whoever changed it last.
    ///
    /// # Errors
    /// [`Error`]; inside, why it stays as it is.
    pub async fn update_schedule(
        &self,
        context: &Context,
        named: Named,
        changes: ScheduleChanges,
        expected_version: Option<u32>,
    ) -> Result<Fit<ShownSchedule>, Error> {
        self.admit(context, UseCase::UpdateSchedule)?;
        let change = (Action::ScheduleUpdate, Some(named.name.clone()));
        let updated = self.schedule_updated(context, named, changes, expected_version);
        let updated = Box::pin(updated).await;
        self.access.noted(context, change, updated)
    }

    /// Has the times of a schedule pass without runs, or not any more. Times that passed meanwhile are not made up.
    ///
    /// # Errors
    /// [`Error`]; inside, that there is none.
    pub async fn pause_schedule(
        &self,
        context: &Context,
        named: Named,
        (is_paused, note): (bool, Option<Arc<str>>),
    ) -> Result<Fit<ShownSchedule>, Error> {
        let action = match is_paused {
            true => Action::SchedulePause,
            false => Action::ScheduleResume,
        };
        self.admit_as(context, UseCase::PauseSchedule, Some(action))?;
        let change = (action, Some(named.name.clone()));
        let paused = Box::pin(self.schedule_paused(context, named, (is_paused, note))).await;
        self.access.noted(context, change, paused)
    }

    /// Deletes a schedule. Runs that it has started continue. Says whether there was one. While a run of it is being
    /// started it is not deleted.
    ///
    /// # Errors
    /// [`Error`]; inside, that its version is another one.
    pub async fn delete_schedule(
        &self,
        context: &Context,
        named: Named,
        expected_version: Option<u32>,
    ) -> Result<Fit<bool>, Error> {
        self.admit(context, UseCase::DeleteSchedule)?;
        let change = (Action::ScheduleDelete, Some(named.name.clone()));
        let deleted = Box::pin(self.schedule_deleted(context, named, expected_version)).await;
        self.access.noted(context, change, deleted)
    }

    /// Starts a run of a schedule now, once for each idempotency key.
    ///
    /// # Errors
    /// [`Error`]; inside, that there is none.
    pub async fn run_schedule(
        &self,
        context: &Context,
        named: Named,
        overlap: Option<Overlap>,
    ) -> Result<Fit<RunByHand>, Error> {
        self.admit(context, UseCase::RunSchedule)?;
        let change = (Action::ScheduleRun, Some(named.name.clone()));
        let run = Box::pin(self.schedule_run(context, named, overlap)).await;
        self.access.noted(context, change, run)
    }

    /// The change of the schedule of this name.
    pub(super) fn audited<'a>(
        &'a self,
        context: &'a Context,
        action: Action,
        (owner, name): (&Owner, &Arc<str>),
    ) -> Audited<'a> {
        let detail = json!({"owner": owner.user});
        Audited::new((&self.access, context), action, Some(name.clone()), detail)
    }

    /// The same for an update, with the names of what is changed.
    pub(super) fn audited_update<'a>(
        &'a self,
        context: &'a Context,
        changes: &ScheduleChanges,
        (owner, name): (&Owner, &Arc<str>),
    ) -> Audited<'a> {
        let detail = json!({"owner": owner.user, "changed": changed_fields(changes)});
        let (of, object) = ((&self.access, context), Some(name.clone()));
        Audited::new(of, Action::ScheduleUpdate, object, detail)
    }
}

/// What was found out before anything was changed: behind an error, nothing is.
///
/// # Errors
/// The same.
pub(super) async fn found<T>(audited: &Audited<'_>, found: Result<T, Error>) -> Result<T, Error> {
    if found.is_err() {
        audited.refused().await;
    }
    found
}

/// What the store answered to a change; that it was certainly not made is noted.
///
/// # Errors
/// The same, as callers are told.
pub(super) async fn stored<T>(
    audited: &Audited<'_>,
    answer: Result<T, Stored>,
) -> Result<T, Error> {
    if answer.as_ref().is_err_and(Stored::is_undone) {
        audited.refused().await;
    }
    Ok(answer?)
}

/// The members that a change names, as callers write them.
fn changed_fields(changes: &ScheduleChanges) -> Vec<&'static str> {
    let ScheduleChanges {
        timing,
        time_zone,
        work,
        start_at,
        end_at,
        max_runs,
        without,
        overlap,
        catch_up_seconds,
        jitter_seconds,
    } = changes;
    let timing = timing.as_ref().map(|timing| match timing {
        Timing::Cron { .. } => "cron",
        Timing::Rrule { .. } => "rrule",
        Timing::Every { .. } => "every_seconds",
    });
    let work = work.as_ref().map(|work| match work {
        Work::Workflow { .. } => "workflow",
        Work::Tasks { .. } => "tasks",
    });
    let is_bound = |bound: Bound, is_given: bool| is_given || without.contains(&bound);
    changed([
        (timing.is_some(), timing.unwrap_or_default()),
        (time_zone.is_some(), "time_zone"),
        (work.is_some(), work.unwrap_or_default()),
        (is_bound(Bound::Start, start_at.is_some()), "start_at"),
        (is_bound(Bound::End, end_at.is_some()), "end_at"),
        (is_bound(Bound::Runs, max_runs.is_some()), "max_runs"),
        (overlap.is_some(), "overlap"),
        (catch_up_seconds.is_some(), "catch_up_seconds"),
        (jitter_seconds.is_some(), "jitter_seconds"),
    ])
}
