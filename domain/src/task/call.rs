//! The tasks of one call: the three ways to write them, and how they refer to each other.

use super::Priority;
use super::spec::{self, GivenId, TaskFields, TaskRef, looks_like_uuid};
use crate::TaskId;
use crate::flow::{Dependency, Kind, Rejection, Specification};
use crate::ids::parse_uuid_v4;
use crate::limits;
use crate::violation::{PathSegment, Violation};
use hashbrown::HashMap;
use serde_json::{Map, Value};

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
#[derive(Debug, Clone, PartialEq)]
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
            let violations: Vec<_> = unknown
                .map(|(key, value)| {
                    Violation::of(
                        key,
                        "Unknown field",
                        "only `tasks` beside a list of tasks",
                        value,
                    )
                })
                .collect();
            if violations.is_empty() {
                parse_tasks(tasks)
            } else {
                Err(violations)
            }
        }
        None => walk(vec![(params, Vec::new(), None)]),
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
    let mut nodes = Vec::with_capacity(items.len());
    let mut violations = Vec::new();
    for (i, item) in items.iter().enumerate() {
        let path: Vec<PathSegment> = vec!["tasks".into(), i.into()];
        match item.as_object() {
            Some(object) => nodes.push((object, path, None)),
            None => violations.push(Violation::new(&path, "Wrong type", "a task object", item)),
        }
    }
    if violations.is_empty() {
        walk(nodes)
    } else {
        Err(violations)
    }
}

type Node<'a> = (&'a Map<String, Value>, Vec<PathSegment>, Option<usize>);

/// Reads nodes and everything below them, without recursion, in the order written.
fn walk(nodes: Vec<Node<'_>>) -> Result<TaskList, Vec<Violation>> {
    let mut stack = nodes;
    stack.reverse();
    let mut list = TaskList {
        tasks: Vec::new(),
        around: Vec::new(),
    };
    let mut violations = Vec::new();
    let mut seen = 0_usize;
    while let Some((object, path, around)) = stack.pop() {
        seen += 1;
        if seen > limits::TASKS_PER_CALL_MAX {
            let expected = format!("at most {} tasks in a call", limits::TASKS_PER_CALL_MAX);
            let path = if path.is_empty() {
                vec!["tasks".into()]
            } else {
                path
            };
            return Err(vec![Violation::new(
                &path,
                "Too many tasks",
                expected,
                &Value::from(seen + stack.len()),
            )]);
        }
        let index = list.tasks.len();
        let before = violations.len();
        let fields = match object.get("task") {
            Some(inner) => {
                let at = |field: &str| {
                    path.iter()
                        .cloned()
                        .chain([field.into()])
                        .collect::<Vec<_>>()
                };
                for (key, value) in object
                    .iter()
                    .filter(|(k, _)| *k != "task" && *k != "children")
                {
                    violations.push(Violation::new(
                        &at(key),
                        "Unknown field",
                        "one of: task, children",
                        value,
                    ));
                }
                match inner.as_object() {
                    Some(task) => spec::task(task, &at("task"), &[], &mut violations),
                    None => {
                        violations.push(Violation::new(
                            &at("task"),
                            "Wrong type",
                            "a task object",
                            inner,
                        ));
                        None
                    }
                }
            }
            None => spec::task(object, &path, &["children"], &mut violations),
        };
        match fields {
            Some(fields) => {
                list.tasks.push(fields);
                list.around.push(around);
            }
            // Its children are still read, for their own faults.
            None => debug_assert!(violations.len() > before, "a task is refused for a reason"),
        }
        if violations.len() >= limits::VIOLATIONS_MAX {
            violations.truncate(limits::VIOLATIONS_MAX);
            return Err(violations);
        }
        match object.get("children") {
            None => {}
            Some(Value::Array(children)) => {
                for (i, child) in children.iter().enumerate().rev() {
                    let at: Vec<_> = path
                        .iter()
                        .cloned()
                        .chain(["children".into(), i.into()])
                        .collect();
                    match child.as_object() {
                        Some(child) => stack.push((child, at, Some(index))),
                        None => violations.push(Violation::new(
                            &at,
                            "Wrong type",
                            "a task object",
                            child,
                        )),
                    }
                }
            }
            Some(other) => {
                let at: Vec<_> = path.iter().cloned().chain(["children".into()]).collect();
                violations.push(Violation::new(
                    &at,
                    "Wrong type",
                    "an array of tasks",
                    other,
                ));
            }
        }
    }
    if violations.is_empty() {
        Ok(list)
    } else {
        Err(violations)
    }
}

/// How a reference of the call was understood.
enum Target {
    /// A task of the call.
    Local(usize),
    /// A stored task.
    Stored(TaskId),
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

    /// Gives ids to the tasks (`mint` makes fresh ones), resolves references within the call, and
    /// orders parents before children. Cost: O(tasks + dependencies).
    ///
    /// # Errors
    /// `Invalid`: duplicate ids, references that mean nothing or several tasks. `InvalidTree`: several
    /// roots, none, a parent cycle, or `parent_id` against the nesting.
    pub fn resolve(self, mut mint: impl FnMut() -> TaskId) -> Result<ResolvedTasks, Rejection> {
        let ids: Vec<TaskId> = self
            .tasks
            .iter()
            .map(|t| match t.id {
                Some(GivenId::Stored(id)) => id,
                Some(GivenId::Alias(_)) | None => mint(),
            })
            .collect();
        let names = Names::of(&self.tasks)?;
        let mut faults = Vec::new();
        let mut tree_faults = Vec::new();
        let mut parents: Vec<Option<Target>> = Vec::with_capacity(ids.len());
        for (task, around) in self.tasks.iter().zip(&self.around) {
            let written = match &task.parent {
                None => None,
                Some(reference) => match names.find(reference) {
                    Ok(target) => Some(target),
                    Err(fault) => {
                        faults.push(fault);
                        None
                    }
                },
            };
            parents.push(match (written, *around) {
                (None, around) => around.map(Target::Local),
                (Some(Target::Local(p)), Some(a)) if p == a => Some(Target::Local(a)),
                (Some(_), Some(_)) => {
                    let at: Vec<_> = task
                        .path
                        .iter()
                        .cloned()
                        .chain(["parent_id".into()])
                        .collect();
                    let actual = Value::String(
                        task.parent
                            .as_ref()
                            .map(|p| p.text.clone())
                            .unwrap_or_default(),
                    );
                    let expected = "the id of the task that it is written under, or absent";
                    tree_faults.push(Violation::new(
                        &at,
                        "Does not match the tree",
                        expected,
                        &actual,
                    ));
                    None
                }
                (written, None) => written,
            });
        }
        let mut dependencies: Vec<Vec<Dependency>> = Vec::with_capacity(ids.len());
        for task in &self.tasks {
            match resolve_dependencies(&task.dependencies, |r| {
                names.find(r).map(|target| match target {
                    Target::Local(i) => ids[i],
                    Target::Stored(id) => id,
                })
            }) {
                Ok(list) => dependencies.push(list),
                Err(mut list) => faults.append(&mut list),
            }
        }
        if !faults.is_empty() {
            faults.truncate(limits::VIOLATIONS_MAX);
            return Err(Rejection::new(Kind::Invalid, faults));
        }
        if !tree_faults.is_empty() {
            return Err(Rejection::new(Kind::InvalidTree, tree_faults));
        }
        let order = self.order(&parents)?;
        let joins = parents.iter().find_map(|p| match p {
            Some(Target::Stored(id)) => Some(*id),
            Some(Target::Local(_)) | None => None,
        });
        let aliases = names.aliases(&self.tasks, &ids);
        drop(names);
        let chosen_ids = self
            .tasks
            .iter()
            .filter_map(|t| match t.id {
                Some(GivenId::Stored(id)) => Some(id),
                Some(GivenId::Alias(_)) | None => None,
            })
            .collect();
        let mut parts: Vec<_> = self.tasks.into_iter().zip(dependencies).map(Some).collect();
        let tasks = order
            .into_iter()
            .map(|i| {
                let (task, dependencies) =
                    parts[i].take().expect("each task stands once in the order");
                NewTask {
                    id: ids[i],
                    parent: parents[i].as_ref().map(|p| match p {
                        Target::Local(p) => ids[*p],
                        Target::Stored(id) => *id,
                    }),
                    name: task.name,
                    user_id: task.user_id,
                    priority: task.priority,
                    dependencies,
                    specification: task.specification,
                    copied_from: None,
                    path: task.path,
                }
            })
            .collect();
        Ok(ResolvedTasks {
            tasks,
            aliases,
            chosen_ids,
            joins,
        })
    }

    /// Indices with parents before children, siblings as given; refuses what is no tree.
    fn order(&self, parents: &[Option<Target>]) -> Result<Vec<usize>, Rejection> {
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); parents.len()];
        let (mut tops, mut roots, mut joins) = (Vec::new(), Vec::new(), false);
        for (i, parent) in parents.iter().enumerate() {
            match parent {
                Some(Target::Local(p)) => children[*p].push(i),
                Some(Target::Stored(_)) => {
                    joins = true;
                    tops.push(i);
                }
                None => {
                    roots.push(i);
                    tops.push(i);
                }
            }
        }
        let tree_fault = |i: usize, reason: &str, expected: &str| {
            let path: Vec<_> = self.tasks[i]
                .path
                .iter()
                .cloned()
                .chain(["parent_id".into()])
                .collect();
            Violation::new(&path, reason, expected, &Value::Null)
        };
        if joins && !roots.is_empty() {
            let expected = "a parent for each task, because the call joins an existing flow";
            let faults = roots
                .iter()
                .map(|&i| tree_fault(i, "Task has no parent", expected))
                .collect();
            return Err(Rejection::new(Kind::InvalidTree, faults));
        }
        if roots.len() > 1 {
            let faults = roots.iter().map(|&i| {
                tree_fault(
                    i,
                    "Multiple root tasks found",
                    "exactly one task without a parent",
                )
            });
            return Err(Rejection::new(
                Kind::InvalidTree,
                faults.take(limits::VIOLATIONS_MAX).collect(),
            ));
        }
        let mut order = Vec::with_capacity(parents.len());
        tops.reverse();
        while let Some(i) = tops.pop() {
            order.push(i);
            tops.extend(children[i].iter().rev());
        }
        if order.len() < parents.len() {
            let mut reached = vec![false; parents.len()];
            order.iter().for_each(|&i| reached[i] = true);
            let lost = (0..parents.len())
                .find(|&i| !reached[i])
                .expect("some task was not reached");
            let fault = tree_fault(
                lost,
                "Circular parent-child relationship",
                "parents that lead to one root",
            );
            return Err(Rejection::one(Kind::InvalidTree, fault));
        }
        Ok(order)
    }
}

/// Turns references into dependencies; the same task twice is a fault.
///
/// # Errors
/// All violations.
pub fn resolve_dependencies(
    given: &[(TaskRef, bool)],
    mut find: impl FnMut(&TaskRef) -> Result<TaskId, Violation>,
) -> Result<Vec<Dependency>, Vec<Violation>> {
    let mut faults = Vec::new();
    let mut seen = hashbrown::HashSet::with_capacity(given.len());
    let mut list = Vec::with_capacity(given.len());
    for (reference, required) in given {
        match find(reference) {
            Err(fault) => faults.push(fault),
            Ok(id) if !seen.insert(id) => {
                let actual = Value::String(reference.text.clone());
                faults.push(Violation::new(
                    &reference.path,
                    "Duplicate dependency",
                    "each task once",
                    &actual,
                ));
            }
            Ok(id) => list.push(Dependency {
                id,
                required: *required,
            }),
        }
    }
    if faults.is_empty() {
        Ok(list)
    } else {
        Err(faults)
    }
}

/// Reads a reference that can only mean a stored task.
///
/// # Errors
/// The violation.
pub fn stored_ref(reference: &TaskRef) -> Result<TaskId, Violation> {
    TaskId::parse(&reference.text).map_err(|_| {
        let actual = Value::String(reference.text.clone());
        Violation::new(&reference.path, "Invalid UUID format", "a UUID v4", &actual)
    })
}

/// What texts mean within a call. Ids beat names; a name counts when one task has it.
struct Names<'a> {
    ids: HashMap<String, usize>,
    /// `None`: several tasks have the name.
    names: HashMap<&'a str, Option<usize>>,
}

impl<'a> Names<'a> {
    fn of(tasks: &'a [TaskFields]) -> Result<Self, Rejection> {
        let mut ids = HashMap::with_capacity(tasks.len());
        let mut names: HashMap<&str, Option<usize>> = HashMap::with_capacity(tasks.len());
        let mut faults = Vec::new();
        for (i, task) in tasks.iter().enumerate() {
            names
                .entry(&task.name)
                .and_modify(|n| *n = None)
                .or_insert(Some(i));
            let text = match &task.id {
                None => continue,
                Some(GivenId::Stored(id)) => id.to_string(),
                Some(GivenId::Alias(alias)) => alias.clone(),
            };
            if ids.insert(text.clone(), i).is_some() {
                let path: Vec<_> = task.path.iter().cloned().chain(["id".into()]).collect();
                faults.push(Violation::new(
                    &path,
                    "Duplicate id",
                    "an id that no other task of the call has",
                    &text.into(),
                ));
            }
        }
        faults.truncate(limits::VIOLATIONS_MAX);
        if faults.is_empty() {
            Ok(Self { ids, names })
        } else {
            Err(Rejection::new(Kind::Invalid, faults))
        }
    }

    fn find(&self, reference: &TaskRef) -> Result<Target, Violation> {
        let text = reference.text.as_str();
        let fault = |reason: &str, expected: &str| {
            Violation::new(
                &reference.path,
                reason,
                expected,
                &Value::String(text.to_owned()),
            )
        };
        if let Some(&i) = self.ids.get(text) {
            return Ok(Target::Local(i));
        }
        if looks_like_uuid(text) {
            let uuid =
                parse_uuid_v4(text).map_err(|_| fault("Invalid UUID format", "a UUID v4"))?;
            let id = TaskId(uuid);
            return Ok(self
                .ids
                .get(id.to_string().as_str())
                .map_or(Target::Stored(id), |&i| Target::Local(i)));
        }
        match self.names.get(text) {
            Some(Some(i)) => Ok(Target::Local(*i)),
            Some(None) => Err(fault(
                "Ambiguous name",
                "an id, because several tasks of the call have this name",
            )),
            None => Err(fault(
                "Invalid UUID format",
                "a UUID v4, or the id or name of a task in this call",
            )),
        }
    }

    /// What the caller wrote for each task -> its id: the given id, else a name that is its alone.
    fn aliases(&self, tasks: &[TaskFields], ids: &[TaskId]) -> Vec<(String, TaskId)> {
        let mut aliases = Vec::with_capacity(tasks.len());
        for (i, task) in tasks.iter().enumerate() {
            match &task.id {
                Some(GivenId::Alias(alias)) => aliases.push((alias.clone(), ids[i])),
                Some(GivenId::Stored(id)) => aliases.push((id.to_string(), ids[i])),
                None if self.names.get(task.name.as_str()) == Some(&Some(i))
                    && !self.ids.contains_key(&task.name) =>
                {
                    aliases.push((task.name.clone(), ids[i]));
                }
                None => {}
            }
        }
        aliases
    }
}
