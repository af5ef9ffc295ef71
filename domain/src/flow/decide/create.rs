//! `tasks.create`, and the first half of `tasks.execute` with tasks.
//! Cost: O(new tasks + their dependencies + depth), whatever the flow's size.

use super::Decision;
use crate::flow::command::Done;
use crate::flow::event::{Event, TaskCreated};
use crate::flow::rejection::{Kind, Rejection};
use crate::flow::state::{Flow, NONE};
use crate::limits;
use crate::task::Status;
use crate::task::call::NewTask;
use crate::{RunId, TaskId, Violation};
use hashbrown::HashMap;
use serde_json::Value;

pub(super) fn create(flow: &Flow, tasks: &[NewTask]) -> Decision {
    check(flow, tasks)?;
    Ok((events(flow, tasks), Done::Status(Status::Pending)))
}

/// Judges new tasks, families of faults in their order of precedence.
pub(super) fn check(flow: &Flow, tasks: &[NewTask]) -> Result<(), Rejection> {
    let total = flow.size() + tasks.len();
    if total > limits::TASKS_PER_FLOW_MAX {
        let expected = format!(
            "at most {} tasks in a flow, deleted ones included",
            limits::TASKS_PER_FLOW_MAX
        );
        let fault = Violation::of("tasks", "Flow is too large", expected, &Value::from(total));
        return Err(Rejection::one(Kind::Invalid, fault));
    }
    let local: HashMap<TaskId, usize> = tasks.iter().enumerate().map(|(i, t)| (t.id, i)).collect();
    let (mut taken, mut tree, mut parents, mut missing, mut own) =
        (vec![], vec![], vec![], vec![], vec![]);
    let mut depths = Vec::with_capacity(tasks.len());
    for task in tasks {
        let at = |field: &str| {
            task.path
                .iter()
                .cloned()
                .chain([field.into()])
                .collect::<Vec<_>>()
        };
        let fault = |field: &str, reason: &str, expected: &str, id: TaskId| {
            Violation::new(&at(field), reason, expected, &Value::String(id.to_string()))
        };
        if flow.index.contains_key(&task.id) {
            taken.push(fault(
                "id",
                "Id is taken",
                "an id that no task has or ever had",
                task.id,
            ));
        }
        let depth = match task.parent {
            None => {
                if flow.size() > 0 || !depths.is_empty() {
                    tree.push(fault(
                        "parent_id",
                        "Flow has a root already",
                        "a parent in the flow",
                        task.id,
                    ));
                }
                0
            }
            Some(parent) => match (local.get(&parent), flow.live(parent)) {
                (Some(&p), _) => depths.get(p).map_or(0, |d| d + 1),
                (None, Some(p)) => flow.depth_below(p),
                (None, None) => {
                    parents.push(fault(
                        "parent_id",
                        "Parent task not found",
                        "a task of this flow",
                        parent,
                    ));
                    0
                }
            },
        };
        if depth >= limits::TREE_DEPTH_MAX {
            let expected = format!("a tree of at most {} levels", limits::TREE_DEPTH_MAX);
            tree.push(Violation::new(
                &at("parent_id"),
                "Tree is too deep",
                expected,
                &Value::from(depth + 1),
            ));
        }
        depths.push(depth);
        for (k, dependency) in task.dependencies.iter().enumerate() {
            let path: Vec<_> = task
                .path
                .iter()
                .cloned()
                .chain(["dependencies".into(), k.into(), "id".into()])
                .collect();
            let id = Value::String(dependency.id.to_string());
            if dependency.id == task.id {
                own.push((
                    task.id,
                    Violation::new(&path, "Task cannot depend on itself", "another task", &id),
                ));
            } else if missing.len() < limits::VIOLATIONS_MAX
                && !local.contains_key(&dependency.id)
                && flow.live(dependency.id).is_none()
            {
                missing.push(Violation::new(
                    &path,
                    "Dependency task not found",
                    "a task of the same flow",
                    &id,
                ));
            }
        }
    }
    let families = [
        (Kind::Invalid, taken),
        (Kind::InvalidTree, tree),
        (Kind::InvalidParent, parents),
        (Kind::InvalidDependency, missing),
    ];
    for (kind, mut faults) in families {
        if !faults.is_empty() {
            faults.truncate(limits::VIOLATIONS_MAX);
            return Err(Rejection::new(kind, faults));
        }
    }
    if let Some((id, _)) = own.first() {
        let id = *id;
        let faults = own
            .into_iter()
            .map(|(_, fault)| fault)
            .take(limits::VIOLATIONS_MAX)
            .collect();
        return Err(Rejection::new(Kind::Circular, faults).with_cycle([id, id]));
    }
    refuse_cycle(tasks, &local)
}

/// Nothing stored waits for a new task yet, so a cycle can only lie among the new ones.
fn refuse_cycle(tasks: &[NewTask], local: &HashMap<TaskId, usize>) -> Result<(), Rejection> {
    let targets = |i: usize| {
        tasks[i]
            .dependencies
            .iter()
            .filter_map(|d| local.get(&d.id).copied())
    };
    let Some(cycle) = find_cycle(tasks.len(), targets) else {
        return Ok(());
    };
    let first = &tasks[cycle[0]];
    let path: Vec<_> = first
        .path
        .iter()
        .cloned()
        .chain(["dependencies".into()])
        .collect();
    let fault = Violation::new(
        &path,
        format!("Circular dependency of {} tasks", cycle.len()),
        "dependencies without a cycle",
        &Value::String(first.id.to_string()),
    );
    let ids = cycle.iter().chain(&cycle[..1]).map(|&i| tasks[i].id);
    Err(Rejection::one(Kind::Circular, fault).with_cycle(ids))
}

/// A cycle in the graph with nodes `0..len`, if there is one. Depth-first, without recursion.
/// Cost: O(nodes + edges).
pub(super) fn find_cycle<I: Iterator<Item = usize>>(
    len: usize,
    targets: impl Fn(usize) -> I,
) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        Unseen,
        OnPath,
        Done,
    }
    let mut marks = vec![Mark::Unseen; len];
    for start in 0..len {
        if marks[start] != Mark::Unseen {
            continue;
        }
        marks[start] = Mark::OnPath;
        let mut path = vec![(start, targets(start))];
        while let Some((node, rest)) = path.last_mut() {
            match rest.next() {
                Some(next) => match marks[next] {
                    Mark::Unseen => {
                        marks[next] = Mark::OnPath;
                        path.push((next, targets(next)));
                    }
                    Mark::OnPath => {
                        let from = path
                            .iter()
                            .position(|(n, _)| *n == next)
                            .expect("a node on the path is in it");
                        return Some(path[from..].iter().map(|(n, _)| *n).collect());
                    }
                    Mark::Done => {}
                },
                None => {
                    marks[*node] = Mark::Done;
                    path.pop();
                }
            }
        }
    }
    None
}

/// The facts of checked tasks.
pub(super) fn events(flow: &Flow, tasks: &[NewTask]) -> Vec<Event> {
    let mut users: HashMap<TaskId, Option<String>> = HashMap::new();
    let mut runs: HashMap<TaskId, Option<RunId>> = HashMap::new();
    let mut events = Vec::with_capacity(tasks.len());
    for (k, task) in tasks.iter().enumerate() {
        let stored = task.parent.and_then(|p| flow.live(p)).map(|p| flow.at(p));
        let inherited = || match task.parent.and_then(|p| users.get(&p)) {
            Some(user) => user.clone(),
            None => stored
                .and_then(|p| flow.users.text(p.user))
                .map(str::to_owned),
        };
        let user_id = task.user_id.clone().or_else(inherited);
        let run_id = match task.parent.and_then(|p| runs.get(&p)) {
            Some(run) => *run,
            None => stored
                .filter(|p| p.run != NONE)
                .and_then(|p| flow.runs.get(&p.run))
                .map(|r| r.id),
        };
        users.insert(task.id, user_id.clone());
        runs.insert(task.id, run_id);
        events.push(Event::TaskCreated(TaskCreated {
            task_id: task.id,
            ordinal: u32::try_from(flow.size() + k).expect("checked against the limit of a flow"),
            parent_id: task.parent,
            name: task.name.clone(),
            user_id,
            priority: task.priority,
            dependencies: task.dependencies.clone(),
            specification: task.specification.clone(),
            copied_from: task.copied_from,
            run_id,
        }));
    }
    events
}
