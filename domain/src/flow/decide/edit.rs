//! `tasks.update`. Cost: O(dependencies) for most fields; O(flow) for a changed dependency list
//! or parent at worst (search for a cycle, height of the moved subtree). All fields are judged, and
//! the family of faults that comes first is the answer.

use super::{Decision, find, wrong_status};
use crate::flow::command::{Done, Update};
use crate::flow::event::{
    DependenciesChanged, Dependency, Event, PriorityChanged, Specification, TaskMoved, TaskRenamed,
    TaskRespecified, UserChanged,
};
use crate::flow::rejection::{Kind, Rejection};
use crate::flow::state::{Flow, NONE, Task};
use crate::limits;
use crate::task::Status;
use crate::{TaskId, Violation};
use hashbrown::HashSet;
use serde_json::Value;

pub(super) fn update(flow: &Flow, command: &Update) -> Decision {
    let i = find(flow, "task_id", command.task)?;
    let task = flow.at(i);
    let updates = &command.updates;
    let respecifies =
        updates.inputs.is_some() || updates.schemas.is_some() || updates.params.is_some();
    let user = updates
        .user_id
        .as_ref()
        .map(|u| u.as_deref())
        .filter(|u| *u != flow.users.text(task.user));
    let moves = command
        .parent
        .filter(|p| *p != flow.tasks.get(task.parent as usize).map(|t| t.id));

    let mut refusals = Refusals(Vec::new());
    if updates.status.is_some_and(|status| status != task.status) {
        let expected = "no `status`: updates do not change it";
        refusals
            .0
            .push(wrong_status(Kind::InvalidTransition, task, expected));
    }
    if user.is_some() || moves.is_some() {
        refusals.check(require_status(
            task,
            &[Status::Pending],
            "a task that is pending",
        ));
    } else if respecifies || command.dependencies.is_some() {
        refusals.check(require_status(
            task,
            &[Status::Pending, Status::Failed],
            "a task that is pending or failed",
        ));
    }
    let mut events = Vec::new();
    let task_id = command.task;
    if let Some(parent) = moves
        && let Some(parent_id) = refusals.check(check_move(flow, i, parent))
    {
        events.push(Event::TaskMoved(TaskMoved { task_id, parent_id }));
    }
    if let Some(dependencies) = &command.dependencies {
        refusals.check(check_dependencies(flow, i, dependencies));
        if *dependencies != flow.dependencies(task) {
            let dependencies = dependencies.clone();
            events.push(Event::DependenciesChanged(DependenciesChanged {
                task_id,
                dependencies,
            }));
        }
    }
    if respecifies
        && let Some(Some(specification)) = refusals.check(check_specification(task, command))
    {
        events.push(Event::TaskRespecified(TaskRespecified {
            task_id,
            specification,
        }));
    }
    refusals.first()?;
    if let Some(name) = &updates.name {
        events.push(Event::TaskRenamed(TaskRenamed {
            task_id,
            name: name.clone(),
        }));
    }
    if let Some(user) = user {
        events.push(Event::UserChanged(UserChanged {
            task_id,
            user_id: user.map(str::to_owned),
        }));
    }
    if let Some(priority) = updates.priority.filter(|p| *p != task.priority) {
        events.push(Event::PriorityChanged(PriorityChanged {
            task_id,
            priority,
        }));
    }
    Ok((events, Done::Status(task.status)))
}

/// What speaks against an update, field by field.
struct Refusals(Vec<Rejection>);

impl Refusals {
    fn check<T>(&mut self, result: Result<T, Rejection>) -> Option<T> {
        result.map_err(|refusal| self.0.push(refusal)).ok()
    }

    /// The family that comes first, with all that belongs to it.
    fn first(self) -> Result<(), Rejection> {
        let Some(kind) = self.0.iter().map(|r| r.kind).min() else {
            return Ok(());
        };
        let mut all = self.0.into_iter().filter(|r| r.kind == kind);
        let mut first = all.next().expect("the least kind is one of them");
        for other in all {
            first.violations.extend(other.violations);
            first.details.extend(other.details);
        }
        Err(first)
    }
}

/// The new specification, if it differs from the present one.
fn check_specification(task: &Task, command: &Update) -> Result<Option<Specification>, Rejection> {
    let Some((_, current)) = command
        .current
        .as_ref()
        .filter(|(version, _)| *version == task.spec_at)
    else {
        return Err(Rejection::new(Kind::SpecificationMoved, Vec::new()));
    };
    let specification = current.clone().updated(&command.updates);
    if task.run != NONE && specification.method.is_none() != task.is_group() {
        let reason = "An active run covers the task, which may not change between group and method";
        let expected = if task.is_group() {
            "no `schemas`"
        } else {
            "`schemas` with a method"
        };
        let actual = specification
            .method
            .as_deref()
            .map_or(Value::Null, Value::from);
        return Err(busy(Violation::of("schemas", reason, expected, &actual)));
    }
    Ok(Some(specification).filter(|s| s != current))
}

fn busy(fault: Violation) -> Rejection {
    Rejection::one(Kind::AlreadyExecuting, fault)
}

fn require_status(task: &Task, allowed: &[Status], expected: &str) -> Result<(), Rejection> {
    if allowed.contains(&task.status) {
        return Ok(());
    }
    let kind = if task.status == Status::InProgress {
        Kind::AlreadyExecuting
    } else {
        Kind::InvalidTransition
    };
    Err(wrong_status(kind, task, expected))
}

/// The new parent. Cost: O(subtree * depth).
fn check_move(flow: &Flow, i: u32, parent: Option<TaskId>) -> Result<TaskId, Rejection> {
    let tree = |reason: &str, expected: &str, actual: &Value| {
        Err(Rejection::one(
            Kind::InvalidTree,
            Violation::new(&at_parent(), reason, expected, actual),
        ))
    };
    let Some(parent) = parent else {
        return tree(
            "Flow has a root already",
            "a parent in the same flow",
            &Value::Null,
        );
    };
    let actual = Value::String(parent.to_string());
    let Some(to) = flow.live(parent) else {
        let fault = Violation::new(
            &at_parent(),
            "Parent task not found",
            "a task of the same flow",
            &actual,
        );
        return Err(Rejection::one(Kind::InvalidParent, fault));
    };
    if to == i || flow.ancestors(to).any(|a| a == i) {
        return tree(
            "Circular parent-child relationship",
            "a task that is not below this one",
            &actual,
        );
    }
    let subtree = flow.subtree(i);
    let depth_before = flow.depth(i);
    let height = subtree
        .iter()
        .map(|&t| flow.depth(t) - depth_before)
        .max()
        .unwrap_or(0);
    if flow.depth_below(to) + height >= limits::TREE_DEPTH_MAX {
        let expected = format!("a tree of at most {} levels", limits::TREE_DEPTH_MAX);
        return tree(
            "Tree is too deep",
            &expected,
            &Value::from(flow.depth_below(to) + height + 1),
        );
    }
    if flow.at(i).run != NONE {
        let reason = "An active run covers the task, which may not get another parent";
        return Err(busy(Violation::new(
            &at_parent(),
            reason,
            "the present parent",
            &actual,
        )));
    }
    Ok(parent)
}

fn at_parent() -> [crate::PathSegment; 2] {
    ["updates".into(), "parent_id".into()]
}

fn check_dependencies(flow: &Flow, i: u32, dependencies: &[Dependency]) -> Result<(), Rejection> {
    let fault = |k: usize, reason: &str, expected: &str| {
        let path = [
            "updates".into(),
            "dependencies".into(),
            k.into(),
            "id".into(),
        ];
        Violation::new(
            &path,
            reason,
            expected,
            &Value::String(dependencies[k].id.to_string()),
        )
    };
    let mut missing = Vec::new();
    let mut targets = Vec::with_capacity(dependencies.len());
    for (k, dependency) in dependencies.iter().enumerate() {
        match flow.live(dependency.id) {
            Some(target) => targets.push(target),
            None => missing.push(fault(
                k,
                "Dependency task not found",
                "a task of the same flow",
            )),
        }
    }
    if !missing.is_empty() {
        missing.truncate(limits::VIOLATIONS_MAX);
        return Err(Rejection::new(Kind::InvalidDependency, missing));
    }
    if let Some(k) = targets.iter().position(|&t| t == i) {
        let id = flow.at(i).id;
        let rejection = Rejection::one(
            Kind::Circular,
            fault(k, "Task cannot depend on itself", "another task"),
        );
        return Err(rejection.with_cycle([id, id]));
    }
    if let Some((k, path)) = path_back(flow, i, &targets) {
        let ids = path.iter().chain(&path[..1]).map(|&t| flow.at(t).id);
        let reason = format!("Circular dependency of {} tasks", path.len());
        let rejection = Rejection::one(
            Kind::Circular,
            fault(k, &reason, "a task that does not wait for this one"),
        );
        return Err(rejection.with_cycle(ids));
    }
    let run = flow.at(i).run;
    if run != NONE {
        let present: HashSet<u32> = flow.at(i).dependencies.iter().map(|e| e.task).collect();
        let stray = targets.iter().position(|t| {
            let target = flow.at(*t);
            !present.contains(t) && target.run != run && target.status != Status::Completed
        });
        if let Some(k) = stray {
            let reason = "An active run covers the task, but not this dependency";
            return Err(busy(fault(
                k,
                reason,
                "a task that the run covers, or a completed one",
            )));
        }
    }
    Ok(())
}

/// A chain of dependencies that leads from one of `targets` to `goal`: the index of the target, and
/// the cycle `goal -> target -> .. `. Depth-first without recursion. Cost: O(tasks + edges) at worst.
fn path_back(flow: &Flow, goal: u32, targets: &[u32]) -> Option<(usize, Vec<u32>)> {
    let mut seen = vec![false; flow.size()];
    for (k, &start) in targets.iter().enumerate() {
        if std::mem::replace(&mut seen[start as usize], true) {
            continue;
        }
        let mut path = vec![(start, 0_usize)];
        while let Some((node, next)) = path.last_mut() {
            let Some(edge) = flow.at(*node).dependencies.get(*next) else {
                path.pop();
                continue;
            };
            *next += 1;
            if edge.task == goal {
                return Some((
                    k,
                    std::iter::once(goal)
                        .chain(path.iter().map(|(n, _)| *n))
                        .collect(),
                ));
            }
            if !std::mem::replace(&mut seen[edge.task as usize], true) {
                path.push((edge.task, 0));
            }
        }
    }
    None
}
