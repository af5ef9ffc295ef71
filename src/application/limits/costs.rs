//! What calls cost, in units of the rate: a read 1, a change 5 and 1 for each further task; of a copy too, whose tasks
//! are counted when it is known how many there are (`copying.rs`). Workers call often and take
//! load away: looking for work and ending it cost 1, holding it nothing.

use crate::application::authorize::UseCase;

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

/// What a call for this use case costs.
#[must_use]
pub const fn cost(use_case: UseCase) -> Cost {
    match use_case {
        // `WatchRun` is the stream of a call that began a run.
        UseCase::CancelTasks
        | UseCase::CancelRun
        | UseCase::RenewLease
        | UseCase::WatchRun
        | UseCase::ReadHealth
        | UseCase::WhoAmI
        | UseCase::ReadMetrics
        | UseCase::CheckReadiness => Cost::Free,
        UseCase::GetTask
        | UseCase::GetWorkflow
        | UseCase::ListWorkflows
        | UseCase::ListWorkflowVersions
        | UseCase::GetSchedule
        | UseCase::ListSchedules
        | UseCase::ReadProgress
        | UseCase::ListTasks
        | UseCase::GetTree
        | UseCase::GetChildren
        | UseCase::ReadHistory
        | UseCase::QueryEvents
        | UseCase::ExplainTask
        | UseCase::SubscribeTask
        | UseCase::WatchEvents
        | UseCase::ReadInbox
        | UseCase::ReadRun
        | UseCase::ListRuns
        | UseCase::FollowRun
        | UseCase::AwaitRun
        | UseCase::ReadReports
        | UseCase::MessageRun
        | UseCase::GetWebhook
        | UseCase::ListWebhooks
        | UseCase::ReadWebhookSecret
        | UseCase::ListDeliveries
        | UseCase::ListTokens
        | UseCase::ReadAudit
        | UseCase::ListSecrets
        | UseCase::ListExecutors
        | UseCase::ClaimTasks
        | UseCase::ReadSibling
        | UseCase::CompleteTask
        | UseCase::FailTask
        | UseCase::ReleaseTask
        | UseCase::SuspendTask
        | UseCase::RespondTask
        | UseCase::ListMethods
        | UseCase::ListWorkers => Cost::Read,
        UseCase::ValidateWorkflow
        | UseCase::DryRunWorkflow
        | UseCase::DiffWorkflow
        | UseCase::SaveWorkflow
        | UseCase::DeleteWorkflow
        | UseCase::CreateSchedule
        | UseCase::UpdateSchedule
        | UseCase::PauseSchedule
        | UseCase::DeleteSchedule
        | UseCase::RunSchedule
        | UseCase::CreateTasks
        | UseCase::ExecuteTasks
        | UseCase::StartRun
        | UseCase::ReportRun
        | UseCase::RetryTask
        | UseCase::UpdateTask
        | UseCase::DeleteTasks
        | UseCase::CopyTasks
        | UseCase::CreateWebhook
        | UseCase::UpdateWebhook
        | UseCase::DeleteWebhook
        | UseCase::EnableWebhook
        | UseCase::DisableWebhook
        | UseCase::RotateWebhookSecret
        | UseCase::TestWebhook
        | UseCase::Redeliver
        | UseCase::RecoverDeliveries
        | UseCase::SetSecret
        | UseCase::DeleteSecret
        | UseCase::CreateToken
        | UseCase::RotateToken
        | UseCase::RevokeToken
        | UseCase::DenyJwt
        | UseCase::DeclareMethod
        | UseCase::UndeclareMethod
        | UseCase::DrainWorker
        | UseCase::RebuildReadModels
        | UseCase::DrainServer => Cost::Write,
    }
}
