//! What a caller can ask for, the scope that each of it needs and what it costs; one without does not compile. The list
//! is closed, so that a matrix of who may do what can be made from it and checked for gaps.
//!
//! Costs are in units of the rate: a read 1, a change 5 and 1 for each further task; of a copy too, whose tasks are
//! counted when it is known how many there are (`copying.rs`). Workers call often and take load away: looking for work
//! and ending it cost 1, holding it nothing.

use taskledger_auth::Scope;

/// What a call costs, but for its further tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// Nothing: it takes load away, reports how the server is, or is part of a call that was counted.
    Free,
    /// A read.
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
    ($($(#[$doc:meta])* $variant:ident = $name:literal needs $scope:expr, costs $cost:expr;)+) => {
        /// Something that a caller can ask for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum UseCase {
            $($(#[$doc])* $variant),+
        }

        impl UseCase {
            /// All of them.
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
        }
    };
}

use_cases! {
    /// Create tasks.
    CreateTasks = "tasks.create" needs Some(Scope::TasksWrite), costs Cost::Write;
    /// Run new or stored tasks.
    ExecuteTasks = "tasks.execute" needs Some(Scope::TasksRun), costs Cost::Write;
    /// Run a failed task again.
    RetryTask = "tasks.retry" needs Some(Scope::TasksRun), costs Cost::Write;
    /// Begin a run by a message.
    StartRun = "runs.start" needs Some(Scope::TasksRun), costs Cost::Write;
    /// Cancel a run.
    CancelRun = "runs.cancel" needs Some(Scope::TasksRun), costs Cost::Free;
    /// Say something to a run that waits for it.
    MessageRun = "runs.message" needs Some(Scope::TasksRun), costs Cost::Read;
    /// Change a task.
    UpdateTask = "tasks.update" needs Some(Scope::TasksWrite), costs Cost::Write;
    /// Delete tasks.
    DeleteTasks = "tasks.delete" needs Some(Scope::TasksWrite), costs Cost::Write;
    /// Cancel tasks.
    CancelTasks = "tasks.cancel" needs Some(Scope::TasksRun), costs Cost::Free;
    /// Copy tasks.
    CopyTasks = "tasks.copy" needs Some(Scope::TasksWrite), costs Cost::Write;
    /// Check a workflow document, and store nothing.
    ValidateWorkflow = "workflows.validate" needs Some(Scope::TasksRead), costs Cost::Write;
    /// Play a run of a workflow document, and store nothing.
    DryRunWorkflow = "workflows.dry_run" needs Some(Scope::TasksRead), costs Cost::Write;
    /// Keep a workflow document by its name: one's own, or with `users:any` anybody's.
    SaveWorkflow = "workflows.save" needs Some(Scope::TasksWrite), costs Cost::Write;
    /// Read a workflow document that is kept.
    GetWorkflow = "workflows.get" needs Some(Scope::TasksRead), costs Cost::Read;
    /// Read the names of workflow documents.
    ListWorkflows = "workflows.list" needs Some(Scope::TasksRead), costs Cost::Read;
    /// Read what happened to a workflow document.
    ListWorkflowVersions = "workflows.versions" needs Some(Scope::TasksRead), costs Cost::Read;
    /// Compare versions of a workflow document.
    DiffWorkflow = "workflows.diff" needs Some(Scope::TasksRead), costs Cost::Write;
    /// Delete a workflow document.
    DeleteWorkflow = "workflows.delete" needs Some(Scope::TasksWrite), costs Cost::Write;
    /// Make a schedule: one's own, or with `users:any` anybody's.
    CreateSchedule = "schedules.create" needs Some(Scope::TasksRun), costs Cost::Write;
    /// Read a schedule.
    GetSchedule = "schedules.get" needs Some(Scope::TasksRead), costs Cost::Read;
    /// Read the names of schedules.
    ListSchedules = "schedules.list" needs Some(Scope::TasksRead), costs Cost::Read;
    /// Change a schedule.
    UpdateSchedule = "schedules.update" needs Some(Scope::TasksRun), costs Cost::Write;
    /// Pause a schedule, or resume it.
    PauseSchedule = "schedules.pause" needs Some(Scope::TasksRun), costs Cost::Write;
    /// Delete a schedule.
    DeleteSchedule = "schedules.delete" needs Some(Scope::TasksRun), costs Cost::Write;
    /// Start a run of a schedule now.
    RunSchedule = "schedules.run_now" needs Some(Scope::TasksRun), costs Cost::Write;
    /// Read how far a run has come.
    ReadProgress = "workflows.progress" needs Some(Scope::TasksRead), costs Cost::Read;
    /// Read a task.
    GetTask = "tasks.get" needs Some(Scope::TasksRead), costs Cost::Read;
    /// Read tasks that match a filter.
    ListTasks = "tasks.list" needs Some(Scope::TasksRead), costs Cost::Read;
    /// Read a task with everything below it.
    GetTree = "tasks.tree" needs Some(Scope::TasksRead), costs Cost::Read;
    /// Read the children of a task.
    GetChildren = "tasks.children" needs Some(Scope::TasksRead), costs Cost::Read;
    /// Read the events of a task or a flow.
    ReadHistory = "tasks.history" needs Some(Scope::TasksRead), costs Cost::Read;
    /// Read what happened in all flows that the caller sees.
    QueryEvents = "events.query" needs Some(Scope::TasksRead), costs Cost::Read;
    /// Read why a task stands as it does.
    ExplainTask = "tasks.explain" needs Some(Scope::TasksRead), costs Cost::Read;
    /// Follow a task until nothing runs.
    SubscribeTask = "tasks.subscribe" needs Some(Scope::TasksRead), costs Cost::Read;
    /// Follow events by filter.
    WatchEvents = "events.watch" needs Some(Scope::TasksRead), costs Cost::Read;
    /// Follow a run to its end: the stream of a call that began it.
    WatchRun = "runs.watch" needs Some(Scope::TasksRead), costs Cost::Free;
    /// Read a run.
    ReadRun = "runs.get" needs Some(Scope::TasksRead), costs Cost::Read;
    /// Read runs that match a filter.
    ListRuns = "runs.list" needs Some(Scope::TasksRead), costs Cost::Read;
    /// Follow how a run stands and what it returns.
    FollowRun = "runs.follow" needs Some(Scope::TasksRead), costs Cost::Read;
    /// Have a run reported to an address, or not any more.
    ReportRun = "runs.report" needs Some(Scope::TasksRun), costs Cost::Write;
    /// Read where a run is reported.
    ReadReports = "runs.reports" needs Some(Scope::TasksRead), costs Cost::Read;
    /// Wait until a run has ended or waits for its caller.
    AwaitRun = "runs.await" needs Some(Scope::TasksRead), costs Cost::Read;
    /// Read how tasks ended and go on that one has published through the agent broker.
    ReadInbox = "broker.inbox" needs Some(Scope::TasksRead), costs Cost::Read;
    /// Claim tasks to work on them outside the server.
    ClaimTasks = "tasks.claim" needs Some(Scope::Worker), costs Cost::Read;
    /// Hold a claimed task for longer, and say how far it is.
    RenewLease = "tasks.renew" needs Some(Scope::Worker), costs Cost::Free;
    /// Complete a claimed task.
    CompleteTask = "tasks.complete" needs Some(Scope::Worker), costs Cost::Read;
    /// Fail a claimed task.
    FailTask = "tasks.fail" needs Some(Scope::Worker), costs Cost::Read;
    /// Give a claimed task back.
    ReleaseTask = "tasks.release" needs Some(Scope::Worker), costs Cost::Read;
    /// Have a claimed task wait for a person.
    SuspendTask = "tasks.suspend" needs Some(Scope::Worker), costs Cost::Read;
    /// Answer what a task has asked a person.
    RespondTask = "tasks.respond" needs Some(Scope::TasksRun), costs Cost::Read;
    /// Read the result of a task beside a claimed one.
    ReadSibling = "tasks.sibling_output" needs Some(Scope::Worker), costs Cost::Read;
    /// Declare a method that workers carry out.
    DeclareMethod = "workers.declare" needs Some(Scope::Worker), costs Cost::Write;
    /// Take the declaration of a method back.
    UndeclareMethod = "workers.undeclare" needs Some(Scope::Worker), costs Cost::Write;
    /// Read the methods of workers.
    ListMethods = "workers.methods" needs Some(Scope::Worker), costs Cost::Read;
    /// Read which workers there are: one's own, or with `users:any` all.
    ListWorkers = "workers.list" needs Some(Scope::Worker), costs Cost::Read;
    /// Give a worker no more work: one's own, or any with the scope `admin`.
    DrainWorker = "workers.drain" needs Some(Scope::Worker), costs Cost::Write;
    /// Create a webhook.
    CreateWebhook = "webhooks.create" needs Some(Scope::Webhooks), costs Cost::Write;
    /// Read a webhook.
    GetWebhook = "webhooks.get" needs Some(Scope::Webhooks), costs Cost::Read;
    /// Read webhooks.
    ListWebhooks = "webhooks.list" needs Some(Scope::Webhooks), costs Cost::Read;
    /// Change a webhook.
    UpdateWebhook = "webhooks.update" needs Some(Scope::Webhooks), costs Cost::Write;
    /// Delete a webhook.
    DeleteWebhook = "webhooks.delete" needs Some(Scope::Webhooks), costs Cost::Write;
    /// Enable a webhook.
    EnableWebhook = "webhooks.enable" needs Some(Scope::Webhooks), costs Cost::Write;
    /// Disable a webhook.
    DisableWebhook = "webhooks.disable" needs Some(Scope::Webhooks), costs Cost::Write;
    /// Give a webhook a new secret.
    RotateWebhookSecret = "webhooks.rotate_secret" needs Some(Scope::Webhooks), costs Cost::Write;
    /// Read the secrets of a webhook.
    ReadWebhookSecret = "webhooks.secret" needs Some(Scope::Webhooks), costs Cost::Write;
    /// Send a test to a webhook.
    TestWebhook = "webhooks.test" needs Some(Scope::Webhooks), costs Cost::Write;
    /// Read what was sent to webhooks.
    ListDeliveries = "webhooks.deliveries" needs Some(Scope::Webhooks), costs Cost::Read;
    /// Send something again.
    Redeliver = "webhooks.redeliver" needs Some(Scope::Webhooks), costs Cost::Write;
    /// Take up deliveries that were given up.
    RecoverDeliveries = "webhooks.recover" needs Some(Scope::Webhooks), costs Cost::Write;
    /// Set a secret that tasks can name: one's own, or with `users:any` anybody's.
    SetSecret = "secrets.set" needs Some(Scope::TasksWrite), costs Cost::Write;
    /// Read the names of secrets.
    ListSecrets = "secrets.list" needs Some(Scope::TasksWrite), costs Cost::Read;
    /// Delete a secret.
    DeleteSecret = "secrets.delete" needs Some(Scope::TasksWrite), costs Cost::Write;
    /// Create a token.
    CreateToken = "tokens.create" needs Some(Scope::Admin), costs Cost::Write;
    /// Read one's own tokens, or all with the scope `admin`.
    ListTokens = "tokens.list" needs None, costs Cost::Read;
    /// Give a token a new secret: one's own, or any with the scope `admin`.
    RotateToken = "tokens.rotate" needs None, costs Cost::Write;
    /// Revoke a token: one's own, or any with the scope `admin`.
    RevokeToken = "tokens.revoke" needs None, costs Cost::Write;
    /// Refuse JWTs of an issuer before they expire.
    DenyJwt = "tokens.deny" needs Some(Scope::Admin), costs Cost::Write;
    /// Read what was done by whom.
    ReadAudit = "audit.list" needs Some(Scope::Admin), costs Cost::Read;
    /// Read who one is.
    WhoAmI = "system.whoami" needs None, costs Cost::Free;
    /// Read how the server is.
    ReadHealth = "system.health" needs None, costs Cost::Free;
    /// Read whether the server can take calls.
    CheckReadiness = "system.readiness" needs None, costs Cost::Free;
    /// Read the figures for monitoring.
    ReadMetrics = "system.metrics" needs Some(Scope::Metrics), costs Cost::Free;
    /// Read which executors there are.
    ListExecutors = "system.executors" needs None, costs Cost::Read;
    /// Make the read models anew.
    RebuildReadModels = "system.rebuild" needs Some(Scope::Admin), costs Cost::Write;
    /// Have a server begin nothing any more, or again.
    DrainServer = "system.drain" needs Some(Scope::Admin), costs Cost::Write;
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
