//! Which use cases are rows of the audit log, so that what is refused of them for lack of a scope is a row too.

use crate::application::authorize::UseCase;
use taskledger_auth::Action;

/// What a use case is in the audit log; of those that may be one of two things, the first.
pub(super) fn action_of(use_case: UseCase) -> Option<Action> {
    let actions = Action::ALL.iter().copied();
    let mut of_it = actions.filter(|action| changed_by(*action) == Some(use_case));
    of_it.next()
}

/// The use case that an action is a row of; `None`: it is no change that a caller asks the server for.
const fn changed_by(action: Action) -> Option<UseCase> {
    match action {
        Action::TokenCreate => Some(UseCase::CreateToken),
        Action::TokenRotate => Some(UseCase::RotateToken),
        Action::TokenRevoke => Some(UseCase::RevokeToken),
        Action::JwtDeny | Action::SubjectDeny => Some(UseCase::DenyJwt),
        Action::SecretSet => Some(UseCase::SetSecret),
        Action::SecretDelete => Some(UseCase::DeleteSecret),
        Action::SecretShown => Some(UseCase::ReadWebhookSecret),
        Action::WebhookCreate => Some(UseCase::CreateWebhook),
        Action::WebhookUpdate => Some(UseCase::UpdateWebhook),
        Action::ScheduleCreate => Some(UseCase::CreateSchedule),
        Action::ScheduleUpdate => Some(UseCase::UpdateSchedule),
        Action::SchedulePause | Action::ScheduleResume => Some(UseCase::PauseSchedule),
        Action::ScheduleDelete => Some(UseCase::DeleteSchedule),
        Action::ScheduleRun => Some(UseCase::RunSchedule),
        Action::MethodUndeclare => Some(UseCase::UndeclareMethod),
        Action::Rebuild => Some(UseCase::RebuildReadModels),
        Action::Drain => Some(UseCase::DrainServer),
        // Reads, which are rows for those who see all users only.
        Action::FlowRead
        | Action::TaskClaim
        | Action::ScheduleRead
        | Action::WorkflowRead
        | Action::WebhookRead
        // No use case.
        | Action::LoginFailed
        | Action::Retention
        | Action::Import
        | Action::Start => None,
    }
}
