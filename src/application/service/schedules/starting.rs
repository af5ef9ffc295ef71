//! From one time of a schedule to the run that it starts, and how that stands.

use super::super::Service;
use super::super::workflows::Start;
use super::tasks::{Told, rooted, unfit_tasks};
use super::{Fit, UnfitSchedule};
use crate::application::api::runs::{CancelRun, ReadRun};
use crate::application::api::schedules::{Run, Schedule, Work};
use crate::application::api::workflows::UnfitWorkflow;
use crate::application::api::{Error, Execute, Failure, Reply, Request, Started, Target};
use crate::application::context::Context;
use crate::application::queries::Consistency;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use taskledger_auth::{Caller, Scope, Scopes};
use taskledger_documents::Owner as DocumentOwner;
use taskledger_domain::flow::{Fault, Refusal, RunStage};
use taskledger_domain::limits::EXECUTOR_WAIT_MS_DEFAULT;
use taskledger_domain::task::Labels;
use taskledger_domain::task::call;
use taskledger_domain::{RunId, TaskId, Timestamp, Violation};
use taskledger_schedules::{Outcome, Owner, flow_of};
use tokio::time::sleep;
use uuid::Uuid;

/// Milliseconds between looks for a flow whose id is taken: in all longer than a write takes.
const LOOK_AFTER_MS: [u64; 6] = [10, 20, 40, 80, 160, 320];
/// Characters of the reason that is kept of a run that could not be started.
const REASON_CHARS_MAX: usize = 1_000;
/// Faults of tasks that it names.
const REASONS_MAX: usize = 3;
/// How a run of a schedule stands.
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
    /// Checks what a schedule is to start, as far as that can be known before.
    pub(super) async fn check_work(
        &self,
        (owner, work, actor, scopes): (&Owner, &Work, &Arc<str>, &Arc<str>),
        (id, name, at): (Uuid, &Arc<str>, Timestamp),
    ) -> Result<Fit<()>, Error> {
        if let Work::Tasks { tasks } = work {
            let faults = unfit_tasks(owner, tasks);
            if !faults.is_empty() {
                return Ok(Err(UnfitSchedule::Tasks(faults)));
            }
        }
        let run = (flow_of(id, "check"), at);
        let tasks = match self.tasks_for(owner, work, (id, name), run).await? {
            Ok(tasks) => tasks,
            Err(unfit) => return Ok(Err(unfit)),
        };
        let list = match call::parse_tasks(&Value::Array(tasks)) {
            Ok(list) => list,
            Err(faults) => return Ok(Err(UnfitSchedule::Tasks(faults))),
        };
        let context = acting(actor, &owner.tenant, scopes, Arc::from("schedules.create"))?;
        self.app.check_new_tasks(&context, list).await?;
        Ok(Ok(()))
    }

    /// The tasks of one run.
    async fn tasks_for(
        &self,
        owner: &Owner,
        work: &Work,
        (id, name): (Uuid, &Arc<str>),
        (flow, at): (Uuid, Timestamp),
    ) -> Result<Fit<Vec<Value>>, Error> {
        let mut tasks = match work {
            Work::Tasks { tasks } => tasks.as_array().cloned().unwrap_or_default(),
            Work::Workflow {
                name: document,
                version,
                inputs,
            } => {
                let mut trigger = inputs.clone();
                for (key, value) in [
                    ("schedule", name.to_string()),
                    ("scheduled_at", at.to_string()),
                ] {
                    trigger.entry(key).or_insert(Value::from(value));
                }
                let kept_by = DocumentOwner {
                    tenant: owner.tenant.clone(),
                    user: owner.user.clone(),
                };
                let version = (*version, "version");
                let (number, read) = match self.kept_workflow(&kept_by, document, version).await? {
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
                    Ok(tasks) => tasks,
                    Err(unfit) => return Ok(Err(UnfitSchedule::Workflow(unfit))),
                }
            }
        };
        let of = Told {
            id: id.to_string(),
            name: name.to_string(),
            at: at.to_string(),
        };
        if matches!(work, Work::Tasks { .. }) {
            tasks.iter_mut().for_each(|task| of.fill_in(task));
        }
        rooted(&mut tasks, flow, owner.user.as_deref(), &of);
        Ok(Ok(tasks))
    }

    /// Starts a run: the flow has an id that follows from it, so that it begins once, whoever does it again.
    ///
    /// # Errors
    /// [`Error`]: not now, perhaps later.
    pub(super) async fn start_run_of(
        &self,
        schedule: &Schedule,
        run: &Run,
    ) -> Result<Outcome, Error> {
        let outcome = self.begun(schedule, run).await?;
        if let Outcome::Failed(_) = outcome {
            // An earlier try may have begun what could not be begun any more.
            let found = self
                .app
                .get(
                    &acting_for(schedule, run)?,
                    TaskId(run.flow),
                    Consistency::Strong,
                )
                .await;
            match found {
                Ok(view) => return Ok(Outcome::Started(view.row.run_id.map(|run| run.0))),
                Err(Error::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(outcome)
    }

    async fn begun(&self, schedule: &Schedule, run: &Run) -> Result<Outcome, Error> {
        let of = (schedule.id, &schedule.name);
        let (owner, work) = (&schedule.owner, &schedule.definition.work);
        let tasks = self.tasks_for(owner, work, of, (run.flow, run.scheduled_at));
        let tasks = match tasks.await? {
            Ok(tasks) => tasks,
            Err(unfit) => return Ok(failed(&reason_of(&unfit))),
        };
        let list = match call::parse_tasks(&Value::Array(tasks)) {
            Ok(list) => list,
            Err(faults) => return Ok(failed(&told(&faults))),
        };
        let context = acting_for(schedule, run)?;
        let request = Request::Execute(Execute {
            target: Target::New(list),
            allow_unknown_executors: true,
            executor_wait_ms: EXECUTOR_WAIT_MS_DEFAULT,
            callback: None,
        });
        match self.call(&context, request).await {
            Ok(Reply::Started(Started { run, .. })) => Ok(Outcome::Started(Some(run.0))),
            Ok(_) => Err(Failure::Broken("no reply to new tasks".to_owned()).into()),
            Err(Error::Refused(refused)) if is_taken(&refused.refusal) => {
                self.started_before(&context, run).await
            }
            Err(Error::Refused(refused)) => Ok(failed(&refused_as(&refused.refusal))),
            Err(error @ Error::Forbidden { .. }) => Ok(failed(&error.to_string())),
            Err(error) => Err(error),
        }
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
    pub(super) async fn stage_of(&self, schedule: &Schedule, run: &Run) -> Result<Standing, Error> {
        let Some(id) = run.run else {
            return Ok(Standing::Gone);
        };
        let read = ReadRun {
            run: RunId(id),
            history: Some(0),
            artifacts: false,
        };
        let context = acting_for(schedule, run)?;
        match self.app.read_run(&context, read).await {
            Ok(view) if view.status.stage.is_end() => Ok(Standing::Ended(view.status.stage)),
            Ok(view) => Ok(Standing::Open(view.status.stage)),
            Err(Error::Refused(_)) => Ok(Standing::Gone),
            Err(error) => Err(error),
        }
    }

    /// Cancels a run that gives way to the next one.
    pub(super) async fn cancel_run_of(&self, schedule: &Schedule, run: &Run) -> Result<(), Error> {
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
        let context = acting_for(schedule, run)?;
        match self.call(&context, Request::CancelRun(cancel)).await {
            // It has ended meanwhile.
            Ok(_) | Err(Error::Refused(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The caller in whose name a schedule acts. Events of the run have its name and time as their correlation.
fn acting_for(schedule: &Schedule, run: &Run) -> Result<Context, Error> {
    let correlation = format!("schedule/{}/{}", schedule.name, run.scheduled_at);
    let tenant = &schedule.owner.tenant;
    acting(
        &schedule.actor,
        tenant,
        &schedule.scopes,
        Arc::from(correlation),
    )
}

fn acting(
    actor: &Arc<str>,
    tenant: &Arc<str>,
    scopes: &Arc<str>,
    correlation: Arc<str>,
) -> Result<Context, Error> {
    let scopes = scopes.split_whitespace().map(str::parse::<Scope>);
    let scopes = scopes.collect::<Result<Vec<_>, _>>().map(Scopes::of);
    let caller = scopes
        .ok()
        .and_then(|scopes| Caller::described(actor, tenant, scopes, None, None, None));
    let broken = || Failure::Schedules(format!("`{actor}` is no caller with scopes"));
    Ok(Context::of(
        Arc::new(caller.ok_or_else(broken)?),
        correlation,
    ))
}

/// Whether the flow of a run exists already.
fn is_taken(refusal: &Refusal) -> bool {
    let Refusal::Invalid(faults) = refusal else {
        return false;
    };
    faults.iter().any(|fault| {
        matches!(
            fault,
            Fault::IdTaken { .. } | Fault::IdTakenMeanwhile { .. } | Fault::TaskStored { .. }
        )
    })
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
