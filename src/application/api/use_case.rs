//! The list of use cases, with the scope that each needs, its cost and what it leaves in the audit log; a use case
//! without them does not compile. The list is closed, so that a matrix of who may do what can be made from it and
//! checked for gaps.
//!
//! Costs are in units of the rate: a read 1, a change 5 and 1 for each further task; of a copy too, whose tasks are
//! counted when it is known how many there are (`copying.rs`). Workers call often and take load away: looking for work
//! and ending it cost 1, holding it nothing.

use super::recorded::Recorded;
use super::recorded::Recorded::{Always, Nothing, OfOthers, Reads, Refusals};
use taskledger_auth::{Action, Scope};

/// The cost of a call, without its further tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// Nothing: it takes load away, reports how the server is, or is part of a call that was counted.
    Free,
    /// A read: 1 unit.
    Read,
    /// A change.
    Write,
}

impl Cost {
    /// In units of the rate.
    #[must_use]
    pub const fn units(self) -> u32 {
        match self {
            Self::Free => 0,
            Self::Read => 1,
            Self::Write => 5,
        }
    }
}

macro_rules! use_cases {
    (
        $($(#[$doc:meta])* $variant:ident = $name:literal needs $scope:expr, costs $cost:expr, leaves $recorded:expr;)+
    ) => {
        /// Something that a caller can ask for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum UseCase {
            $($(#[$doc])* $variant),+
        }

        impl UseCase {
            /// All variants.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name, which never changes: it is part of stored idempotency keys.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The scope that credentials must have; `None`: any credentials will do.
            #[must_use]
            pub const fn scope(self) -> Option<Scope> {
                match self { $(Self::$variant => $scope),+ }
            }

            /// What a call costs.
            #[must_use]
            pub const fn cost(self) -> Cost {
                match self { $(Self::$variant => $cost),+ }
            }

            /// What it leaves in the audit log; of those that may be one of two things, the first.
            #[must_use]
            pub const fn recorded(self) -> Recorded {
                match self { $(Self::$variant => $recorded),+ }
            }
        }
    };
}

use_cases! {
    /// Create tasks, alone or as a tree.
    CreateTasks = "tasks.create" needs Some(Scope::TasksWrite), costs Cost::Write, leaves OfOthers(Action::TaskCreate);
    /// Run new or stored tasks.
    ExecuteTasks = "tasks.execute" needs Some(Scope::TasksRun), costs Cost::Write, leaves OfOthers(Action::TaskExecute);
    /// Run a failed task again.
    RetryTask = "tasks.retry" needs Some(Scope::TasksRun), costs Cost::Write, leaves OfOthers(Action::TaskRetry);
    /// Begin a run by a message.
    StartRun = "runs.start" needs Some(Scope::TasksRun), costs Cost::Write, leaves OfOthers(Action::TaskExecute);
    /// Cancel a run.
    CancelRun = "runs.cancel" needs Some(Scope::TasksRun), costs Cost::Free, leaves OfOthers(Action::RunCancel);
    /// Say something to a run that waits for it.
    MessageRun = "runs.message" needs Some(Scope::TasksRun), costs Cost::Read, leaves OfOthers(Action::RunMessage);
    /// Change a task.
    // Or `FlowOwner`.
    UpdateTask = "tasks.update" needs Some(Scope::TasksWrite), costs Cost::Write, leaves OfOthers(Action::TaskUpdate);
    /// Delete pending tasks.
    DeleteTasks = "tasks.delete" needs Some(Scope::TasksWrite), costs Cost::Write, leaves OfOthers(Action::TaskDelete);
    /// Cancel tasks that have not ended.
    CancelTasks = "tasks.cancel" needs Some(Scope::TasksRun), costs Cost::Free, leaves OfOthers(Action::TaskCancel);
    /// Copy a task and the tasks below it.
    CopyTasks = "tasks.copy" needs Some(Scope::TasksWrite), costs Cost::Write, leaves OfOthers(Action::TaskCopy);
    /// Check a workflow document, and store nothing.
    // It shows what the call itself brings.
    ValidateWorkflow = "workflows.validate" needs Some(Scope::TasksRead), costs Cost::Write, leaves Nothing;
    /// Play a run of a workflow document, and store nothing.
    DryRunWorkflow = "workflows.dry_run" needs Some(Scope::TasksRead), costs Cost::Write, leaves Nothing;
    /// Keep a workflow document by its name: one's own, or with `users:any` anybody's.
    SaveWorkflow = "workflows.save" needs Some(Scope::TasksWrite), costs Cost::Write,
        leaves OfOthers(Action::WorkflowSave);
    /// Read a workflow document that is kept.
    GetWorkflow = "workflows.get" needs Some(Scope::TasksRead), costs Cost::Read, leaves Reads(Action::WorkflowRead);
    /// Read the names of workflow documents.
    ListWorkflows = "workflows.list" needs Some(Scope::TasksRead), costs Cost::Read, leaves Reads(Action::WorkflowRead);
    /// Read what happened to a workflow document.
    ListWorkflowVersions = "workflows.versions" needs Some(Scope::TasksRead), costs Cost::Read,
        leaves Reads(Action::WorkflowRead);
    /// Compare versions of a workflow document.
    DiffWorkflow = "workflows.diff" needs Some(Scope::TasksRead), costs Cost::Write, leaves Reads(Action::WorkflowRead);
    /// Delete a workflow document.
    DeleteWorkflow = "workflows.delete" needs Some(Scope::TasksWrite), costs Cost::Write,
        leaves OfOthers(Action::WorkflowDelete);
    /// Make a schedule: one's own, or with `users:any` anybody's.
    CreateSchedule = "schedules.create" needs Some(Scope::TasksRun), costs Cost::Write,
        leaves Always(Action::ScheduleCreate);
    /// Read a schedule.
    GetSchedule = "schedules.get" needs Some(Scope::TasksRead), costs Cost::Read, leaves Reads(Action::ScheduleRead);
    /// Read the names of schedules.
    ListSchedules = "schedules.list" needs Some(Scope::TasksRead), costs Cost::Read, leaves Reads(Action::ScheduleRead);
    /// Change a schedule.
    UpdateSchedule = "schedules.update" needs Some(Scope::TasksRun), costs Cost::Write,
        leaves Always(Action::ScheduleUpdate);
    /// Pause a schedule, or resume it.
    // Or `ScheduleResume`.
    PauseSchedule = "schedules.pause" needs Some(Scope::TasksRun), costs Cost::Write,
        leaves Always(Action::SchedulePause);
    /// Delete a schedule.
    DeleteSchedule = "schedules.delete" needs Some(Scope::TasksRun), costs Cost::Write,
        leaves Always(Action::ScheduleDelete);
    /// Start a run of a schedule now.
    RunSchedule = "schedules.run_now" needs Some(Scope::TasksRun), costs Cost::Write,
        leaves Always(Action::ScheduleRun);
    /// Read how far a run has come.
    ReadProgress = "workflows.progress" needs Some(Scope::TasksRead), costs Cost::Read, leaves Reads(Action::FlowRead);
    /// Read a task.
    GetTask = "tasks.get" needs Some(Scope::TasksRead), costs Cost::Read, leaves Reads(Action::FlowRead);
    /// Read tasks that match a filter.
    ListTasks = "tasks.list" needs Some(Scope::TasksRead), costs Cost::Read, leaves Reads(Action::FlowRead);
    /// Read a task with everything below it.
    GetTree = "tasks.tree" needs Some(Scope::TasksRead), costs Cost::Read, leaves Reads(Action::FlowRead);
    /// Read the children of a task.
    GetChildren = "tasks.children" needs Some(Scope::TasksRead), costs Cost::Read, leaves Reads(Action::FlowRead);
    /// Read the events of a task or a flow.
    ReadHistory = "tasks.history" needs Some(Scope::TasksRead), costs Cost::Read, leaves Reads(Action::FlowRead);
    /// Read what happened in all flows that the caller sees.
    QueryEvents = "events.query" needs Some(Scope::TasksRead), costs Cost::Read, leaves Reads(Action::FlowRead);
    /// Read why a task stands as it does.
    ExplainTask = "tasks.explain" needs Some(Scope::TasksRead), costs Cost::Read, leaves Reads(Action::FlowRead);
    /// Follow a task until nothing runs.
    SubscribeTask = "tasks.subscribe" needs Some(Scope::TasksRead), costs Cost::Read, leaves Reads(Action::FlowRead);
    /// Follow events by filter.
    WatchEvents = "events.watch" needs Some(Scope::TasksRead), costs Cost::Read, leaves Reads(Action::FlowRead);
    /// Follow a run to its end: the stream of a call that began it.
    WatchRun = "runs.watch" needs Some(Scope::TasksRead), costs Cost::Free, leaves Reads(Action::FlowRead);
    /// Read a run.
    ReadRun = "runs.get" needs Some(Scope::TasksRead), costs Cost::Read, leaves Reads(Action::FlowRead);
    /// Read runs that match a filter.
    ListRuns = "runs.list" needs Some(Scope::TasksRead), costs Cost::Read, leaves Reads(Action::FlowRead);
    /// Follow how a run stands and what it returns.
    FollowRun = "runs.follow" needs Some(Scope::TasksRead), costs Cost::Read, leaves Reads(Action::FlowRead);
    /// Have a run reported to an address, or not any more.
    ReportRun = "runs.report" needs Some(Scope::TasksRun), costs Cost::Write, leaves OfOthers(Action::RunReport);
    /// Read where a run is reported.
    ReadReports = "runs.reports" needs Some(Scope::TasksRead), costs Cost::Read, leaves Reads(Action::FlowRead);
    /// Wait until a run has ended or waits for its caller.
    AwaitRun = "runs.await" needs Some(Scope::TasksRead), costs Cost::Read, leaves Reads(Action::FlowRead);
    /// Read how tasks ended and go on that one has published through the agent broker.
    // An inbox is the principal's own, but it may have published for somebody else.
    ReadInbox = "broker.inbox" needs Some(Scope::TasksRead), costs Cost::Read, leaves Reads(Action::FlowRead);
    /// Claim tasks to work on them outside the server.
    // Whose tasks a worker is given is noted by their owner when they are handed out.
    ClaimTasks = "tasks.claim" needs Some(Scope::Worker), costs Cost::Read, leaves Refusals(Action::TaskClaim);
    /// Hold a claimed task for longer, and say how far it is.
    // By the lease of a claim, which only its principal holds.
    RenewLease = "tasks.renew" needs Some(Scope::Worker), costs Cost::Free, leaves Refusals(Action::TaskWork);
    /// Complete a claimed task.
    CompleteTask = "tasks.complete" needs Some(Scope::Worker), costs Cost::Read, leaves Refusals(Action::TaskWork);
    /// Fail a claimed task.
    FailTask = "tasks.fail" needs Some(Scope::Worker), costs Cost::Read, leaves Refusals(Action::TaskWork);
    /// Give a claimed task back.
    ReleaseTask = "tasks.release" needs Some(Scope::Worker), costs Cost::Read, leaves Refusals(Action::TaskWork);
    /// Have a claimed task wait for a person.
    SuspendTask = "tasks.suspend" needs Some(Scope::Worker), costs Cost::Read, leaves Refusals(Action::TaskWork);
    /// Answer what a task has asked a person.
    RespondTask = "tasks.respond" needs Some(Scope::TasksRun), costs Cost::Read, leaves OfOthers(Action::TaskRespond);
    /// Read the result of a task beside a claimed one.
    ReadSibling = "tasks.sibling_output" needs Some(Scope::Worker), costs Cost::Read, leaves Reads(Action::FlowRead);
    /// Declare a method that workers carry out.
    DeclareMethod = "workers.declare" needs Some(Scope::Worker), costs Cost::Write,
        leaves OfOthers(Action::MethodDeclare);
    /// Take the declaration of a method back.
    UndeclareMethod = "workers.undeclare" needs Some(Scope::Worker), costs Cost::Write,
        leaves OfOthers(Action::MethodUndeclare);
    /// Read the methods of workers.
    ListMethods = "workers.methods" needs Some(Scope::Worker), costs Cost::Read, leaves Reads(Action::MethodRead);
    /// Read which workers there are: one's own, or with `users:any` all.
    ListWorkers = "workers.list" needs Some(Scope::Worker), costs Cost::Read, leaves Reads(Action::WorkerRead);
    /// Give a worker no more work: one's own, or any with the scope `admin`.
    DrainWorker = "workers.drain" needs Some(Scope::Worker), costs Cost::Write, leaves OfOthers(Action::WorkerDrain);
    /// Create a webhook.
    CreateWebhook = "webhooks.create" needs Some(Scope::Webhooks), costs Cost::Write,
        leaves Always(Action::WebhookCreate);
    /// Read a webhook.
    GetWebhook = "webhooks.get" needs Some(Scope::Webhooks), costs Cost::Read, leaves Reads(Action::WebhookRead);
    /// Read webhooks.
    ListWebhooks = "webhooks.list" needs Some(Scope::Webhooks), costs Cost::Read, leaves Reads(Action::WebhookRead);
    /// Change a webhook.
    UpdateWebhook = "webhooks.update" needs Some(Scope::Webhooks), costs Cost::Write,
        leaves Always(Action::WebhookUpdate);
    /// Delete a webhook.
    DeleteWebhook = "webhooks.delete" needs Some(Scope::Webhooks), costs Cost::Write,
        leaves Always(Action::WebhookDelete);
    /// Enable a webhook.
    EnableWebhook = "webhooks.enable" needs Some(Scope::Webhooks), costs Cost::Write,
        leaves Always(Action::WebhookEnable);
    /// Disable a webhook.
    DisableWebhook = "webhooks.disable" needs Some(Scope::Webhooks), costs Cost::Write,
        leaves Always(Action::WebhookDisable);
    /// Give a webhook a new secret.
    RotateWebhookSecret = "webhooks.rotate_secret" needs Some(Scope::Webhooks), costs Cost::Write,
        leaves Always(Action::WebhookRotate);
    /// Read the secrets of a webhook.
    ReadWebhookSecret = "webhooks.secret" needs Some(Scope::Webhooks), costs Cost::Write,
        leaves Always(Action::SecretShown);
    /// Send a test to a webhook.
    TestWebhook = "webhooks.test" needs Some(Scope::Webhooks), costs Cost::Write, leaves OfOthers(Action::WebhookTest);
    /// Read what was sent to webhooks.
    ListDeliveries = "webhooks.deliveries" needs Some(Scope::Webhooks), costs Cost::Read,
        leaves Reads(Action::WebhookRead);
    /// Send something again.
    Redeliver = "webhooks.redeliver" needs Some(Scope::Webhooks), costs Cost::Write,
        leaves OfOthers(Action::WebhookRedeliver);
    /// Take up deliveries that were given up.
    RecoverDeliveries = "webhooks.recover" needs Some(Scope::Webhooks), costs Cost::Write,
        leaves OfOthers(Action::WebhookRecover);
    /// Set a secret that tasks can name: one's own, or with `users:any` anybody's.
    SetSecret = "secrets.set" needs Some(Scope::TasksWrite), costs Cost::Write, leaves Always(Action::SecretSet);
    /// Read the names of secrets.
    ListSecrets = "secrets.list" needs Some(Scope::TasksWrite), costs Cost::Read, leaves Reads(Action::SecretRead);
    /// Delete a secret.
    DeleteSecret = "secrets.delete" needs Some(Scope::TasksWrite), costs Cost::Write,
        leaves Always(Action::SecretDelete);
    /// Create a token.
    CreateToken = "tokens.create" needs Some(Scope::Admin), costs Cost::Write, leaves Always(Action::TokenCreate);
    /// Read one's own tokens, or all with the scope `admin`.
    // Administrators manage the tokens of all; no list shows a secret.
    ListTokens = "tokens.list" needs None, costs Cost::Read, leaves Nothing;
    /// Give a token a new secret: one's own, or any with the scope `admin`.
    RotateToken = "tokens.rotate" needs None, costs Cost::Write, leaves Always(Action::TokenRotate);
    /// Revoke a token: one's own, or any with the scope `admin`.
    RevokeToken = "tokens.revoke" needs None, costs Cost::Write, leaves Always(Action::TokenRevoke);
    /// Refuse JWTs of an issuer before they expire.
    // Or `SubjectDeny`.
    DenyJwt = "tokens.deny" needs Some(Scope::Admin), costs Cost::Write, leaves Always(Action::JwtDeny);
    /// Read what was done by whom.
    ReadAudit = "audit.list" needs Some(Scope::Admin), costs Cost::Read, leaves Nothing;
    /// Read who one is.
    WhoAmI = "system.whoami" needs None, costs Cost::Free, leaves Nothing;
    /// Read how the server is.
    ReadHealth = "system.health" needs None, costs Cost::Free, leaves Nothing;
    /// Read whether the server can take calls.
    CheckReadiness = "system.readiness" needs None, costs Cost::Free, leaves Nothing;
    /// Read the figures for monitoring.
    ReadMetrics = "system.metrics" needs Some(Scope::Metrics), costs Cost::Free, leaves Nothing;
    /// Read which executors there are.
    ListExecutors = "system.executors" needs None, costs Cost::Read, leaves Nothing;
    /// Make the read models anew.
    RebuildReadModels = "system.rebuild" needs Some(Scope::Admin), costs Cost::Write, leaves Always(Action::Rebuild);
    /// Have a server begin nothing any more, or again.
    DrainServer = "system.drain" needs Some(Scope::Admin), costs Cost::Write, leaves Always(Action::Drain);
}

#[cfg(test)]
mod tests {
    use super::UseCase;
    use std::collections::HashSet;

    #[test]
    fn every_use_case_has_a_name_of_its_own() {
        let names: HashSet<_> = UseCase::ALL.iter().map(|case| case.as_str()).collect();
        assert_eq!(names.len(), UseCase::ALL.len());
    }
}
