//! `tasks.create`, and the first half of `tasks.execute` with tasks.
//! Cost: O(new tasks * depth + their dependencies), whatever the flow's size; if a task depends on a group that new
//! tasks join, also O(what the new tasks wait for).

use super::Decision;
use crate::flow::command::Done;
use crate::flow::event::{Event, TaskCreated};
use crate::flow::refusal::{
    CallTask, Fault, ParentFault, Refusal, Refusals, Rejection, SelfDependency, TreeFault,
    UnknownDependency, report,
};
use crate::flow::state::{Flow, NONE};
use crate::flow::wait_graph;
use crate::limits;
use crate::task::Status;
use crate::task::call::NewTask;
use crate::{RunId, TaskId};
use hashbrown::HashMap;

pub(super) fn create(flow: &Flow, tasks: &[NewTask]) -> Decision {
    check(flow, tasks)?;
    Ok((events(flow, tasks), Done::Status(Status::Pending)))
}

impl Flow {
    /// All that speaks against adding these tasks, which need not be resolved completely. Cost: as of `tasks.create`.
    #[must_use]
    pub fn refusals_of_new(&self, tasks: &[NewTask]) -> Vec<Refusal> {
        let total = self.size() + tasks.len();
        if total > limits::TASKS_PER_FLOW_MAX {
            return vec![Refusal::invalid([Fault::FlowTooLarge {
                tasks: total,
                tasks_max: limits::TASKS_PER_FLOW_MAX,
            }])];
        }
        let local = tasks.iter().enumerate().map(|(i, t)| (t.id, i)).collect();
        let mut refusals = faults(self, tasks, &local).by_family();
        refusals.extend(wait_graph::cycles_of_new(self, tasks, &local));
        refusals
    }
}

/// Judges new tasks.
pub(super) fn check(flow: &Flow, tasks: &[NewTask]) -> Result<(), Rejection> {
    match Refusals::of(flow.refusals_of_new(tasks)) {
        None => Ok(()),
        Some(refusals) => Err(refusals.into()),
    }
}

/// What is wrong with each task by itself.
fn faults(flow: &Flow, tasks: &[NewTask], local: &HashMap<TaskId, usize>) -> Faults {
    let mut faults = Faults::default();
    let mut depths = Vec::with_capacity(tasks.len());
    for new in tasks {
        let task = new.id;
        // The root of an archived flow had its id; the flow knows no tasks any more.
        let was_root = new.parent.is_none() && flow.archived().is_some();
        if was_root || flow.index.contains_key(&task) {
            let (task, id) = (CallTask::Id(task), task);
            report(&mut faults.taken, Fault::IdTaken { task, id });
        }
        let depth = match new.parent {
            None => {
                if flow.size() > 0 || !depths.is_empty() {
                    report(&mut faults.tree, TreeFault::SecondRoot { task });
                }
                0
            }
            // Why it cannot be told was said already.
            Some(TaskId::UNTOLD) => 0,
            Some(parent) => match (local.get(&parent), flow.live(parent)) {
                (Some(&p), _) => depths.get(p).map_or(0, |d| d + 1),
                (None, Some(p)) => flow.depth_below(p),
                (None, None) => {
                    let fault = ParentFault::NotInFlow { task, parent };
                    report(&mut faults.parents, fault);
                    0
                }
            },
        };
        if depth >= limits::TREE_DEPTH_MAX {
            let (levels, levels_max) = (depth + 1, limits::TREE_DEPTH_MAX);
            let fault = TreeFault::TooDeep {
                task,
                levels,
                levels_max,
            };
            report(&mut faults.tree, fault);
        }
        depths.push(depth);
        for (index, dependency) in new.dependencies.iter().enumerate() {
            let dependency = dependency.id;
            if dependency == TaskId::UNTOLD {
                continue;
            }
            if dependency == task {
                report(&mut faults.own, SelfDependency { task, index });
            } else if faults.missing.len() < limits::VIOLATIONS_MAX
                && !local.contains_key(&dependency)
                && flow.live(dependency).is_none()
            {
                faults.missing.push(UnknownDependency {
                    task,
                    index,
                    dependency,
                });
            }
        }
    }
    faults
}

/// What is wrong with new tasks, by family.
#[derive(Default)]
struct Faults {
    taken: Vec<Fault>,
    tree: Vec<TreeFault>,
    parents: Vec<ParentFault>,
    missing: Vec<UnknownDependency>,
    own: Vec<SelfDependency>,
}

impl Faults {
    /// A refusal for each family that has some.
    fn by_family(self) -> Vec<Refusal> {
        let families = [
            (!self.taken.is_empty()).then_some(Refusal::Invalid(self.taken)),
            (!self.tree.is_empty()).then_some(Refusal::InvalidTree(self.tree)),
            (!self.parents.is_empty()).then_some(Refusal::InvalidParent(self.parents)),
            (!self.missing.is_empty()).then_some(Refusal::DependenciesNotFound(self.missing)),
            (!self.own.is_empty()).then_some(Refusal::SelfDependency(self.own)),
        ];
        families.into_iter().flatten().collect()
    }
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
            labels: task.labels.clone(),
        }));
    }
    events
}
