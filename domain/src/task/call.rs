//! The tasks of one call: the three ways to write them, and how they refer to each other.

use super::spec::{self, GivenId, TaskFields};
use super::wiring::Wiring;
use super::{Labels, Priority};
use crate::flow::{CallTask, Dependency, Fault, Specification};
use crate::limits;
use crate::suggestion::known_member;
use crate::violation::{PathSegment, Violation};
use crate::{TaskId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

mod resolve;

pub use resolve::{Fresh, Place, Unresolved, resolve_dependencies};

/// A task that is to be added to a flow: its references are ids, its parent stands before it.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTask {
    /// The caller's own id, or a fresh one.
    pub id: TaskId,
    /// Its parent, of the same call or stored; `None` for the root of a new flow.
    pub parent: Option<TaskId>,
    /// The name that the caller gave it.
    pub name: String,
    /// Its user; `None` inherits the parent's.
    pub user_id: Option<String>,
    /// Its urgency.
    pub priority: Priority,
    /// What it waits for.
    pub dependencies: Vec<Dependency>,
    /// What it executes.
    pub specification: Specification,
    /// The task it is a copy of.
    pub copied_from: Option<TaskId>,
    /// Labels of its own; empty when none were given.
    pub labels: Labels,
}

/// A method of a new task that no executor has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownMethod {
    /// Where it stands in the parameters.
    pub path: Vec<PathSegment>,
    /// The method as the task names it.
    pub method: String,
}

/// The tasks of a call, each checked by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskList {
    tasks: Vec<TaskFields>,
    /// What is wrong with them. A list with faults is never carried out; it is looked at for more, so
    /// that the caller learns all of it at once.
    faults: Vec<Violation>,
    /// For a task written inside `children`: the index of the task around it.
    around: Vec<Option<usize>>,
}

/// The tasks of a call, referring to each other by id.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedTasks {
    /// Parents before children, siblings in the order given.
    pub tasks: Vec<NewTask>,
    /// Their ids in the order written.
    pub ids: Vec<TaskId>,
    /// The names by which the caller knows them.
    pub aliases: Vec<(String, TaskId)>,
    /// Names of the others, which are no aliases because several tasks have them.
    pub shared_names: Vec<(String, TaskId)>,
    /// Ids that the caller chose.
    pub chosen_ids: Vec<TaskId>,
    /// A stored parent, when the call joins an existing flow.
    pub joins: Option<TaskId>,
}

/// Reads the parameters of `tasks.create`: one task, a task with `children`, `{task, children}`
/// nodes, or `{tasks: [...]}`.
///
/// # Errors
/// All violations.
pub fn parse_create(params: &Map<String, Value>) -> Result<TaskList, Vec<Violation>> {
    read_create(params).and_then(TaskList::without_faults)
}

/// As [`parse_create`], but faults of single tasks are kept in the list.
///
/// # Errors
/// There is no list in which more could be found: its violations.
pub fn read_create(params: &Map<String, Value>) -> Result<TaskList, Vec<Violation>> {
    match params.get("tasks") {
        Some(tasks) => {
            let unknown = params.iter().filter(|(key, _)| *key != "tasks");
            let violations: Vec<_> = unknown
                .take(limits::VIOLATIONS_MAX)
                .map(|(key, value)| {
                    Violation::of(
                        key,
                        "Unknown field",
                        "only `tasks` together with a list of tasks",
                        value,
                    )
                })
                .collect();
            match read_tasks(tasks) {
                Ok(list) => Ok(list.behind_faults(violations)),
                Err(more) => {
                    let mut violations = violations;
                    violations.extend(more);
                    violations.truncate(limits::VIOLATIONS_MAX);
                    Err(violations)
                }
            }
        }
        None => walk(vec![(params, Vec::new(), None)], Vec::new()),
    }
}

/// Reads the member `tasks` of a call.
///
/// # Errors
/// All violations.
pub fn parse_tasks(tasks: &Value) -> Result<TaskList, Vec<Violation>> {
    read_tasks(tasks).and_then(TaskList::without_faults)
}

/// As [`parse_tasks`], but faults of single tasks are kept in the list.
///
/// # Errors
/// There is no list in which more could be found: its violations.
pub fn read_tasks(tasks: &Value) -> Result<TaskList, Vec<Violation>> {
    let expected = || format!("an array of 1 to {} tasks", limits::TASKS_PER_CALL_MAX);
    let Some(items) = tasks.as_array() else {
        return Err(vec![Violation::of(
            "tasks",
            "Wrong type",
            expected(),
            tasks,
        )]);
    };
    if items.is_empty() {
        return Err(vec![Violation::of(
            "tasks",
            "Must not be empty",
            expected(),
            tasks,
        )]);
    }
    if items.len() > limits::TASKS_PER_CALL_MAX {
        return Err(too_many(&["tasks".into()], items.len()));
    }
    let mut nodes = Vec::with_capacity(items.len());
    let mut violations = Vec::new();
    for (i, item) in items.iter().enumerate() {
        let path: Vec<PathSegment> = vec!["tasks".into(), i.into()];
        match item.as_object() {
            Some(object) => nodes.push((object, path, None)),
            None => Violation::report(&mut violations, || {
                Violation::new(&path, "Wrong type", "a task object", item)
            }),
        }
    }
    walk(nodes, violations)
}

const NO_STATIC: &str = "Has a value only in workflow documents";
const STATIC_EXPECTED: &str = "the value itself in `inputs`, a reference to a dependency, or `workflows.create` of a document with `trigger`";
const TEMPLATE_EXPECTED: &str = "the value itself, or a reference to a dependency";

type Node<'a> = (&'a Map<String, Value>, Vec<PathSegment>, Option<usize>);

fn too_many(path: &[PathSegment], actual: usize) -> Vec<Violation> {
    let expected = format!("at most {} tasks in a call", limits::TASKS_PER_CALL_MAX);
    vec![Violation::new(
        path,
        "Too many tasks",
        expected,
        &Value::from(actual),
    )]
}

fn below(path: &[PathSegment], rest: &[PathSegment]) -> Vec<PathSegment> {
    path.iter().chain(rest).cloned().collect()
}

/// Reads nodes and everything below them, without recursion, in the order written. Faults join
/// those that are known already; when they are as many as one answer holds, the rest is not read.
fn walk(nodes: Vec<Node<'_>>, mut violations: Vec<Violation>) -> Result<TaskList, Vec<Violation>> {
    let mut stack = nodes;
    stack.reverse();
    let mut list = TaskList {
        tasks: Vec::new(),
        faults: Vec::new(),
        around: Vec::new(),
    };
    let mut seen = 0_usize;
    let mut schema_steps = limits::TYPE_SCHEMA_STEPS_PER_CALL_MAX;
    while let Some((object, path, around)) = stack.pop() {
        seen += 1;
        let index = list.tasks.len();
        // Also one with faults: others may refer to it.
        list.tasks
            .push(fields(object, &path, (&mut violations, &mut schema_steps)));
        list.around.push(around);
        match object.get("children") {
            None => {}
            Some(Value::Array(children)) => {
                let total = seen + stack.len() + children.len();
                if total > limits::TASKS_PER_CALL_MAX {
                    return Err(too_many(&below(&path, &["children".into()]), total));
                }
                for (i, child) in children.iter().enumerate().rev() {
                    let at = below(&path, &["children".into(), i.into()]);
                    match child.as_object() {
                        Some(child) => stack.push((child, at, Some(index))),
                        None => Violation::report(&mut violations, || {
                            Violation::new(&at, "Wrong type", "a task object", child)
                        }),
                    }
                }
            }
            Some(other) => {
                let at = below(&path, &["children".into()]);
                Violation::report(&mut violations, || {
                    Violation::new(&at, "Wrong type", "an array of tasks", other)
                });
            }
        }
        if violations.len() >= limits::VIOLATIONS_MAX {
            break;
        }
    }
    list.faults = violations;
    Ok(list)
}

/// The members of a task, or of the `task` in a `{task, children}` node.
fn fields(
    object: &Map<String, Value>,
    path: &[PathSegment],
    (violations, schema_steps): (&mut Vec<Violation>, &mut u64),
) -> TaskFields {
    let Some(inner) = object.get("task") else {
        return spec::task(object, path, &["children"], (violations, schema_steps));
    };
    for (key, value) in object
        .iter()
        .filter(|(k, _)| *k != "task" && *k != "children")
    {
        Violation::report(violations, || {
            let at = below(path, &[key.as_str().into()]);
            let expected = known_member(key, &["task", "children"]);
            Violation::new(&at, "Unknown field", expected, value)
        });
    }
    let at = below(path, &["task".into()]);
    if let Some(task) = inner.as_object() {
        return spec::task(task, &at, &[], (violations, schema_steps));
    }
    Violation::report(violations, || {
        Violation::new(&at, "Wrong type", "a task object", inner)
    });
    // A task of which nothing is known; that it has no name was said already.
    spec::task(&Map::new(), &at, &[], (&mut Vec::new(), schema_steps))
}

impl TaskList {
    /// How many tasks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Never true for a list that was parsed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The tasks as they were written, each with the index of the task around it, if there is one.
    pub fn fields(&self) -> impl Iterator<Item = (&TaskFields, Option<usize>)> {
        self.tasks.iter().zip(self.around.iter().copied())
    }

    /// The same as the agent broker records it: the first task says who published it. That one comes from no caller,
    /// who would be refused if it did.
    #[must_use]
    pub fn published(mut self, mark: Value) -> Self {
        if let Some(first) = self.tasks.first_mut() {
            first.specification = first.specification.clone().published(mark);
        }
        self
    }

    /// Whether something is wrong with a task by itself: the list must not be carried out.
    #[must_use]
    pub const fn is_faulty(&self) -> bool {
        !self.faults.is_empty()
    }

    /// The same list with more that is wrong; at most [`limits::VIOLATIONS_MAX`] faults are kept.
    #[must_use]
    pub fn with_faults(mut self, more: Vec<Violation>) -> Self {
        self.faults.extend(more);
        self.faults.truncate(limits::VIOLATIONS_MAX);
        self
    }

    /// The same with a fault for each input that names `$trigger` or `$initial_state`: they have values where a
    /// workflow document is run, which resolves them, and nowhere else. Cost: O(size of `schemas`) of tasks that are
    /// wired, and O(size of `inputs`) of tasks with templates.
    #[must_use]
    pub fn without_statics(self) -> Self {
        let mut faults = Vec::new();
        for task in &self.tasks {
            let wiring = Wiring::of(&task.specification);
            for (key, reference) in wiring.static_wires() {
                Violation::report(&mut faults, || {
                    let at = ["schemas".into(), "wiring".into(), key.into()];
                    let at = below(&task.path, &at);
                    Violation::new(&at, NO_STATIC, STATIC_EXPECTED, &reference.into())
                });
            }
            for (text, reference) in wiring.static_templates(&task.specification.inputs) {
                Violation::report(&mut faults, || {
                    let at = below(&below(&task.path, &["inputs".into()]), &text);
                    Violation::new(&at, NO_STATIC, TEMPLATE_EXPECTED, &reference.into())
                });
            }
        }
        self.with_faults(faults)
    }

    /// The same behind other faults of the call.
    fn behind_faults(mut self, mut first: Vec<Violation>) -> Self {
        first.append(&mut self.faults);
        first.truncate(limits::VIOLATIONS_MAX);
        self.faults = first;
        self
    }

    /// What is wrong with the tasks by themselves.
    #[must_use]
    pub fn faults(&self) -> &[Violation] {
        &self.faults
    }

    fn without_faults(self) -> Result<Self, Vec<Violation>> {
        if self.faults.is_empty() {
            Ok(self)
        } else {
            Err(self.faults)
        }
    }

    /// The specifications that were read, with their places, for checks of inputs against schemas.
    pub fn specifications(&self) -> impl Iterator<Item = (&[PathSegment], &Specification)> {
        let read = self.tasks.iter().filter(|t| t.is_specified);
        read.map(|t| (t.path.as_slice(), &t.specification))
    }

    /// Methods for which there is no executor, for calls that would run the tasks at once; at most
    /// [`limits::VIOLATIONS_MAX`].
    pub fn unknown_executors(&self, knows: impl Fn(&str) -> bool) -> Vec<UnknownMethod> {
        let methods = self
            .specifications()
            .filter(|(_, specification)| !specification.remote)
            .filter_map(|(path, specification)| Some((path, specification.method.as_deref()?)));
        let unknown = methods.filter(|(_, method)| !knows(method));
        let fault = |(path, method): (&[PathSegment], &str)| UnknownMethod {
            path: below(path, &["schemas".into(), "method".into()]),
            method: method.to_owned(),
        };
        unknown.map(fault).take(limits::VIOLATIONS_MAX).collect()
    }

    /// Takes out where each task stands in the parameters, in the order written.
    pub fn take_paths(&mut self) -> Vec<Vec<PathSegment>> {
        let tasks = self.tasks.iter_mut();
        tasks.map(|task| std::mem::take(&mut task.path)).collect()
    }

    /// The ids that the caller chose, with their tasks.
    pub fn chosen_ids(&self) -> impl Iterator<Item = (CallTask, TaskId)> {
        let tasks = self.tasks.iter().enumerate();
        tasks.filter_map(|(i, t)| match t.id {
            Some(GivenId::Stored(id)) => Some((CallTask::Index(i), id)),
            Some(GivenId::Alias(_)) | None => None,
        })
    }

    /// Deadlines that have passed, for calls that would run the tasks at once; at most
    /// [`limits::VIOLATIONS_MAX`].
    #[must_use]
    pub fn passed_deadlines(&self, now: Timestamp) -> Vec<Fault> {
        let tasks = self.tasks.iter().enumerate();
        let passed = tasks.filter_map(|(i, task)| {
            let deadline = task.specification.deadline_passed(now)?;
            let task = CallTask::Index(i);
            Some(Fault::NewDeadlinePassed { task, deadline })
        });
        passed.take(limits::VIOLATIONS_MAX).collect()
    }
}
