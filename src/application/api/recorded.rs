//! What each use case leaves in the audit log; one that does not say it does not compile.
//!
//! Whatever changes something has an action, under which it is noted when credentials lack a scope for it. Whether it
//! has a row when it is done depends on what else tells of it: a change of a caller's own tasks is an event with its
//! actor.

use super::UseCase;
use taskledger_auth::Action;

/// What a use case leaves in the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// A change that has a row whoever makes it, written with it or before it.
    Always(Action),
    /// A change that has a row, written before it, where a caller with `users:any` makes it of what may belong to
    /// somebody else.
    OfOthers(Action),
    /// What is noted only when it is refused for lack of a scope: another row or an event says that it was done.
    Refusals(Action),
    /// A read that is noted where a caller with `users:any` makes it of what belongs to somebody else.
    Reads(Action),
    /// Nothing: it shows what is the caller's own or everybody's, and changes nothing.
    Nothing,
}

impl Recorded {
    /// The action of a change.
    #[must_use]
    pub const fn change(self) -> Option<Action> {
        match self {
            Self::Always(action) | Self::OfOthers(action) | Self::Refusals(action) => Some(action),
            Self::Reads(_) | Self::Nothing => None,
        }
    }
}

impl UseCase {
    /// What it leaves in the audit log; of those that may be one of two things, the first.
    #[must_use]
    pub const fn recorded(self) -> Recorded {
        use Recorded::{Always, Nothing, OfOthers, Reads, Refusals};
        match self {
            Self::CreateTasks => OfOthers(Action::TaskCreate),
            Self::ExecuteTasks | Self::StartRun => OfOthers(Action::TaskExecute),
            Self::RetryTask => OfOthers(Action::TaskRetry),
            // Or `FlowOwner`.
            Self::UpdateTask => OfOthers(Action::TaskUpdate),
            Self::DeleteTasks => OfOthers(Action::TaskDelete),
            Self::CancelTasks => OfOthers(Action::TaskCancel),
            Self::CopyTasks => OfOthers(Action::TaskCopy),
            Self::RespondTask => OfOthers(Action::TaskRespond),
            Self::CancelRun => OfOthers(Action::RunCancel),
            Self::MessageRun => OfOthers(Action::RunMessage),
            Self::ReportRun => OfOthers(Action::RunReport),
            // Whose tasks a worker is given is noted by their owner when they are handed out.
            Self::ClaimTasks => Refusals(Action::TaskClaim),
            // By the lease of a claim, which only its principal holds.
            Self::RenewLease
            | Self::CompleteTask
            | Self::FailTask
            | Self::ReleaseTask
            | Self::SuspendTask => Refusals(Action::TaskWork),
            Self::SaveWorkflow => OfOthers(Action::WorkflowSave),
            Self::DeleteWorkflow => OfOthers(Action::WorkflowDelete),
            Self::GetWorkflow
            | Self::ListWorkflows
            | Self::ListWorkflowVersions
            | Self::DiffWorkflow => Reads(Action::WorkflowRead),
            Self::CreateSchedule => Always(Action::ScheduleCreate),
            Self::UpdateSchedule => Always(Action::ScheduleUpdate),
            // Or `ScheduleResume`.
            Self::PauseSchedule => Always(Action::SchedulePause),
            Self::DeleteSchedule => Always(Action::ScheduleDelete),
            Self::RunSchedule => Always(Action::ScheduleRun),
            Self::GetSchedule | Self::ListSchedules => Reads(Action::ScheduleRead),
            Self::GetTask
            | Self::ListTasks
            | Self::GetTree
            | Self::GetChildren
            | Self::ReadHistory
            | Self::QueryEvents
            | Self::ExplainTask
            | Self::ReadProgress
            | Self::SubscribeTask
            | Self::WatchEvents
            | Self::WatchRun
            | Self::ReadRun
            | Self::ListRuns
            | Self::FollowRun
            | Self::ReadReports
            | Self::AwaitRun
            | Self::ReadSibling => Reads(Action::FlowRead),
            Self::DeclareMethod => OfOthers(Action::MethodDeclare),
            Self::UndeclareMethod => OfOthers(Action::MethodUndeclare),
            Self::ListMethods => Reads(Action::MethodRead),
            Self::DrainWorker => OfOthers(Action::WorkerDrain),
            Self::ListWorkers => Reads(Action::WorkerRead),
            Self::CreateWebhook => Always(Action::WebhookCreate),
            Self::UpdateWebhook => Always(Action::WebhookUpdate),
            Self::DeleteWebhook => Always(Action::WebhookDelete),
            Self::EnableWebhook => Always(Action::WebhookEnable),
            Self::DisableWebhook => Always(Action::WebhookDisable),
            Self::RotateWebhookSecret => Always(Action::WebhookRotate),
            Self::ReadWebhookSecret => Always(Action::SecretShown),
            Self::TestWebhook => OfOthers(Action::WebhookTest),
            Self::Redeliver => OfOthers(Action::WebhookRedeliver),
            Self::RecoverDeliveries => OfOthers(Action::WebhookRecover),
            Self::GetWebhook | Self::ListWebhooks | Self::ListDeliveries => {
                Reads(Action::WebhookRead)
            }
            Self::SetSecret => Always(Action::SecretSet),
            Self::DeleteSecret => Always(Action::SecretDelete),
            Self::ListSecrets => Reads(Action::SecretRead),
            Self::CreateToken => Always(Action::TokenCreate),
            Self::RotateToken => Always(Action::TokenRotate),
            Self::RevokeToken => Always(Action::TokenRevoke),
            // Or `SubjectDeny`.
            Self::DenyJwt => Always(Action::JwtDeny),
            Self::RebuildReadModels => Always(Action::Rebuild),
            Self::DrainServer => Always(Action::Drain),
            // They store nothing, and show what the call itself brings.
            Self::ValidateWorkflow | Self::DryRunWorkflow => Nothing,
            // An inbox is the principal's own.
            Self::ReadInbox => Nothing,
            // Administrators manage the tokens of all; no list shows a secret.
            Self::ListTokens | Self::ReadAudit => Nothing,
            Self::WhoAmI
            | Self::ReadHealth
            | Self::CheckReadiness
            | Self::ReadMetrics
            | Self::ListExecutors => Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_action_is_of_a_use_case_or_of_the_server_itself() {
        let of_use_cases: HashSet<_> = UseCase::ALL
            .iter()
            .filter_map(|case| match case.recorded() {
                Recorded::Always(action)
                | Recorded::OfOthers(action)
                | Recorded::Refusals(action)
                | Recorded::Reads(action) => Some(action),
                Recorded::Nothing => None,
            })
            .collect();
        let others = [
            // The second of those that may be two things.
            Action::SubjectDeny,
            Action::ScheduleResume,
            Action::FlowOwner,
            // No use case.
            Action::LoginFailed,
            Action::SecretReseal,
            Action::Retention,
            Action::Import,
            Action::Start,
        ];
        for action in Action::ALL {
            let is_other = others.contains(action);
            assert_ne!(of_use_cases.contains(action), is_other, "{action:?}");
        }
    }
}
