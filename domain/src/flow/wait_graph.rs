//! The graph of what waits for what, which has no cycle.
//!
//! A task waits for its dependencies, whatever satisfies them, and a group for all tasks below it. A command that
//! would close a cycle of such steps is refused, so no task ever waits for itself. The graph ranges over the whole
//! flow, whatever a run covers and whatever has ended: a run that covers a part has a part of the edges.
//!
//! Owns: the graph as a command would leave it, and the search for cycles. Changes nothing.
//! spec: semantics / Trees and flows

use super::refusal::ClosedBy;
use super::state::{Flow, NONE, Task};
use super::{Dependency, Refusal};
use crate::task::call::NewTask;
use crate::{TaskId, limits};
use hashbrown::{HashMap, HashSet};

/// Cycles in one refusal, those of a task and a group above it left out.
const CYCLES_MAX: usize = 10;

/// A place among the tasks of the flow, followed by the new ones.
type Place = u32;

/// A step of the search: the end of one task, or of a task and everything below it, which stand for the edges from a
/// group to each of its descendants, so that there are no more edges than tasks and dependencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Node {
    Task(Place),
    Subtree(Place),
}

/// What an update changes in the graph.
pub(super) struct Changed<'a> {
    /// The task that is changed.
    pub(super) task: u32,
    /// Its new dependencies, if they change. Ids that name no task are left out.
    pub(super) dependencies: Option<&'a [Dependency]>,
    /// Its new parent, if that changes.
    pub(super) parent: Option<u32>,
    /// Whether it will be a group.
    pub(super) is_group: bool,
}

/// A task as the command would leave it.
struct Vertex {
    is_group: bool,
    /// `NONE` for a dependency that is no edge: it is unknown, or refused by itself.
    dependencies: Vec<Place>,
}

struct WaitGraph<'a> {
    flow: &'a Flow,
    /// Those that differ from what the flow holds, or are new.
    vertices: HashMap<Place, Vertex>,
    /// Children that the command adds to a place.
    added: HashMap<Place, Vec<Place>>,
    /// A child that leaves its parent.
    moved: Option<Place>,
    /// Whether what the flow holds can be on a cycle.
    with_stored: bool,
}

/// Refusals of new tasks that would wait for themselves: one for each dependency on a group above the task, and
/// cycles of which no two share a task. `place_of`: new tasks by id. Cost: O(new tasks * depth + their dependencies);
/// if a task depends on a group that new tasks join, also O(what the new tasks wait for).
pub(super) fn cycles_of_new(
    flow: &Flow,
    new: &[NewTask],
    place_of: &HashMap<TaskId, usize>,
) -> Vec<Refusal> {
    let size = flow.size();
    let place = |k: usize| (size + k) as Place;
    let find = |id: TaskId| match place_of.get(&id) {
        Some(&k) => Some(place(k)),
        None => flow.live(id),
    };
    let mut graph = WaitGraph {
        flow,
        vertices: HashMap::new(),
        added: HashMap::new(),
        moved: None,
        with_stored: false,
    };
    // Stored groups that get descendants.
    let mut joined: HashSet<u32> = HashSet::new();
    let mut parents = Vec::with_capacity(new.len());
    for (k, task) in new.iter().enumerate() {
        let parent = task.parent.and_then(find);
        if let Some(parent) = parent {
            let children = graph.added.entry(parent).or_default();
            if children.is_empty() && (parent as usize) < size {
                let around = std::iter::once(parent).chain(flow.ancestors(parent));
                joined.extend(around.filter(|i| flow.at(*i).is_group()));
            }
            children.push(place(k));
        }
        parents.push(parent);
    }
    // A cycle through what is stored enters it by a dependency on such a group.
    let is_waited_for = |i: &u32| !flow.at(*i).dependents.is_empty();
    graph.with_stored = joined.iter().any(is_waited_for);
    let is_group = |at: Place| match (at as usize).checked_sub(size) {
        Some(k) => new[k].specification.method.is_none(),
        None => flow.at(at).is_group(),
    };
    let parent_of = |at: Place| match (at as usize).checked_sub(size) {
        Some(k) => parents[k],
        None => Some(flow.at(at).parent).filter(|p| *p != NONE),
    };
    let mut refusals = Vec::new();
    for (k, task) in new.iter().enumerate() {
        let mut dependencies = Vec::with_capacity(task.dependencies.len());
        for (index, dependency) in task.dependencies.iter().enumerate() {
            let target = find(dependency.id).filter(|target| *target != place(k));
            let above =
                target.filter(|target| is_group(*target) && is_above(*target, place(k), parent_of));
            if above.is_some() && refusals.len() < limits::VIOLATIONS_MAX {
                let closed_by = match task.copied_from {
                    None => ClosedBy::GroupAbove(index),
                    Some(_) => ClosedBy::Parent { task: task.id },
                };
                refusals.push(Refusal::cycle(&[task.id, dependency.id], closed_by, true));
            }
            graph.with_stored |= target.is_some_and(|target| joined.contains(&target));
            dependencies.push(target.filter(|_| above.is_none()).unwrap_or(NONE));
        }
        let is_group = task.specification.method.is_none();
        let vertex = Vertex {
            is_group,
            dependencies,
        };
        graph.vertices.insert(place(k), vertex);
    }
    let id = |at: Place| match (at as usize).checked_sub(size) {
        Some(k) => new[k].id,
        None => flow.at(at).id,
    };
    let found = graph.cycles((0..new.len()).map(|k| Node::Task(place(k))));
    refusals.extend(found.into_iter().map(|cycle| {
        // A cycle leaves the new tasks, or goes round in them, by a dependency of one of them.
        let first = cycle.steps().position(|(from, to)| {
            matches!((from, to), (Node::Task(at), Node::Task(_)) if at as usize >= size)
        });
        let tasks = cycle.tasks_from(first.unwrap_or_default());
        let copied = tasks.first().filter(|at| **at as usize >= size);
        let copied = copied.filter(|at| new[**at as usize - size].copied_from.is_some());
        let closed_by = match copied {
            None => ClosedBy::Dependencies,
            Some(at) => ClosedBy::Parent { task: id(*at) },
        };
        let tasks: Vec<TaskId> = tasks.iter().map(|at| id(*at)).collect();
        Refusal::cycle(&tasks, closed_by, cycle.has_group())
    }));
    refusals
}

/// Refusals of an update after which a task would wait for itself. Cost: O(what the task and those below it wait for).
pub(super) fn cycles_of_changed(flow: &Flow, changed: &Changed<'_>) -> Vec<Refusal> {
    let i = changed.task;
    let task = flow.at(i);
    let parent = changed.parent.unwrap_or(task.parent);
    let parent_of = |at: Place| {
        let parent = if at == i { parent } else { flow.at(at).parent };
        Some(parent).filter(|p| *p != NONE)
    };
    let targets: Vec<Option<u32>> = match changed.dependencies {
        Some(given) => given.iter().map(|it| flow.live(it.id)).collect(),
        None => task
            .dependencies
            .iter()
            .map(|edge| Some(edge.task))
            .collect(),
    };
    let mut refusals = Vec::new();
    let mut dependencies = Vec::with_capacity(targets.len());
    for (index, target) in targets.iter().enumerate() {
        let target = target.filter(|target| *target != i);
        let above =
            target.filter(|target| flow.at(*target).is_group() && is_above(*target, i, parent_of));
        if let Some(group) = above
            && refusals.len() < limits::VIOLATIONS_MAX
        {
            let closed_by = match changed.dependencies {
                Some(_) => ClosedBy::GroupAbove(index),
                None => ClosedBy::Parent { task: task.id },
            };
            let tasks = [task.id, flow.at(group).id];
            refusals.push(Refusal::cycle(&tasks, closed_by, true));
        }
        dependencies.push(target.filter(|_| above.is_none()).unwrap_or(NONE));
    }
    let is_group = changed.is_group;
    let mut graph = WaitGraph {
        flow,
        vertices: HashMap::new(),
        added: HashMap::new(),
        moved: changed.parent.map(|_| i),
        with_stored: true,
    };
    let vertex = Vertex {
        is_group,
        dependencies,
    };
    graph.vertices.insert(i, vertex);
    if let Some(parent) = changed.parent {
        graph.added.insert(parent, vec![i]);
    }
    // An edge that the update adds begins at the task, or leads to what is below it.
    let found = graph.cycles([Node::Task(i), Node::Subtree(i)].into_iter());
    refusals.extend(found.into_iter().map(|cycle| {
        let first = cycle.steps().position(|(from, _)| from == Node::Task(i));
        let tasks = cycle.tasks_from(first.unwrap_or_default());
        let depends = cycle.steps().find_map(|step| match step {
            (Node::Task(from), Node::Task(to)) if from == i => Some(to),
            (Node::Task(_) | Node::Subtree(_), Node::Task(_) | Node::Subtree(_)) => None,
        });
        let index = depends.and_then(|to| targets.iter().position(|it| *it == Some(to)));
        let closed_by = match (changed.dependencies, index) {
            (Some(_), Some(index)) => ClosedBy::Dependency(index),
            (Some(_), None) | (None, _) if changed.parent.is_some() => {
                ClosedBy::Parent { task: task.id }
            }
            (Some(_), None) | (None, _) => ClosedBy::Method { task: task.id },
        };
        let tasks: Vec<TaskId> = tasks.iter().map(|at| flow.at(*at).id).collect();
        Refusal::cycle(&tasks, closed_by, cycle.has_group())
    }));
    refusals
}

/// Whether `group` is above `at`. Cost: O(depth).
fn is_above(group: Place, at: Place, parent_of: impl Fn(Place) -> Option<Place>) -> bool {
    let above = std::iter::successors(parent_of(at), |at| parent_of(*at));
    // A tree that is too deep, or no tree, is refused for that.
    above.take(limits::TREE_DEPTH_MAX).any(|at| at == group)
}

/// Nodes, each of which waits for the next, and the last for the first.
struct Cycle(Vec<Node>);

impl Cycle {
    fn steps(&self) -> impl Iterator<Item = (Node, Node)> + '_ {
        let next = self.0.iter().cycle().skip(1);
        self.0.iter().copied().zip(next.copied())
    }

    /// The tasks, beginning at or behind the node with this index.
    fn tasks_from(&self, first: usize) -> Vec<Place> {
        let nodes = self.0.iter().cycle().skip(first).take(self.0.len());
        let task = |node: &Node| match node {
            Node::Task(at) => Some(*at),
            Node::Subtree(_) => None,
        };
        nodes.filter_map(task).collect()
    }

    fn has_group(&self) -> bool {
        self.0.iter().any(|node| matches!(node, Node::Subtree(_)))
    }
}

impl WaitGraph<'_> {
    fn stored(&self, at: Place) -> Option<&Task> {
        self.flow.tasks.get(at as usize)
    }

    /// The `k`-th node that a node waits for: `None` behind the last, `Some(None)` if this one does not count.
    fn successor(&self, node: Node, k: usize) -> Option<Option<Node>> {
        match node {
            Node::Subtree(at) if k == 0 => Some(Some(Node::Task(at))),
            Node::Subtree(at) => self.child(at, k - 1),
            Node::Task(at) => {
                let (is_group, count) = match self.vertices.get(&at) {
                    Some(vertex) => (vertex.is_group, vertex.dependencies.len()),
                    None => {
                        let task = self.stored(at)?;
                        (task.is_group(), task.dependencies.len())
                    }
                };
                match k.checked_sub(count) {
                    None => Some(self.dependency(at, k).map(Node::Task)),
                    Some(k) if is_group => self.child(at, k),
                    Some(_) => None,
                }
            }
        }
    }

    fn dependency(&self, at: Place, k: usize) -> Option<Place> {
        let target = match self.vertices.get(&at) {
            Some(vertex) => vertex.dependencies.get(k).copied()?,
            None => self.stored(at)?.dependencies.get(k)?.task,
        };
        let is_stored = (target as usize) < self.flow.size();
        (target != NONE && (self.with_stored || !is_stored)).then_some(target)
    }

    fn child(&self, at: Place, k: usize) -> Option<Option<Node>> {
        let known = self.stored(at).map_or(&[][..], |task| &task.children);
        let added = self.added.get(&at).map_or(&[][..], Vec::as_slice);
        match known.get(k) {
            Some(child) if self.moved == Some(*child) => Some(None),
            Some(child) => Some(Some(Node::Subtree(*child))),
            None => {
                let child = added.get(k - known.len())?;
                Some(Some(Node::Subtree(*child)))
            }
        }
    }

    /// Cycles that can be reached from `starts`, no two of which share a node; at least one if there are any, and at
    /// most [`CYCLES_MAX`]. Depth-first, without recursion. Cost: O(nodes + edges that can be reached).
    fn cycles(&self, starts: impl Iterator<Item = Node>) -> Vec<Cycle> {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            OnPath,
            Done,
        }
        let mut marks: HashMap<Node, Mark> = HashMap::new();
        let mut cycles = Vec::new();
        for start in starts {
            if cycles.len() >= CYCLES_MAX {
                break;
            }
            if marks.contains_key(&start) {
                continue;
            }
            marks.insert(start, Mark::OnPath);
            let mut path = vec![(start, 0)];
            while let Some((node, k)) = path.last_mut() {
                let Some(successor) = self.successor(*node, *k) else {
                    marks.insert(*node, Mark::Done);
                    path.pop();
                    continue;
                };
                *k += 1;
                let Some(next) = successor else {
                    continue;
                };
                match marks.get(&next) {
                    None => {
                        marks.insert(next, Mark::OnPath);
                        path.push((next, 0));
                    }
                    Some(Mark::OnPath) => {
                        let from = path.iter().position(|(node, _)| *node == next);
                        let from = from.expect("a node on the path is in it");
                        cycles.push(Cycle(path[from..].iter().map(|(node, _)| *node).collect()));
                        // Nothing on the way is visited again: it leads to this cycle.
                        for (node, _) in path.drain(..) {
                            marks.insert(node, Mark::Done);
                        }
                    }
                    Some(Mark::Done) => {}
                }
            }
        }
        cycles
    }
}
