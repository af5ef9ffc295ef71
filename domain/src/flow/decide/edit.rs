//! `tasks.update`. Cost: O(dependencies) for most fields; O(flow) for a changed dependency list
//! or parent at worst (search for a cycle, height of the moved subtree). All fields are judged, and
//! all that is wrong is told.

use super::{Decision, find};
use crate::TaskId;
use crate::flow::command::{Done, Handover, Update};
use crate::flow::event::{
    DependenciesChanged, Dependency, Event, LabelsChanged, PriorityChanged, Specification,
    TaskMoved, TaskRenamed, TaskRespecified, UserChanged,
};
use crate::flow::refusal::{
    CallTask, Changeable, Fault, Outdated, ParentFault, Refusal, Refusals, Rejection, RunConflict,
    SelfDependency, TransitionFault, TreeFault, UnknownDependency, report,
};
use crate::flow::state::{Flow, NONE, Task};
use crate::flow::wait_graph::{self, Changed};
use crate::limits;
use crate::task::wiring::Wiring;
use crate::task::{Status, wiring};
use hashbrown::HashSet;

impl Flow {
    /// All that speaks against an update, which need not be read completely. Cost: as of `tasks.update`.
    #[must_use]
    pub fn refusals_of_update(&self, command: &Update) -> Vec<Refusal> {
        match update(self, command) {
            Err(Rejection::Refused(refusals)) => refusals.into_iter().collect(),
            Err(Rejection::Outdated(_)) | Ok(_) => Vec::new(),
        }
    }
}

pub(super) fn update(flow: &Flow, command: &Update) -> Decision {
    let i = find(flow, command.task)?;
    let task = flow.at(i);
    let updates = &command.updates;
    let respecifies = updates.inputs.is_some()
        || updates.schemas.is_some()
        || updates.params.is_some()
        || updates.start_at.is_some();
    let user = updates
        .user_id
        .as_ref()
        .map(|u| u.as_deref())
        .filter(|u| *u != flow.users.text(task.user));
    let moves = command
        .parent
        .filter(|p| *p != flow.tasks.get(task.parent as usize).map(|t| t.id));

    let mut refusals = Against(Vec::new());
    let (task_id, status) = (command.task, task.status);
    if updates.status.is_some_and(|given| given != status) {
        let task = task_id;
        let fault = TransitionFault::StatusGiven { task, status };
        refusals.0.push(Refusal::InvalidTransition(vec![fault]));
    }
    let is_handed_over = match command.handover {
        Handover::WhilePending => false,
        Handover::WhileIdle => user.is_some() && task.parent == NONE,
    };
    if is_handed_over {
        refusals.check(require_idle(flow, task_id));
    }
    if (user.is_some() && !is_handed_over) || moves.is_some() {
        refusals.check(require_status(task, Changeable::Pending));
    } else if respecifies || command.dependencies.is_some() {
        refusals.check(require_status(task, Changeable::PendingOrFailed));
    }
    let mut events = Vec::new();
    let parent = moves.and_then(|parent| refusals.check(check_move(flow, i, parent)));
    if let Some(parent_id) = parent {
        if task.run != NONE {
            let (task, parent) = (task_id, parent_id);
            refusals.0.push(busy(RunConflict::Moved { task, parent }));
        }
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
    let mut is_group = task.is_group();
    let mut outdated = None;
    if respecifies || (command.dependencies.is_some() && command.current.is_some()) {
        match current_specification(task, command) {
            Err(changed) => outdated = Some(changed),
            Ok(current) => {
                let mut specification = current.clone().updated(updates);
                is_group = specification.method.is_none();
                refusals.check(check_method(task, &specification));
                let dependencies = command.dependencies.as_deref();
                refusals.check(wire(flow, task, &mut specification, dependencies));
                let looked = command.looked.as_ref();
                let has_looked = looked
                    .is_none_or(|looked| flow.has_looked(&Wiring::of(&specification), &looked.at));
                let absent = looked.map_or_else(Vec::new, |looked| looked.absent.clone());
                let known = flow.unresolvable(task_id);
                let is_news = absent.iter().any(|it| !known.contains(it));
                if !has_looked {
                    outdated = Some(Outdated::Specification);
                } else if specification != *current || is_news {
                    events.push(Event::TaskRespecified(TaskRespecified {
                        task_id,
                        specification,
                        absent,
                    }));
                }
            }
        }
    }
    if parent.is_some() || command.dependencies.is_some() || (is_group && !task.is_group()) {
        let changed = Changed {
            task: i,
            dependencies: command.dependencies.as_deref(),
            parent: parent.and_then(|parent| flow.live(parent)),
            is_group,
        };
        refusals
            .0
            .extend(wait_graph::cycles_of_changed(flow, &changed));
    }
    refusals.all()?;
    outdated.map_or(Ok(()), Err)?;
    if let Some(name) = &updates.name {
        events.push(Event::TaskRenamed(TaskRenamed {
            task_id,
            name: name.clone(),
        }));
    }
    if let Some(labels) = &updates.labels
        && !(labels.is_empty() && task.labels_at == 0)
    {
        events.push(Event::LabelsChanged(LabelsChanged {
            task_id,
            labels: labels.clone(),
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
struct Against(Vec<Refusal>);

impl Against {
    fn check<T>(&mut self, result: Result<T, Refusal>) -> Option<T> {
        result.map_err(|refusal| self.0.push(refusal)).ok()
    }

    /// All of them, in their order of precedence.
    fn all(self) -> Result<(), Rejection> {
        match Refusals::of(self.0) {
            None => Ok(()),
            Some(refusals) => Err(refusals.into()),
        }
    }
}

/// The specification that the update was built on.
fn current_specification<'c>(
    task: &Task,
    command: &'c Update,
) -> Result<&'c Specification, Outdated> {
    let current = command.current.as_ref();
    let current = current.filter(|(version, _)| *version == task.spec_at);
    current.map(|(_, s)| s).ok_or(Outdated::Specification)
}

/// References of an update name tasks by id; what is wired must stay a dependency.
fn wire(
    flow: &Flow,
    task: &Task,
    specification: &mut Specification,
    dependencies: Option<&[Dependency]>,
) -> Result<(), Refusal> {
    if dependencies.is_some_and(|given| given.iter().any(|it| it.id == TaskId::UNTOLD)) {
        // Without them nothing can be said of what is wired to them.
        return Ok(());
    }
    let present = || flow.dependencies(task);
    let dependencies = dependencies.map_or_else(present, <[_]>::to_vec);
    let id = |text: &str| TaskId::parse(text).ok();
    match wiring::resolve(specification, &dependencies, id) {
        Ok(None) => Ok(()),
        Ok(Some(resolved)) => {
            *specification = resolved;
            Ok(())
        }
        Err(faults) => {
            let fault = |it| Fault::unresolved(CallTask::Id(task.id), it);
            Err(Refusal::Invalid(faults.into_iter().map(fault).collect()))
        }
    }
}

/// A run knows groups from tasks with a method, so neither becomes the other while it is active.
fn check_method(task: &Task, specification: &Specification) -> Result<(), Refusal> {
    if task.run != NONE && specification.method.is_none() != task.is_group() {
        return Err(busy(RunConflict::MethodChanged {
            task: task.id,
            method: specification.method.as_deref().map(str::to_owned),
        }));
    }
    Ok(())
}

fn busy(conflict: RunConflict) -> Refusal {
    Refusal::AlreadyExecuting(vec![conflict])
}

fn require_status(task: &Task, changeable: Changeable) -> Result<(), Refusal> {
    let (task, status) = (task.id, task.status);
    match (status, changeable) {
        (Status::Pending, _) | (Status::Failed, Changeable::PendingOrFailed) => Ok(()),
        (Status::InProgress, _) => Err(busy(RunConflict::InProgress { task, changeable })),
        (Status::Failed | Status::Completed | Status::Cancelled, _) => {
            let fault = TransitionFault::NotChangeable {
                task,
                status,
                changeable,
            };
            Err(Refusal::InvalidTransition(vec![fault]))
        }
    }
}

/// An attempt works for the owner that it began for: with their secrets, under their worker's lease. Cost: O(active
/// runs).
fn require_idle(flow: &Flow, task: TaskId) -> Result<(), Refusal> {
    if flow.runs.values().all(|run| run.running == 0) {
        return Ok(());
    }
    let changeable = Changeable::Idle;
    Err(busy(RunConflict::InProgress { task, changeable }))
}

/// The new parent. Cost: O(subtree * depth).
fn check_move(flow: &Flow, i: u32, parent: Option<TaskId>) -> Result<TaskId, Refusal> {
    let tree = |fault| Err(Refusal::InvalidTree(vec![fault]));
    let task = flow.at(i).id;
    let Some(parent) = parent else {
        return tree(TreeFault::MovedToRoot { task });
    };
    let Some(to) = flow.live(parent) else {
        let fault = ParentFault::MovedOutOfFlow { task, parent };
        return Err(Refusal::InvalidParent(vec![fault]));
    };
    if to == i || flow.ancestors(to).any(|a| a == i) {
        return tree(TreeFault::MovedBelowItself { task, parent });
    }
    let subtree = flow.subtree(i);
    let depth_before = flow.depth(i);
    let height = subtree
        .iter()
        .map(|&t| flow.depth(t) - depth_before)
        .max()
        .unwrap_or(0);
    let levels = flow.depth_below(to) + height + 1;
    let levels_max = limits::TREE_DEPTH_MAX;
    if levels > levels_max {
        return tree(TreeFault::TooDeep {
            task,
            levels,
            levels_max,
        });
    }
    Ok(parent)
}

fn check_dependencies(flow: &Flow, i: u32, dependencies: &[Dependency]) -> Result<(), Refusal> {
    let task = flow.at(i).id;
    let mut missing = Vec::new();
    let mut targets = Vec::with_capacity(dependencies.len());
    for (index, dependency) in dependencies.iter().enumerate() {
        match flow.live(dependency.id) {
            Some(target) => targets.push((index, target)),
            // Why it cannot be told was said already.
            None if dependency.id == TaskId::UNTOLD => {}
            None => {
                let dependency = dependency.id;
                let fault = UnknownDependency {
                    task,
                    index,
                    dependency,
                };
                report(&mut missing, fault);
            }
        }
    }
    if !missing.is_empty() {
        return Err(Refusal::DependenciesNotFound(missing));
    }
    if let Some(&(index, _)) = targets.iter().find(|(_, target)| *target == i) {
        return Err(Refusal::SelfDependency(vec![SelfDependency {
            task,
            index,
        }]));
    }
    let run = flow.at(i).run;
    if run != NONE {
        let present: HashSet<u32> = flow.at(i).dependencies.iter().map(|e| e.task).collect();
        let stray = targets.iter().find(|(_, t)| {
            let target = flow.at(*t);
            !present.contains(t) && target.run != run && target.status != Status::Completed
        });
        if let Some(&(index, _)) = stray {
            return Err(busy(RunConflict::DependencyNotCovered {
                task,
                index,
                dependency: dependencies[index].id,
            }));
        }
    }
    Ok(())
}
