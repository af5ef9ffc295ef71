//! Estimates how much work a command is, before it is carried out.

use taskledger_domain::flow::Command;

/// How many tasks a command may touch in a flow of `flow_tasks`. Cost: O(1).
pub(super) fn reach(command: &Command, flow_tasks: usize) -> usize {
    match command.plain() {
        Command::Create(tasks) => tasks.len(),
        Command::Execute(execute) => flow_tasks + execute.create.len(),
        Command::Delete { cascade, .. } => flow_tasks * usize::from(*cascade),
        Command::Cancel { .. }
        | Command::CancelRun(_)
        | Command::Recover { .. }
        | Command::Archive(_) => flow_tasks,
        // What follows from one outcome is mostly little; a wake-up finds little that is due.
        Command::Update(_)
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
        | Command::Receive(_)
        | Command::Claim(_)
        | Command::Release { .. }
        | Command::EndLease { .. }
        | Command::Wake => 1,
    }
}
