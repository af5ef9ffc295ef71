//! References within a call: ids, aliases and names become task ids, and the tasks a tree.
//! spec: semantics / Ids, Trees and flows; validation / Task Tree Validation

use super::{NewTask, ResolvedTasks, TaskList};
use crate::TaskId;
use crate::flow::{Dependency, Kind, Rejection};
use crate::ids::parse_uuid_v4;
use crate::limits;
use crate::task::spec::{GivenId, TaskFields, TaskRef, looks_like_uuid};
use crate::violation::Violation;
use hashbrown::HashMap;
use serde_json::Value;

/// What a fresh id is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fresh {
    /// A task without parent, whose id becomes that of a new flow.
    Root,
    /// Any other task.
    Below,
}

/// How a reference of the call was understood.
enum Target {
    /// A task of the call.
    Local(usize),
    /// A stored task.
    Stored(TaskId),
}

impl TaskList {
    /// Gives ids to the tasks (`mint` makes fresh ones), resolves references within the call, and
    /// orders parents before children. Cost: O(tasks + dependencies).
    ///
    /// # Errors
    /// `Invalid`: duplicate ids, references that mean nothing or several tasks, and what is wrong with
    /// the tasks by themselves, first. `InvalidTree`: several
    /// roots, none, a parent cycle, or `parent_id` against the nesting.
    pub fn resolve(
        self,
        mut mint: impl FnMut(Fresh) -> TaskId,
    ) -> Result<ResolvedTasks, Rejection> {
        let ids: Vec<TaskId> = self
            .tasks
            .iter()
            .zip(&self.around)
            .map(|(t, around)| match t.id {
                Some(GivenId::Stored(id)) => id,
                Some(GivenId::Alias(_)) | None if t.parent.is_none() && around.is_none() => {
                    mint(Fresh::Root)
                }
                Some(GivenId::Alias(_)) | None => mint(Fresh::Below),
            })
            .collect();
        let (names, duplicates) = Names::of(&self.tasks);
        let mut faults = self.faults.clone();
        faults.extend(duplicates);
        let mut tree_faults = Vec::new();
        let mut parents: Vec<Option<Target>> = Vec::with_capacity(ids.len());
        for (task, around) in self.tasks.iter().zip(&self.around) {
            let written = match &task.parent {
                None => None,
                Some(reference) => match names.find(reference) {
                    Ok(target) => Some(target),
                    Err(fault) => {
                        Violation::report(&mut faults, || fault);
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
                    Violation::report(&mut tree_faults, || {
                        Violation::new(&at, "Does not match the tree", expected, &actual)
                    });
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
                Err(list) => faults.extend(list),
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
        let (aliases, shared_names) = names.words(&self.tasks, &ids);
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
            shared_names,
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
                .take(limits::VIOLATIONS_MAX)
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
/// All violations, at most [`limits::VIOLATIONS_MAX`].
pub fn resolve_dependencies(
    given: &[(TaskRef, bool)],
    mut find: impl FnMut(&TaskRef) -> Result<TaskId, Violation>,
) -> Result<Vec<Dependency>, Vec<Violation>> {
    let mut faults = Vec::new();
    let mut seen = hashbrown::HashSet::with_capacity(given.len());
    let mut list = Vec::with_capacity(given.len());
    for (reference, required) in given {
        match find(reference) {
            Err(fault) => Violation::report(&mut faults, || fault),
            Ok(id) if !seen.insert(id) => Violation::report(&mut faults, || {
                let actual = Value::String(reference.text.clone());
                let reason = "Duplicate dependency";
                Violation::new(&reference.path, reason, "each task once", &actual)
            }),
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
    /// The names, and ids that several tasks have.
    fn of(tasks: &'a [TaskFields]) -> (Self, Vec<Violation>) {
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
        (Self { ids, names }, faults)
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

    /// What the caller wrote for each task -> its id: the given id, else a name that is its alone;
    /// and names that are not.
    fn words(&self, tasks: &[TaskFields], ids: &[TaskId]) -> (Vec<Word>, Vec<Word>) {
        let (mut aliases, mut shared) = (Vec::with_capacity(tasks.len()), Vec::new());
        for (i, task) in tasks.iter().enumerate() {
            match &task.id {
                Some(GivenId::Alias(alias)) => aliases.push((alias.clone(), ids[i])),
                Some(GivenId::Stored(id)) => aliases.push((id.to_string(), ids[i])),
                None if self.names.get(task.name.as_str()) == Some(&Some(i))
                    && !self.ids.contains_key(&task.name) =>
                {
                    aliases.push((task.name.clone(), ids[i]));
                }
                None => shared.push((task.name.clone(), ids[i])),
            }
        }
        (aliases, shared)
    }
}

type Word = (String, TaskId);
