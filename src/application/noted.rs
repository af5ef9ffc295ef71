//! Of whom the audit log says that their flows are changed by a call, for the turn in which that is decided.
//!
//! The entry is written before the command is sent, by an owner who was looked up then. The turn compares: what became
//! somebody else's in between is not changed without an entry about that user.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use taskledger_domain::flow::{Command, Flow};
use taskledger_domain::task::call::NewTask;

/// The users whose flows a call may change, the caller among them; `None` stands for flows of nobody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Noted(Arc<[Option<Arc<str>>]>);

impl Noted {
    /// The caller's own flows, and those of these users.
    pub(super) fn of(own: &Arc<str>, others: impl IntoIterator<Item = Option<Arc<str>>>) -> Self {
        let own = Some(own.clone());
        Self(std::iter::once(own).chain(others).collect())
    }

    /// Whether the command changes a flow of one of them: the one that it begins, or the one that there is. Cost:
    /// O(users).
    pub(super) fn covers(&self, flow: &Flow, command: &Command) -> bool {
        let owner = match begun_by(command) {
            Some(root) => root.user_id.as_deref(),
            // There is nothing that could be changed.
            None if flow.version() == 0 => return true,
            None => flow.owner(),
        };
        self.0.iter().any(|user| user.as_deref() == owner)
    }
}

/// The root of the flow that a command begins. Parents stand before children.
fn begun_by(command: &Command) -> Option<&NewTask> {
    let tasks = match command {
        Command::Create(tasks) => tasks,
        Command::Execute(execute) => &execute.create,
        Command::Update(_)
        | Command::Delete { .. }
        | Command::Cancel { .. }
        | Command::CancelRun(_)
        | Command::Receive(_)
        | Command::Complete { .. }
        | Command::Fail { .. }
        | Command::FailBreached { .. }
        | Command::Report { .. }
        | Command::Append(_)
        | Command::Remarked { .. }
        | Command::RejectCompletion { .. }
        | Command::RejectClaim { .. }
        | Command::Suspend(_)
        | Command::Respond(_)
        | Command::Claim(_)
        | Command::Release { .. }
        | Command::EndLease { .. }
        | Command::Recover { .. }
        | Command::Wake
        | Command::Archive(_) => return None,
    };
    tasks.first().filter(|task| task.parent.is_none())
}
