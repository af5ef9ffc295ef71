//! `tasks.execute` and `tasks.retry`. Cost: O(covered tasks + their edges).

use super::{Decision, create, find};
use crate::flow::command::{Capacity, Done, Execute};
use crate::flow::event::{Event, RequeueReason, RunKind, RunStarted, TaskRequeued};
use crate::flow::rejection::{Kind, Rejection};
use crate::flow::state::{Flow, NONE};
use crate::limits;
use crate::task::Status;
use crate::task::call::{self, NewTask};
use crate::{Timestamp, Violation};
use hashbrown::HashSet;
use serde_json::Value;

pub(super) fn execute(
    flow: &Flow,
    command: &Execute,
    now: Timestamp,
    capacity: &dyn Capacity,
) -> Decision {
    let mut events = Vec::new();
    let extended;
    let flow = if command.create.is_empty() {
        flow
    } else {
        refuse_passed_new(&command.create, now)?;
        create::check(flow, &command.create)?;
        events = create::events(flow, &command.create);
        let mut copy = flow.clone();
        events.iter().for_each(|event| copy.apply(event, now));
        extended = copy;
        &extended
    };
    let root = find(flow, "task_id", command.task)?;
    let covered = match command.kind {
        RunKind::Execute => flow.coverage(root),
        RunKind::Retry if flow.at(root).status != Status::Failed => {
            return Err(super::wrong_status(
                Kind::InvalidTransition,
                flow.at(root),
                "a failed task",
            ));
        }
        RunKind::Retry => flow.retry_coverage(root),
    };
    let runs = |i: &&u32| matches!(flow.at(**i).status, Status::Pending | Status::Failed);
    refuse_passed_deadlines(flow, covered.iter().filter(runs), now)?;
    if !command.allow_unknown_executors {
        refuse_unknown_executors(flow, command, covered.iter().filter(runs), capacity)?;
    }
    if let Some(&busy) = covered
        .iter()
        .find(|&&i| flow.at(i).run != NONE && flow.at(i).status != Status::Completed)
    {
        let id = Value::String(flow.at(busy).id.to_string());
        let fault = Violation::of(
            "task_id",
            "An active run covers the task",
            "tasks that no active run covers",
            &id,
        );
        return Err(Rejection::one(Kind::AlreadyExecuting, fault));
    }
    if !covered.iter().any(|i| runs(&i)) {
        let id = Value::String(command.task.to_string());
        let fault = Violation::of(
            "task_id",
            "Nothing to execute",
            "a task with something pending or failed in it",
            &id,
        );
        return Err(Rejection::one(Kind::InvalidTransition, fault));
    }
    events.push(Event::RunStarted(RunStarted {
        run_id: command.run_id,
        task_id: command.task,
        kind: command.kind,
        covers: ranges(&covered),
        allow_unknown_executors: command.allow_unknown_executors,
        executor_wait_ms: command.executor_wait_ms,
        callback: command.callback,
    }));
    for &i in covered
        .iter()
        .filter(|&&i| flow.at(i).status == Status::Failed)
    {
        events.push(Event::TaskRequeued(TaskRequeued {
            task_id: flow.at(i).id,
            run_id: command.run_id,
            reason: RequeueReason::Rerun,
            next_attempt_at: None,
        }));
    }
    Ok((events, Done::Status(flow.at(root).status)))
}

/// A value that is wrong in itself is told before faults of the tree and the graph.
fn refuse_passed_new(tasks: &[NewTask], now: Timestamp) -> Result<(), Rejection> {
    let specifications = tasks.iter().map(|t| (t.path.as_slice(), &t.specification));
    let faults = call::passed_deadlines(specifications, now);
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Rejection::new(Kind::Invalid, faults))
    }
}

fn refuse_passed_deadlines<'a>(
    flow: &Flow,
    tasks: impl Iterator<Item = &'a u32>,
    now: Timestamp,
) -> Result<(), Rejection> {
    let faults: Vec<_> = tasks
        .filter(|&&i| flow.at(i).effective_deadline <= now)
        .take(limits::VIOLATIONS_MAX)
        .map(|&i| {
            let task = flow.at(i);
            let reason = format!("Deadline of task `{}` has passed", task.id);
            let actual = Value::String(task.effective_deadline.to_string());
            Violation::of("deadline", reason, "a time in the future", &actual)
        })
        .collect();
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Rejection::new(Kind::Invalid, faults))
    }
}

fn refuse_unknown_executors<'a>(
    flow: &Flow,
    command: &Execute,
    tasks: impl Iterator<Item = &'a u32>,
    capacity: &dyn Capacity,
) -> Result<(), Rejection> {
    let mut known = HashSet::new();
    let mut faults = Vec::new();
    for &i in tasks {
        let task = flow.at(i);
        if task.is_group() || known.contains(&task.method) || faults.len() == limits::VIOLATIONS_MAX
        {
            continue;
        }
        let method = flow
            .methods
            .text(task.method)
            .expect("a task with a method has its name");
        if capacity.knows(method) {
            known.insert(task.method);
            continue;
        }
        let written = command
            .create
            .iter()
            .find(|t| t.id == task.id)
            .map(|t| t.path.clone())
            .unwrap_or_default();
        let path: Vec<_> = written
            .into_iter()
            .chain(["schemas".into(), "method".into()])
            .collect();
        let reason = format!("Executor of task `{}` not found", task.id);
        let expected = "the name of an executor (`system.executors` lists them)";
        faults.push(Violation::new(
            &path,
            reason,
            expected,
            &Value::from(method),
        ));
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Rejection::new(Kind::ExecutorNotFound, faults))
    }
}

/// Ascending ordinals as ranges, both ends included.
fn ranges(ordinals: &[u32]) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &i in ordinals {
        match ranges.last_mut() {
            Some((_, to)) if *to + 1 == i => *to = i,
            _ => ranges.push((i, i)),
        }
    }
    ranges
}
