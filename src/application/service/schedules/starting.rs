//! Starts the run for one time of a schedule, and reads how it stands.

use super::super::Service;
use super::super::workflows::Start;
use super::UnfitSchedule;
use super::acting::{acting, acting_for, acting_for_unknown, scopes_of};
use super::defining::Fit;
use super::tasks::{ScheduledTime, rooted, unfit_tasks};
use crate::application::api::runs::{CancelRun, ReadRun};
use crate::application::api::schedules::{Run, SCHEDULED_KEYS, Schedule, Work};
use crate::application::api::workflows::UnfitWorkflow;
use crate::application::api::{
    Error, Execute, Failure, IdCheck, Reply, Request, Started, Target, Warning,
};
use crate::application::context::Context;
use crate::application::queries::Consistency;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use taskledger_auth::{ANONYMOUS, Scope};
use taskledger_beside::Owner;
use taskledger_domain::flow::{Fault, Include, Refusal, RunStage};
use taskledger_domain::limits::EXECUTOR_WAIT_MS_DEFAULT;
use taskledger_domain::task::Labels;
use taskledger_domain::task::call;
use taskledger_domain::{RunId, TaskId, Timestamp, Violation};
use taskledger_schedules::{Outcome, flow_of};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

/// Milliseconds between looks for a flow whose id is taken: in all longer than a write takes.
const LOOK_AFTER_MS: [u64; 6] = [10, 20, 40, 80, 160, 320];
/// Characters of the reason that is kept of a run that could not be started.
const REASON_CHARS_MAX: usize = 1_000;
/// Faults of tasks that it names.
const REASONS_MAX: usize = 3;

/// The state of a run of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It goes on.
    Open(RunStage),
    /// It has ended.
    Ended(RunStage),
    /// It has been deleted, or archived, so it has ended.
    Gone,
}

impl Standing {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Open(stage) | Self::Ended(stage) => stage.as_str(),
            Self::Gone => "gone",
        }
    }

    pub(super) fn shown(self) -> Option<Arc<str>> {
        Some(Arc::from(self.as_str()))
    }
}

impl Service {
    /// Checks what a schedule is to start, as far as that can be known before; the version of its workflow.
    pub(super) async fn check_work(
        &self,
        (owner, work, actor, scopes): (&Owner, &Work, &Arc<str>, &Arc<str>),
        (id, name, at): (Uuid, &Arc<str>, Timestamp),
    ) -> Result<Fit<Option<u32>>, Error> {
        if let Work::Tasks { tasks } = work {
            let faults = unfit_tasks(owner, tasks);
            if !faults.is_empty() {
                return Ok(Err(UnfitSchedule::Tasks(faults)));
            }
        }
        let scopes = scopes_of(scopes, actor)?;
        let context = acting(actor, &owner.tenant, scopes, Arc::from("schedules.create"))?;
        let (of, flow) = ((id, name), flow_of(id, "check"));
        let checked = self.check_tasks(&context, (owner, work), of, (Some(flow), at));
        let checked = checked.await;
        if let Err(Error::Refused(_)) = checked {
            // The same without an id that the caller has never seen, so that no fault names it.
            let named = self.check_tasks(&context, (owner, work), of, (None, at));
            if let unfit @ (Err(_) | Ok(Err(_))) = named.await {
                return unfit;
            }
        }
        checked
    }

    /// Checks the tasks of one run; the version of its workflow.
    async fn check_tasks(
        &self,
        context: &Context,
        (owner, work): (&Owner, &Work),
        of: (Uuid, &Arc<str>),
        run: (Option<Uuid>, Timestamp),
    ) -> Result<Fit<Option<u32>>, Error> {
        let (version, tasks) = match self.tasks_for(owner, work, of, run).await? {
            Ok(found) => found,
            Err(unfit) => return Ok(Err(unfit)),
        };
        let list = match call::parse_tasks(&Value::Array(tasks)) {
            Ok(list) => list,
            Err(faults) => return Ok(Err(UnfitSchedule::Tasks(faults))),
        };
        self.app.check_new_tasks(context, list).await?;
        Ok(Ok(version))
    }

    /// The tasks of one run, with the version of the workflow that they are of. Their root gets the id `flow`, if any.
    async fn tasks_for(
        &self,
        owner: &Owner,
        work: &Work,
        (id, name): (Uuid, &Arc<str>),
        (flow, at): (Option<Uuid>, Timestamp),
    ) -> Result<Fit<(Option<u32>, Vec<Value>)>, Error> {
        let (of_version, mut tasks) = match work {
            Work::Tasks { tasks } => (None, tasks.as_array().cloned().unwrap_or_default()),
            Work::Workflow {
                name: document,
                version,
                inputs,
            } => {
                let mut trigger = inputs.clone();
                let values = [name.to_string(), at.to_string()];
                for (key, value) in SCHEDULED_KEYS.into_iter().zip(values) {
                    trigger.insert(key.to_owned(), value.into());
                }
                let version = (*version, "version");
                let (number, read) = match self.kept_workflow(owner, document, version).await? {
                    Ok(found) => found,
                    Err(unfit) => return Ok(Err(UnfitSchedule::Workflow(unfit))),
                };
                let start = Start {
                    method: "schedules.run",
                    saved_version: Some(number),
                    trigger,
                    user_id: owner.user.as_deref().map(str::to_owned),
                    execute: true,
                    labels: Labels::default(),
                };
                match self.written_tasks_of(read.workflow, start).await? {
                    Ok(tasks) => (Some(number), tasks),
                    Err(unfit) => return Ok(Err(UnfitSchedule::Workflow(unfit))),
                }
            }
        };
        let of = ScheduledTime {
            id: id.to_string(),
            name: name.to_string(),
            at: at.to_string(),
        };
        if matches!(work, Work::Tasks { .. }) {
            tasks.iter_mut().for_each(|task| of.fill_in(task));
        }
        rooted(&mut tasks, flow, owner.user.as_deref(), &of);
        Ok(Ok((of_version, tasks)))
    }

    /// Warnings about what a schedule starts: keys of its inputs that no phase uses, and secrets that its owner does
    /// not have now. Best effort: what cannot be read gives no warning.
    pub(super) async fn warnings_of_schedule(
        &self,
        context: &Context,
        schedule: &Schedule,
    ) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let (owner, work) = (&schedule.owner, &schedule.definition.work);
        if let Work::Workflow {
            name,
            version,
            inputs,
        } = work
            && let Ok(Ok((_, read))) = self.kept_workflow(owner, name, (*version, "version")).await
        {
            let of_inputs = read.workflow.trigger_warnings(inputs, &SCHEDULED_KEYS);
            warnings.extend(of_inputs.into_iter().map(Warning::from));
        }
        let of = (schedule.id, &schedule.name);
        let run = (None, self.app.clock.now());
        if let Ok(Ok((_, tasks))) = self.tasks_for(owner, work, of, run).await
            && let Ok(list) = call::parse_tasks(&Value::Array(tasks))
        {
            let user = owner.user.clone();
            let absent = self.absent_of(context, user, list.specifications().map(|(_, it)| it));
            warnings.extend(absent.await.unwrap_or_default());
        }
        warnings
    }

    /// Refuses to have a schedule run which would start programs of the server's machine for a caller who may not start
    /// them: the run would have the scopes of whoever changed the schedule last.
    ///
    /// # Errors
    /// `Forbidden`. Any other: it is not known what the schedule starts.
    pub(super) async fn may_have_run(
        &self,
        context: &Context,
        schedule: &Schedule,
    ) -> Result<(), Error> {
        let scopes = scopes_of(&schedule.scopes, &schedule.actor)?;
        if context.caller.may(Scope::ExecLocal) || !scopes.has(Scope::ExecLocal) {
            return Ok(());
        }
        let of = (schedule.id, &schedule.name);
        let run = (None, self.app.clock.civil());
        let (owner, work) = (&schedule.owner, &schedule.definition.work);
        // What cannot be read starts nothing, and the run says why.
        let Ok((version, tasks)) = self.tasks_for(owner, work, of, run).await? else {
            return Ok(());
        };
        let Ok(list) = call::parse_tasks(&Value::Array(tasks)) else {
            return Ok(());
        };
        if !self.knows(schedule, version).await? {
            // It runs without the scope.
            return Ok(());
        }
        let mut methods = list.specifications().map(|(_, it)| it.method.as_deref());
        methods.try_for_each(|method| self.app.admit_method(context, method, "name"))
    }

    /// Starts a run: the flow has an id that follows from it, so that it begins once, whoever does it again.
    ///
    /// # Errors
    /// [`Error`]: not now, perhaps later.
    pub(super) async fn start_run_of(
        &self,
        schedule: &Schedule,
        run: &Run,
        until: Instant,
    ) -> Result<Outcome, Error> {
        let outcome = self.begun(schedule, run, until).await?;
        if let Outcome::Failed(_) = outcome
            && let Some(begun) = self.begun_before(schedule, run, until).await?
        {
            // An earlier try has begun what could not be begun any more.
            return Ok(begun);
        }
        Ok(outcome)
    }

    /// Whether the flow of a run exists already: what became of it then.
    ///
    /// # Errors
    /// [`Error`]: that is not known now.
    pub(super) async fn begun_before(
        &self,
        schedule: &Schedule,
        run: &Run,
        until: Instant,
    ) -> Result<Option<Outcome>, Error> {
        let context = acting_for(schedule, run)?.until(Some(until));
        let root = TaskId(run.flow);
        match self.app.get(&context, root, Consistency::Strong).await {
            Ok(view) => Ok(Some(Outcome::Started(view.row.run_id.map(|run| run.0)))),
            Err(Error::Refused(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn begun(
        &self,
        schedule: &Schedule,
        run: &Run,
        until: Instant,
    ) -> Result<Outcome, Error> {
        let of = (schedule.id, &schedule.name);
        let (owner, work) = (&schedule.owner, &schedule.definition.work);
        let tasks = self.tasks_for(owner, work, of, (Some(run.flow), run.scheduled_at));
        let (version, tasks) = match tasks.await? {
            Ok(found) => found,
            Err(unfit) => return Ok(failed(&reason_of(&unfit))),
        };
        let list = match call::parse_tasks(&Value::Array(tasks)) {
            Ok(list) => list,
            Err(faults) => return Ok(failed(&told(&faults))),
        };
        let is_known = self.knows(schedule, version).await?;
        let context = match is_known {
            true => acting_for(schedule, run)?,
            false => acting_for_unknown(schedule, run)?,
        };
        let context = context.until(Some(until));
        let request = Request::Execute(Execute {
            target: Target::New(list),
            allow_unknown_executors: true,
            executor_wait_ms: EXECUTOR_WAIT_MS_DEFAULT,
            include: Include::Needed,
            id_check: IdCheck::First,
            callback: None,
        });
        match self.act(&context, request).await {
            Ok(Reply::Started(Started { run, .. })) => Ok(Outcome::Started(Some(run.0))),
            Ok(_) => Err(Failure::Broken("no reply to new tasks".to_owned()).into()),
            Err(Error::Refused(refused)) if refused.refusal.is_of_taken_id() => {
                self.started_before(&context, run).await
            }
            Err(Error::Refused(refused)) => Ok(failed(&refused_as(&refused.refusal))),
            // Somebody waits for the answer, and may ask again once there is room.
            Err(error @ Error::QuotaExceeded { .. }) if run.is_by_hand() => {
                Ok(failed(&error.to_string()))
            }
            Err(error @ Error::Forbidden { .. }) if is_known => Ok(failed(&error.to_string())),
            Err(error @ Error::Forbidden { .. }) => Ok(failed(&format!(
                "{error}: this version of the workflow was saved after the last change of the schedule, so it does not \
                 get `exec:local`; change the schedule to run it with your scopes"
            ))),
            Err(error) => Err(error),
        }
    }

    /// Whether the actor of a schedule knew this version of its workflow, or nobody had fewer rights than he has when
    /// it was saved.
    async fn knows(&self, schedule: &Schedule, version: Option<u32>) -> Result<bool, Error> {
        let (Some(version), Work::Workflow { name, .. }) = (version, &schedule.definition.work)
        else {
            return Ok(true);
        };
        if schedule.work_version == Some(version) {
            return Ok(true);
        }
        if &*schedule.actor != ANONYMOUS {
            return Ok(false);
        }
        // Nobody was authenticated, so everybody might do everything.
        let after = Some(version.saturating_add(1));
        let events = self
            .documents
            .events(&schedule.owner, name, after, 1)
            .await?;
        let saved = events.first().map(|event| &event.version);
        Ok(saved.is_some_and(|it| it.version == version && &*it.saved_by == ANONYMOUS))
    }

    /// The run of a flow whose id is taken: it was begun before, or is being begun.
    async fn started_before(&self, context: &Context, run: &Run) -> Result<Outcome, Error> {
        let root = TaskId(run.flow);
        for pause_ms in LOOK_AFTER_MS {
            match self.app.get(context, root, Consistency::Strong).await {
                Ok(view) => {
                    let run = view.row.run_id.map(|run| run.0);
                    return Ok(Outcome::Started(run));
                }
                Err(Error::Refused(_)) => sleep(Duration::from_millis(pause_ms)).await,
                Err(error) => return Err(error),
            }
        }
        // The id is that of a flow that was there: deleted since, or archived.
        Ok(Outcome::Started(None))
    }

    /// How a run that was started stands.
    pub(super) async fn stage_of(
        &self,
        schedule: &Schedule,
        run: &Run,
        until: Option<Instant>,
    ) -> Result<Standing, Error> {
        let Some(id) = run.run else {
            return Ok(Standing::Gone);
        };
        let read = ReadRun {
            run: RunId(id),
            history: Some(0),
            artifacts: false,
        };
        let context = acting_for(schedule, run)?.until(until);
        match self.app.read_run(&context, read).await {
            Ok(view) if view.status.stage.is_end() => Ok(Standing::Ended(view.status.stage)),
            Ok(view) => Ok(Standing::Open(view.status.stage)),
            Err(Error::Refused(_)) => Ok(Standing::Gone),
            Err(error) => Err(error),
        }
    }

    /// Cancels a run that gives way to the next one.
    pub(super) async fn cancel_run_of(
        &self,
        schedule: &Schedule,
        run: &Run,
        until: Instant,
    ) -> Result<(), Error> {
        let Some(id) = run.run else {
            return Ok(());
        };
        let cancel = CancelRun {
            run: RunId(id),
            reason: Some(format!(
                "the schedule `{}` starts its next run",
                schedule.name
            )),
        };
        let context = acting_for(schedule, run)?.until(Some(until));
        match self.act(&context, Request::CancelRun(cancel)).await {
            // It has ended meanwhile.
            Ok(_) | Err(Error::Refused(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn told(faults: &[Violation]) -> String {
    let one = |fault: &Violation| {
        format!(
            "`{}`: {}, expected {}",
            fault.field, fault.reason, fault.expected
        )
    };
    let all: Vec<String> = faults.iter().take(REASONS_MAX).map(one).collect();
    all.join("; ")
}

fn refused_as(refusal: &Refusal) -> String {
    let mut violations = Vec::new();
    if let Refusal::Invalid(faults) = refusal {
        for fault in faults {
            if let Fault::Value(violation) = fault {
                violations.push((**violation).clone());
            }
        }
    }
    if violations.is_empty() {
        return format!("its tasks were refused: {refusal:?}");
    }
    told(&violations)
}

/// Why there are no tasks to start, in words.
fn reason_of(unfit: &UnfitSchedule) -> String {
    match unfit {
        UnfitSchedule::Workflow(UnfitWorkflow::Absent("name")) => {
            "no workflow of this name is kept".to_owned()
        }
        UnfitSchedule::Workflow(UnfitWorkflow::Absent(_)) => {
            "this version of the workflow is not kept".to_owned()
        }
        UnfitSchedule::Workflow(UnfitWorkflow::Trigger(reason)) => format!("inputs: {reason}"),
        UnfitSchedule::Workflow(UnfitWorkflow::Document(faults)) => {
            let first = faults
                .first()
                .map(|fault| format!("`{}`: {}", fault.path, fault.reason));
            format!("the workflow has faults: {}", first.unwrap_or_default())
        }
        UnfitSchedule::Workflow(UnfitWorkflow::Tasks(faults)) | UnfitSchedule::Tasks(faults) => {
            told(faults)
        }
        UnfitSchedule::Workflow(
            UnfitWorkflow::Unplayable(_) | UnfitWorkflow::NotKept(_) | UnfitWorkflow::NoSchemas(_),
        )
        | UnfitSchedule::Absent
        | UnfitSchedule::NotKept(_)
        | UnfitSchedule::Invalid(_) => "it has no tasks".to_owned(),
    }
}

fn failed(reason: &str) -> Outcome {
    Outcome::Failed(
        reason
            .chars()
            .take(REASON_CHARS_MAX)
            .collect::<String>()
            .into(),
    )
}
