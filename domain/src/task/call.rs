//! The tasks of one call: the three ways to write them, and how they refer to each other.

use super::Priority;
use super::spec::{self, GivenId, TaskFields};
use crate::flow::{Dependency, Specification};
use crate::limits;
use crate::violation::{PathSegment, Violation};
use crate::{TaskId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[allow(
    clippy::result_large_err,
    reason = "a fault is rare, and moved once into the list"
)]
mod resolve;

mod words;

pub use resolve::{Fresh, resolve_dependencies, stored_ref};
pub use words::Words;

/// A task that is to be added to a flow: its references are ids, its parent stands before it.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTask {
    /// Its id.
    pub id: TaskId,
    /// Its parent, of the same call or stored; `None` for the root of a new flow.
    pub parent: Option<TaskId>,
    /// Its name.
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
    /// Where it stands in the parameters, for messages.
    pub path: Vec<PathSegment>,
}

/// The tasks of a call, each checked by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskList {
    tasks: Vec<TaskFields>,
    /// For a task written inside `children`: the index of the task around it.
    around: Vec<Option<usize>>,
}

/// The tasks of a call, referring to each other by id.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedTasks {
    /// Parents before children, siblings in the order given.
    pub tasks: Vec<NewTask>,
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
    match params.get("tasks") {
        Some(tasks) => {
            let unknown = params.iter().filter(|(key, _)| *key != "tasks");
            let mut violations: Vec<_> = unknown
                .take(limits::VIOLATIONS_MAX)
                .map(|(key, value)| {
                    Violation::of(
                        key,
                        "Unknown field",
                        "only `tasks` beside a list of tasks",
                        value,
                    )
                })
                .collect();
            match parse_tasks(tasks) {
                Ok(list) if violations.is_empty() => Ok(list),
                Ok(_) => Err(violations),
                Err(more) => {
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
/// those that are known already.
fn walk(nodes: Vec<Node<'_>>, mut violations: Vec<Violation>) -> Result<TaskList, Vec<Violation>> {
    let mut stack = nodes;
    stack.reverse();
    let mut list = TaskList {
        tasks: Vec::new(),
        around: Vec::new(),
    };
    let mut seen = 0_usize;
    while let Some((object, path, around)) = stack.pop() {
        seen += 1;
        let index = list.tasks.len();
        if let Some(fields) = fields(object, &path, &mut violations) {
            list.tasks.push(fields);
            list.around.push(around);
        } else {
            // Its children are still read, for their own faults.
            debug_assert!(!violations.is_empty(), "a task is refused for a reason");
        }
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
    if violations.is_empty() {
        Ok(list)
    } else {
        Err(violations)
    }
}

/// The members of a task, or of the `task` in a `{task, children}` node. `None` after a fault.
fn fields(
    object: &Map<String, Value>,
    path: &[PathSegment],
    violations: &mut Vec<Violation>,
) -> Option<TaskFields> {
    let Some(inner) = object.get("task") else {
        return spec::task(object, path, &["children"], violations);
    };
    for (key, value) in object
        .iter()
        .filter(|(k, _)| *k != "task" && *k != "children")
    {
        Violation::report(violations, || {
            let at = below(path, &[key.as_str().into()]);
            Violation::new(&at, "Unknown field", "one of: task, children", value)
        });
    }
    let at = below(path, &["task".into()]);
    match inner.as_object() {
        Some(task) if violations.len() < limits::VIOLATIONS_MAX => {
            spec::task(task, &at, &[], violations)
        }
        Some(_) => None,
        None => {
            Violation::report(violations, || {
                Violation::new(&at, "Wrong type", "a task object", inner)
            });
            None
        }
    }
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

    /// The user that the first task names.
    #[must_use]
    pub fn first_user(&self) -> Option<&str> {
        self.tasks.first()?.user_id.as_deref()
    }

    /// The specifications with their places, for checks of inputs against schemas.
    pub fn specifications(&self) -> impl Iterator<Item = (&[PathSegment], &Specification)> {
        self.tasks
            .iter()
            .map(|t| (t.path.as_slice(), &t.specification))
    }

    /// The ids that the caller chose, with the places of their tasks.
    pub fn chosen_ids(&self) -> impl Iterator<Item = (&[PathSegment], TaskId)> {
        self.tasks.iter().filter_map(|t| match t.id {
            Some(GivenId::Stored(id)) => Some((t.path.as_slice(), id)),
            Some(GivenId::Alias(_)) | None => None,
        })
    }

    /// Deadlines that have passed, for calls that would run the tasks at once.
    #[must_use]
    pub fn passed_deadlines(&self, now: Timestamp) -> Vec<Violation> {
        passed_deadlines(self.specifications(), now)
    }
}

/// The violations of specifications at their places whose deadlines are not after `now`, at most
/// [`limits::VIOLATIONS_MAX`].
pub(crate) fn passed_deadlines<'a>(
    specifications: impl Iterator<Item = (&'a [PathSegment], &'a Specification)>,
    now: Timestamp,
) -> Vec<Violation> {
    let passed =
        specifications.filter_map(|(path, s)| Some((path, s.deadline.filter(|d| *d <= now)?)));
    let fault = |(path, deadline): (&[PathSegment], Timestamp)| {
        let at = below(path, &["params".into(), "deadline".into()]);
        let actual = Value::String(deadline.to_string());
        Violation::new(&at, "Deadline has passed", "a time in the future", &actual)
    };
    passed.map(fault).take(limits::VIOLATIONS_MAX).collect()
}
