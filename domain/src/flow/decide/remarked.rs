//! Decides remarks, which workers send beside a report or an outcome. Cost: O(events) beyond that of the command
//! itself.

use super::Decision;
use crate::flow::command::{Capacity, Command};
use crate::flow::event::{
    Event, Remarks, TaskCancelled, TaskCompleted, TaskFailed, TaskProgressed,
};
use crate::flow::state::Flow;
use crate::{TaskId, Timestamp};

/// Decides what was said, and puts the remarks into the event of the task that it is about.
pub(super) fn decide(
    flow: &Flow,
    said: &Command,
    remarks: &Remarks,
    now: Timestamp,
    capacity: &dyn Capacity,
) -> Decision {
    let (mut events, done) = flow.decide(said, now, capacity)?;
    if let Some(task) = subject(said) {
        // Remarks are worth an event, even if nothing else has changed.
        if let Command::Report {
            attempt, progress, ..
        } = said
            && events.is_empty()
        {
            events.push(Event::TaskProgressed(TaskProgressed {
                task_id: task,
                attempt: *attempt,
                progress: *progress,
                message: None,
                remarks: None,
            }));
        }
        attach(&mut events, task, remarks);
    }
    Ok((events, done))
}

/// The task whose event takes remarks.
const fn subject(said: &Command) -> Option<TaskId> {
    match said {
        Command::Report { task, .. }
        | Command::Complete { task, .. }
        | Command::Fail { task, .. }
        | Command::FailBreached { task, .. }
        | Command::Cancel { task, .. } => Some(*task),
        Command::Create(_)
        | Command::Execute(_)
        | Command::Update(_)
        | Command::Delete { .. }
        | Command::Append(_)
        | Command::Remarked { .. }
        | Command::RejectClaim { .. }
        | Command::RejectCompletion { .. }
        | Command::Suspend(_)
        | Command::Respond(_)
        | Command::Receive(_)
        | Command::CancelRun(_)
        | Command::Claim(_)
        | Command::Release { .. }
        | Command::EndLease { .. }
        | Command::Recover { .. }
        | Command::Wake
        | Command::Archive(_) => None,
    }
}

fn attach(events: &mut [Event], task: TaskId, remarks: &Remarks) {
    let of_task = events.iter_mut().filter(|it| it.task_id() == Some(task));
    for event in of_task {
        if let Event::TaskProgressed(TaskProgressed { remarks: place, .. })
        | Event::TaskCompleted(TaskCompleted { remarks: place, .. })
        | Event::TaskFailed(TaskFailed { remarks: place, .. })
        | Event::TaskCancelled(TaskCancelled { remarks: place, .. }) = event
        {
            *place = Some(remarks.clone());
        }
    }
}
