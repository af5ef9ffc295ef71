//! `tasks.execute` and `tasks.retry`. Cost: O(covered tasks + their edges).

use super::{Decision, create, find};
use crate::Timestamp;
use crate::flow::command::{Capacity, Done, Execute, WillRun};
use crate::flow::coverage::Coverage;
use crate::flow::event::{Event, RequeueReason, RunKind, RunStarted, TaskRequeued};
use crate::flow::refusal::{
    CallTask, Fault, Refusal, RunConflict, TransitionFault, UnknownExecutor,
};
use crate::flow::state::Standing;
use crate::flow::state::{Flow, NONE};
use crate::limits;
use crate::task::Status;
use crate::task::call::NewTask;
use hashbrown::HashSet;
use std::sync::Arc;

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
    let root = find(flow, command.task)?;
    if command.kind == RunKind::Retry && flow.at(root).status != Status::Failed {
        let (task, status) = (command.task, flow.at(root).status);
        let fault = TransitionFault::NotFailed { task, status };
        return Err(Refusal::InvalidTransition(vec![fault]).into());
    }
    let Coverage { covered, again } = flow.coverage(root, command.kind, command.include);
    let runs = |i: &&u32| flow.at(**i).status == Status::Pending || again.binary_search(i).is_ok();
    refuse_passed_deadlines(flow, covered.iter().filter(runs), now)?;
    if !command.allow_unknown_executors {
        refuse_unknown_executors(flow, covered.iter().filter(runs), capacity)?;
    }
    if let Some(&busy) = covered
        .iter()
        .find(|&i| flow.at(*i).run != NONE && (flow.at(*i).status != Status::Completed || runs(&i)))
    {
        let task = flow.at(busy).id;
        return Err(Refusal::AlreadyExecuting(vec![RunConflict::Covered { task }]).into());
    }
    if !covered.iter().any(|i| runs(&i)) {
        let fault = TransitionFault::NothingToExecute { task: command.task };
        return Err(Refusal::InvalidTransition(vec![fault]).into());
    }
    events.push(Event::RunStarted(RunStarted {
        run_id: command.run_id,
        task_id: command.task,
        kind: command.kind,
        covers: ranges(&covered),
        allow_unknown_executors: command.allow_unknown_executors,
        executor_wait_ms: command.executor_wait_ms,
        wait_bounds: command.wait_bounds,
        callback: command.callback,
        origin: command.origin.clone(),
    }));
    for &i in &again {
        events.push(Event::TaskRequeued(TaskRequeued {
            task_id: flow.at(i).id,
            run_id: command.run_id,
            reason: RequeueReason::Rerun,
            next_attempt_at: None,
        }));
    }
    let will_run = covered.iter().filter(runs).map(|&i| flow.at(i));
    let will_run = will_run.filter(|task| !task.is_group());
    let will_run = WillRun {
        count: will_run.clone().count() as u32,
        tasks: will_run
            .map(|task| task.id)
            .take(limits::WILL_RUN_LISTED_MAX)
            .collect(),
    };
    Ok((events, Done::Begun(Arc::new(will_run))))
}

/// A value that is wrong in itself is told before faults of the tree and the graph.
fn refuse_passed_new(tasks: &[NewTask], now: Timestamp) -> Result<(), Refusal> {
    let passed = tasks.iter().filter_map(|new| {
        let deadline = new.specification.deadline_passed(now)?;
        let task = CallTask::Id(new.id);
        Some(Fault::NewDeadlinePassed { task, deadline })
    });
    refuse_values(passed.take(limits::VIOLATIONS_MAX).collect())
}

fn refuse_passed_deadlines<'a>(
    flow: &Flow,
    tasks: impl Iterator<Item = &'a u32>,
    now: Timestamp,
) -> Result<(), Refusal> {
    let passed = tasks.filter_map(|&i| {
        let (task, deadline) = (flow.at(i).id, flow.at(i).effective_deadline);
        (deadline <= now).then_some(Fault::DeadlinePassed { task, deadline })
    });
    refuse_values(passed.take(limits::VIOLATIONS_MAX).collect())
}

fn refuse_values(faults: Vec<Fault>) -> Result<(), Refusal> {
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Refusal::Invalid(faults))
    }
}

fn refuse_unknown_executors<'a>(
    flow: &Flow,
    tasks: impl Iterator<Item = &'a u32>,
    capacity: &dyn Capacity,
) -> Result<(), Refusal> {
    let mut known = HashSet::new();
    let mut unknown = Vec::new();
    for &i in tasks {
        let task = flow.at(i);
        if task.is_group()
            || known.contains(&task.line())
            || unknown.len() == limits::VIOLATIONS_MAX
        {
            continue;
        }
        if flow.standing(task.line(), capacity) != Standing::Unknown {
            known.insert(task.line());
            continue;
        }
        let method = flow
            .methods
            .text(task.method)
            .expect("a task with a method has its name");
        let (task, method) = (task.id, method.to_owned());
        unknown.push(UnknownExecutor { task, method });
    }
    if unknown.is_empty() {
        Ok(())
    } else {
        Err(Refusal::ExecutorsNotFound(unknown))
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
