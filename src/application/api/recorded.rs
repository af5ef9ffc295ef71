//! The rows that a use case leaves in the audit log: a column of its row in `use_case.rs`.
//!
//! Whatever changes something has an action, under which it is noted when credentials lack a scope for it. Whether it
//! has a row when it is done depends on what else tells of it: a change of a caller's own tasks is an event with its
//! actor.

use taskledger_auth::Action;

/// The rows that a use case leaves in the audit log.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::api::UseCase;
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
            Action::LogAccepted,
            Action::Start,
        ];
        for action in Action::ALL {
            let is_other = others.contains(action);
            assert_ne!(of_use_cases.contains(action), is_other, "{action:?}");
        }
    }
}
