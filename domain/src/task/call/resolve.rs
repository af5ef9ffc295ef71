//! References within a call: ids, aliases and names become task ids, and the tasks a tree.
//! spec: semantics / Ids, Trees and flows; validation / Task Tree Validation

use super::{NewTask, ResolvedTasks, TaskList};
use crate::TaskId;
use crate::flow::{CallTask, Dependency, Fault, ReferenceAt, Refusal, TreeFault, When, report};
use crate::limits;
use crate::task::spec::{GivenId, TaskFields, TaskRef, looks_like_uuid};
use crate::task::wiring;
use hashbrown::HashMap;

/// The purpose of a fresh id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fresh {
    /// A task without parent, whose id becomes that of a new flow.
    Root,
    /// Any other task.
    Below,
}

/// Where the tasks of a call go, however they are ordered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Place<'a> {
    /// Into a new flow, whose root is this task.
    Root(&'a TaskFields),
    /// Into the flow of this stored task.
    Below(TaskId),
}

/// How a reference of the call was understood.
enum Target {
    /// A task of the call.
    Local(usize),
    /// A stored task.
    Stored(TaskId),
    /// Some task: what was written cannot be told.
    Untold,
}

impl Target {
    fn id(&self, ids: &[TaskId]) -> TaskId {
        match self {
            Self::Local(i) => ids[*i],
            Self::Stored(id) => *id,
            Self::Untold => TaskId::UNTOLD,
        }
    }
}

/// Why the tasks of a call cannot be resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Unresolved {
    /// `Invalid`, with what is wrong with the tasks by themselves first, and `InvalidTree`, in this order. Never empty.
    pub refusals: Vec<Refusal>,
    /// The tasks as far as they are understood, to find what else is wrong: [`Flow::refusals_of_new`]. `None`: several
    /// tasks have the same id, so nothing more can be said of references.
    ///
    /// [`Flow::refusals_of_new`]: crate::flow::Flow::refusals_of_new
    pub understood: Option<Box<ResolvedTasks>>,
}

impl Unresolved {
    /// The refusal that comes first.
    ///
    /// # Panics
    /// Never: there is one.
    #[must_use]
    pub fn first(self) -> Refusal {
        let mut refusals = self.refusals.into_iter();
        refusals.next().expect("tasks are unresolved for a reason")
    }
}

impl TaskList {
    /// Where the tasks go, as [`Self::resolve`] decides it; `None` only for a list that it refuses. Of a list that it
    /// refuses for having both a root and a stored parent, the root. Cost: O(tasks).
    #[must_use]
    pub fn place(&self) -> Option<Place<'_>> {
        let mut tops = self.fields().filter(|(_, around)| around.is_none());
        if let Some((root, _)) = tops.find(|(task, _)| task.parent.is_none()) {
            return Some(Place::Root(root));
        }
        let (names, _) = Names::of(&self.tasks);
        let mut tasks = self.tasks.iter().enumerate();
        tasks.find_map(|(i, task)| {
            let of = CallTask::Index(i);
            let parent = task.parent.as_ref().filter(|_| self.around[i].is_none())?;
            match names.find(parent, ReferenceAt::Parent { of }) {
                Ok(Target::Stored(id)) => Some(Place::Below(id)),
                Ok(Target::Local(_) | Target::Untold) | Err(_) => None,
            }
        })
    }

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
    ) -> Result<ResolvedTasks, Unresolved> {
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
        let is_ambiguous = !duplicates.is_empty();
        let mut faults: Vec<Fault> = self.faults.iter().cloned().map(Fault::from).collect();
        duplicates
            .into_iter()
            .for_each(|fault| report(&mut faults, fault));
        let mut tree_faults = Vec::new();
        let mut parents: Vec<Option<Target>> = Vec::with_capacity(ids.len());
        for (i, (task, around)) in self.tasks.iter().zip(&self.around).enumerate() {
            let of = CallTask::Index(i);
            let written = match &task.parent {
                None => None,
                Some(reference) => match names.find(reference, ReferenceAt::Parent { of }) {
                    Ok(target) => Some(target),
                    Err(fault) => {
                        report(&mut faults, fault);
                        Some(Target::Untold)
                    }
                },
            };
            parents.push(match (written, *around) {
                (None, around) => around.map(Target::Local),
                (Some(Target::Local(p)), Some(a)) if p == a => Some(Target::Local(a)),
                (Some(Target::Untold), Some(a)) => Some(Target::Local(a)),
                (Some(Target::Local(_) | Target::Stored(_)), Some(a)) => {
                    let parent = task.parent.as_ref();
                    let parent = parent.map(|p| p.text.clone()).unwrap_or_default();
                    let fault = TreeFault::AgainstNesting { task: of, parent };
                    report(&mut tree_faults, fault);
                    Some(Target::Local(a))
                }
                (written, None) => written,
            });
        }
        let mut dependencies: Vec<Vec<Dependency>> = Vec::with_capacity(ids.len());
        let mut are_told = true;
        for (i, task) in self.tasks.iter().enumerate() {
            let of = CallTask::Index(i);
            let (list, wrong) = resolve_dependencies(of, &task.dependencies, |reference, at| {
                names.find(reference, at).map(|target| target.id(&ids))
            });
            are_told &= wrong.is_empty() && list.iter().all(|it| it.id != TaskId::UNTOLD);
            dependencies.push(list);
            wrong
                .into_iter()
                .for_each(|fault| report(&mut faults, fault));
        }
        let mut wired = vec![None; ids.len()];
        // Without its dependencies nothing can be said of what is wired to them.
        if are_told {
            let specified = self
                .tasks
                .iter()
                .enumerate()
                .filter(|(_, t)| t.is_specified);
            for (i, task) in specified {
                let name = |name: &str| names.stored_id(name, &ids);
                match wiring::resolve(&task.specification, &dependencies[i], name) {
                    Ok(specification) => wired[i] = specification,
                    Err(list) => list.into_iter().for_each(|unresolved| {
                        let fault = Fault::unresolved(CallTask::Index(i), unresolved);
                        report(&mut faults, fault);
                    }),
                }
            }
        }
        let (order, misplaced) = Self::order(&parents);
        misplaced
            .into_iter()
            .for_each(|fault| report(&mut tree_faults, fault));
        let joins = parents.iter().find_map(|p| match p {
            Some(Target::Stored(id)) => Some(*id),
            Some(Target::Local(_) | Target::Untold) | None => None,
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
                let (mut task, dependencies) =
                    parts[i].take().expect("each task stands once in the order");
                if let Some(specification) = wired[i].take() {
                    task.specification = specification;
                }
                NewTask {
                    id: ids[i],
                    parent: parents[i].as_ref().map(|parent| parent.id(&ids)),
                    name: task.name,
                    user_id: task.user_id,
                    priority: task.priority,
                    dependencies,
                    specification: task.specification,
                    copied_from: None,
                    labels: task.labels,
                }
            })
            .collect();
        let resolved = ResolvedTasks {
            tasks,
            ids,
            aliases,
            shared_names,
            chosen_ids,
            joins,
        };
        let mut refusals = Vec::new();
        if !faults.is_empty() {
            refusals.push(Refusal::Invalid(faults));
        }
        if !tree_faults.is_empty() {
            refusals.push(Refusal::InvalidTree(tree_faults));
        }
        if refusals.is_empty() {
            return Ok(resolved);
        }
        let understood = (!is_ambiguous).then(|| Box::new(resolved));
        Err(Unresolved {
            refusals,
            understood,
        })
    }

    /// Indices with parents before children, siblings as given, and why the tasks are no tree. Tasks below themselves
    /// come last.
    fn order(parents: &[Option<Target>]) -> (Vec<usize>, Vec<TreeFault>) {
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); parents.len()];
        let (mut tops, mut roots, mut joins) = (Vec::new(), Vec::new(), false);
        for (i, parent) in parents.iter().enumerate() {
            match parent {
                Some(Target::Local(p)) => children[*p].push(i),
                Some(Target::Stored(_)) => {
                    joins = true;
                    tops.push(i);
                }
                Some(Target::Untold) => tops.push(i),
                None => {
                    roots.push(i);
                    tops.push(i);
                }
            }
        }
        let of_roots = |fault: fn(CallTask) -> TreeFault| {
            let roots = roots.iter().take(limits::VIOLATIONS_MAX);
            roots.map(|&i| fault(CallTask::Index(i))).collect()
        };
        let mut faults: Vec<TreeFault> = if joins && !roots.is_empty() {
            of_roots(|task| TreeFault::WithoutParent { task })
        } else if roots.len() > 1 {
            of_roots(|task| TreeFault::SeveralRoots { task })
        } else {
            Vec::new()
        };
        let mut order = Vec::with_capacity(parents.len());
        tops.reverse();
        while let Some(i) = tops.pop() {
            order.push(i);
            tops.extend(children[i].iter().rev());
        }
        if order.len() < parents.len() {
            let mut reached = vec![false; parents.len()];
            order.iter().for_each(|&i| reached[i] = true);
            let lost: Vec<usize> = (0..parents.len()).filter(|&i| !reached[i]).collect();
            let cycle = Self::cycle_above(lost[0], parents);
            let task = cycle[0];
            faults.push(TreeFault::ParentCycle { task, cycle });
            order.extend(lost);
        }
        (order, faults)
    }

    /// The cycle that the parents of a task lead to, from its first task on, which is repeated at the end.
    fn cycle_above(lost: usize, parents: &[Option<Target>]) -> Vec<CallTask> {
        let parent = |i: usize| match &parents[i] {
            Some(Target::Local(parent)) => *parent,
            Some(Target::Stored(_) | Target::Untold) | None => i,
        };
        // After as many steps as there are tasks, the way up is on the cycle.
        let inside = (0..parents.len()).fold(lost, |i, _| parent(i));
        let around = |from| std::iter::successors(Some(parent(from)), move |&i| Some(parent(i)));
        let rest = around(inside).take_while(|&i| i != inside);
        let first = rest.min().map_or(inside, |other| other.min(inside));
        let rest = around(first).take_while(|&i| i != first);
        let cycle = std::iter::once(first).chain(rest).chain([first]);
        cycle.map(CallTask::Index).collect()
    }
}

/// Turns the references of the task `of` into dependencies, and tells what is wrong with them, the same task twice
/// included; at most [`limits::VIOLATIONS_MAX`] faults. Each dependency keeps its index: one with a fault stands for no
/// task.
pub fn resolve_dependencies(
    of: CallTask,
    given: &[(TaskRef, When)],
    mut find: impl FnMut(&TaskRef, ReferenceAt) -> Result<TaskId, Fault>,
) -> (Vec<Dependency>, Vec<Fault>) {
    let mut faults = Vec::new();
    let mut seen = hashbrown::HashSet::with_capacity(given.len());
    let mut list = Vec::with_capacity(given.len());
    for (index, (reference, when)) in given.iter().enumerate() {
        let at = ReferenceAt::Dependency { of, index };
        let id = match find(reference, at) {
            // What is wrong with it was told when it was read.
            _ if reference.is_unread() => TaskId::UNTOLD,
            Err(fault) => {
                report(&mut faults, fault);
                TaskId::UNTOLD
            }
            Ok(id) if !seen.insert(id) => {
                let text = reference.text.clone();
                report(&mut faults, Fault::DuplicateDependency { at, text });
                TaskId::UNTOLD
            }
            Ok(id) => id,
        };
        list.push(Dependency { id, when: *when });
    }
    (list, faults)
}

/// What texts mean within a call. Ids beat names; a name counts when one task has it.
struct Names<'a> {
    ids: HashMap<String, usize>,
    /// `None`: several tasks have the name.
    names: HashMap<&'a str, Option<usize>>,
}

impl<'a> Names<'a> {
    /// The names, and ids that several tasks have.
    fn of(tasks: &'a [TaskFields]) -> (Self, Vec<Fault>) {
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
                let task = CallTask::Index(i);
                report(&mut faults, Fault::DuplicateId { task, text });
            }
        }
        (Self { ids, names }, faults)
    }

    /// What a reference means, which stands at `at`.
    fn find(&self, reference: &TaskRef, at: ReferenceAt) -> Result<Target, Fault> {
        let given = &reference.text;
        let text = || given.clone();
        if reference.is_unread() {
            return Ok(Target::Untold);
        }
        if let Some(&i) = self.ids.get(given) {
            return Ok(Target::Local(i));
        }
        if looks_like_uuid(given) {
            let malformed = || Fault::MalformedId { at, text: text() };
            let id = reference.id().ok_or_else(malformed)?;
            return Ok(self
                .ids
                .get(id.to_string().as_str())
                .map_or(Target::Stored(id), |&i| Target::Local(i)));
        }
        match self.names.get(given.as_str()) {
            Some(Some(i)) => Ok(Target::Local(*i)),
            Some(None) => Err(Fault::AmbiguousName { at, text: text() }),
            None => Err(Fault::UnknownReference { at, text: text() }),
        }
    }

    /// The id of the task that a text means, if it means one.
    fn stored_id(&self, text: &str, ids: &[TaskId]) -> Option<TaskId> {
        let reference = TaskRef {
            text: text.to_owned(),
        };
        let at = ReferenceAt::Parent {
            of: CallTask::Index(0),
        };
        match self.find(&reference, at).ok()? {
            Target::Untold => None,
            found @ (Target::Local(_) | Target::Stored(_)) => Some(found.id(ids)),
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
