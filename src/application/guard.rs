//! Checks that run before a caller's command is decided in the flow's turn: that the flow is the caller's, that its
//! owner is the one whom the audit log names, that the credentials allow the executors that would run or the method
//! that is claimed, and that retried tasks stay within the quotas.
//!
//! Checked in the turn, so that no change of owner slips in between.

use super::context::Context;
use super::error::Error;
use super::limits::Quotas;
use super::noted::Noted;
use super::ports::ExecutorSnapshot;
use std::borrow::Cow;
use std::sync::Arc;
use taskledger_auth::{Reach, Scope};
use taskledger_domain::TaskId;
use taskledger_domain::flow::{Claimable, Command, Flow, Outdated, Refusal};
use taskledger_domain::task::Status;

/// The conditions of one caller for one command.
#[derive(Debug)]
pub(super) struct Guard {
    reach: Reach,
    /// What the caller is answered when the flow is not theirs: the same as when the task did not exist.
    foreign: Refusal,
    /// The executors, when the caller may not use those that start programs.
    executors: Option<Arc<dyn ExecutorSnapshot>>,
    /// The only methods that the caller may claim, if the credentials say so.
    methods: Option<Arc<[Arc<str>]>>,
    /// Whose flows are changed according to the audit log, for a caller whose changes are noted.
    noted: Option<Noted>,
    /// What the caller may add, for a command that runs stored tasks.
    quotas: Option<Arc<Quotas>>,
}

impl Guard {
    /// The conditions for a caller; `None` for one who may do everything. Cost: O(1).
    pub(super) fn of(
        context: &Context,
        executors: impl FnOnce() -> Arc<dyn ExecutorSnapshot>,
        foreign: impl FnOnce() -> Refusal,
    ) -> Option<Box<Self>> {
        let caller = &context.caller;
        let is_local = caller.may(Scope::ExecLocal);
        let is_free = is_local && caller.may(Scope::UsersAny) && caller.methods().is_none();
        if is_free && context.noted.is_none() {
            return None;
        }
        Some(Box::new(Self {
            reach: caller.reach(),
            foreign: foreign(),
            executors: (!is_local).then(executors),
            methods: caller.methods().cloned(),
            noted: context.noted.clone(),
            quotas: None,
        }))
    }

    /// The same conditions, and that what failed and would wait again is within these quotas.
    pub(super) fn within(mut self: Box<Self>, quotas: &Arc<Quotas>) -> Box<Self> {
        self.quotas = Some(quotas.clone());
        self
    }

    /// Whether the command may be decided. Cost: O(1); for a run of stored tasks O(tasks that it covers).
    ///
    /// # Errors
    /// `Refused` as if there were no such task; `Outdated`: it is of another user than was noted; `Forbidden`;
    /// `QuotaExceeded`.
    pub(super) fn check(&self, flow: &Flow, command: &Command) -> Result<(), Error> {
        let exists = flow.version() > 0;
        // Nobody owns a flow that has left the log.
        if exists && !sees(&self.reach, flow) {
            return Err(self.foreign.clone().into());
        }
        if let Some(noted) = &self.noted
            && !noted.covers(flow, command)
        {
            return Err(Error::Outdated(Outdated::Owner));
        }
        if let (Some(methods), Command::Claim(claim)) = (&self.methods, command)
            && let Claimable::Task(task) = claim.of
            && !is_of(flow, task, methods)
        {
            return Err(Error::Forbidden {
                scope: Scope::Worker,
                field: Some(Cow::from("task_id")),
            });
        }
        let Command::Execute(execute) = command else {
            return Ok(());
        };
        let owner = match &self.reach {
            Reach::Of(owner) if execute.create.is_empty() => Some(owner),
            Reach::Of(_) | Reach::All => None,
        };
        let adding = owner.zip(self.quotas.as_ref());
        if self.executors.is_none() && adding.is_none() {
            return Ok(());
        }
        let set = flow.run_set(execute.task, execute.kind, execute.include);
        if let Some(executors) = &self.executors
            && set
                .covered
                .iter()
                .any(|task| starts_programs(flow, *task, &**executors))
        {
            return Err(not_local("task_id"));
        }
        let Some((owner, quotas)) = adding else {
            return Ok(());
        };
        quotas.requeue(owner, set.again as u64)
    }
}

/// Whether a flow is within reach; one that was archived has no owner.
pub(super) fn sees(reach: &Reach, flow: &Flow) -> bool {
    match reach {
        Reach::All => true,
        Reach::Of(_) => reach.covers(flow.owner()),
    }
}

/// Whether the task names one of these methods, or there is no such task: whoever decides says that.
fn is_of(flow: &Flow, task: TaskId, methods: &[Arc<str>]) -> bool {
    flow.task(task).is_none_or(|task| {
        let method = task.method.as_deref().unwrap_or_default();
        methods.iter().any(|allowed| **allowed == *method)
    })
}

fn starts_programs(flow: &Flow, task: TaskId, executors: &dyn ExecutorSnapshot) -> bool {
    flow.task(task).is_some_and(|task| {
        let may_run = matches!(task.status, Status::Pending | Status::Failed);
        may_run
            && task
                .method
                .is_some_and(|method| executors.starts_programs(&method))
    })
}

/// The caller may not use executors that start programs on the server's machine.
pub(super) fn not_local(field: &'static str) -> Error {
    Error::Forbidden {
        scope: Scope::ExecLocal,
        field: Some(Cow::from(field)),
    }
}
