//! Finds the descendants that a group does not wait for: those that wait, even indirectly, for the group.
//!
//! "Waits for" runs from a task to its dependencies and from a group to its covered descendants,
//! whatever their status; a descendant that waits for its group stands on a cycle with it. Outer
//! groups are settled first: once a group no longer waits for those descendants, inner groups may
//! wait for them.

use super::state::{Flow, NONE};
use hashbrown::{HashMap, HashSet};

/// Steps of the search that spares a running flow the look at all its members when one task is
/// added or changed; beyond, the look is cheaper than many such searches.
const SEARCH_STEPS_MAX: usize = 256;

/// Nodes of the graph: `i` is task i ending, `n + i` is the whole subtree of task i ending.
struct Graph<'a> {
    flow: &'a Flow,
    run: u32,
    /// Groups whose own waiting is settled and closes no cycle any more.
    settled: HashSet<u32>,
}

impl Graph<'_> {
    fn covers(&self, i: u32) -> bool {
        // `NONE` stands for a dependency whose task is created later in the same append.
        let task = self.flow.tasks.get(i as usize);
        task.is_some_and(|t| t.run == self.run && !t.deleted)
    }

    /// The `k`-th node that `node` waits for; `None` when there are no more, `Some(NONE)` for a
    /// place without a node.
    fn successor(&self, node: u32, k: usize) -> Option<u32> {
        let n = self.flow.tasks.len() as u32;
        if node < n {
            let task = self.flow.at(node);
            if let Some(edge) = task.dependencies.get(k) {
                return Some(if self.covers(edge.task) {
                    edge.task
                } else {
                    NONE
                });
            }
            if !task.is_group() || self.settled.contains(&node) {
                return None;
            }
            task.children
                .get(k - task.dependencies.len())
                .map(|c| n + c)
        } else {
            let i = node - n;
            if k == 0 {
                return Some(if self.covers(i) { i } else { NONE });
            }
            self.flow.at(i).children.get(k - 1).map(|c| n + c)
        }
    }

    /// Strongly connected components with more than one node, their tasks only (Tarjan, without
    /// recursion). Cost: O(members + edges).
    fn cycles(&self, members: &[u32]) -> Vec<Vec<u32>> {
        let n = self.flow.tasks.len() as u32;
        // Place in the order of discovery; `low` and `on_stack` go by it.
        let mut order: HashMap<u32, usize> = HashMap::new();
        let (mut low, mut on_stack) = (Vec::new(), Vec::new());
        let (mut stack, mut frames): (Vec<u32>, Vec<(u32, usize, usize)>) = (vec![], vec![]);
        let mut cycles = Vec::new();
        for &start in members.iter().filter(|&&i| self.covers(i)) {
            let mut found = (!order.contains_key(&start)).then_some(start);
            loop {
                if let Some(node) = found.take() {
                    let v = low.len();
                    order.insert(node, v);
                    low.push(v);
                    on_stack.push(true);
                    stack.push(node);
                    frames.push((node, v, 0));
                }
                let Some((node, v, k)) = frames.last_mut() else {
                    break;
                };
                let v = *v;
                match self.successor(*node, *k) {
                    Some(next) => {
                        *k += 1;
                        if next == NONE {
                            continue;
                        }
                        match order.get(&next) {
                            None => found = Some(next),
                            Some(&w) if on_stack[w] => low[v] = low[v].min(w),
                            Some(_) => {}
                        }
                    }
                    None => {
                        let root = *node;
                        frames.pop();
                        if let Some((_, parent, _)) = frames.last() {
                            low[*parent] = low[*parent].min(low[v]);
                        }
                        if low[v] == v {
                            let from = stack.iter().rposition(|&w| w == root);
                            let component = stack.split_off(from.expect("v is on the stack"));
                            component.iter().for_each(|w| on_stack[order[w]] = false);
                            if component.len() > 1 {
                                cycles.push(component.into_iter().filter(|&w| w < n).collect());
                            }
                        }
                    }
                }
            }
        }
        cycles
    }
}

impl Flow {
    /// Sets `excluded` of the run's members. Cost: O(members) when no dependency names a group,
    /// else O((members + edges) * depth of the nesting of such groups).
    pub(super) fn mark_excluded(&mut self, run: u32, members: &[u32]) {
        for &i in members {
            if self.at(i).run == run {
                self.at_mut(i).excluded = 0;
            }
        }
        if self.edges_to_groups == 0 {
            return;
        }
        let mut settled = HashSet::new();
        loop {
            let graph = Graph {
                flow: self,
                run,
                settled,
            };
            let cycles = graph.cycles(members);
            settled = graph.settled;
            if cycles.is_empty() {
                return;
            }
            for tasks in cycles {
                let open = |i: &u32| self.at(*i).is_group() && !settled.contains(i);
                let Some(depth) = tasks
                    .iter()
                    .filter(|i| open(i))
                    .map(|&i| self.depth(i))
                    .min()
                else {
                    // Cannot happen: dependencies alone are acyclic, so a cycle leads through a group.
                    return;
                };
                let outer: HashSet<u32> = tasks
                    .iter()
                    .copied()
                    .filter(|i| open(i) && self.depth(*i) == depth)
                    .collect();
                settled.extend(outer.iter().copied());
                for &i in &tasks {
                    let ancestors: Vec<u32> = self.ancestors(i).collect();
                    if ancestors.len() > depth
                        && outer.contains(&ancestors[ancestors.len() - 1 - depth])
                    {
                        self.at_mut(i).excluded |= 1 << depth;
                    }
                }
            }
        }
    }

    /// Whether a covered task may wait for itself through a group: false only when it does not.
    /// A cycle through the task comes back to it from a dependent or from a group around it.
    /// Cost: O(what it waits for), at most [`SEARCH_STEPS_MAX`] steps.
    pub(super) fn may_wait_for_itself(&self, i: u32) -> bool {
        let task = self.at(i);
        if self.edges_to_groups == 0 || (task.dependencies.is_empty() && task.children.is_empty()) {
            return false;
        }
        let graph = Graph {
            flow: self,
            run: task.run,
            settled: HashSet::new(),
        };
        let around: Vec<u32> = self
            .ancestors(i)
            .filter(|&a| self.at(a).is_group())
            .collect();
        let (mut seen, mut stack, mut steps) = (HashSet::new(), vec![i], 0);
        while let Some(node) = stack.pop() {
            for next in (0..).map_while(|k| graph.successor(node, k)) {
                steps += 1;
                if next == i || around.contains(&next) || steps > SEARCH_STEPS_MAX {
                    return true;
                }
                if next != NONE && seen.insert(next) {
                    stack.push(next);
                }
            }
        }
        false
    }
}
