//! Which descendants a group does not wait for: those that wait, even indirectly, for the group.
//!
//! "Waits for" runs from a task to its dependencies and from a group to its covered descendants;
//! a descendant that waits for its group stands on a cycle with it. Outer groups are settled
//! first: once a group no longer waits for those descendants, inner groups may wait for them.

use super::state::{Flow, NONE};
use hashbrown::HashSet;

/// Nodes of the graph: `i` is task i ending, `n + i` is the whole subtree of task i ending.
struct Graph<'a> {
    flow: &'a Flow,
    run: u32,
    /// Groups whose own waiting is settled and closes no cycle any more.
    settled: Vec<bool>,
}

impl Graph<'_> {
    fn covers(&self, i: u32) -> bool {
        self.flow.at(i).run == self.run && !self.flow.at(i).deleted
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
            if !task.is_group() || self.settled[node as usize] {
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
        const UNSEEN: u32 = u32::MAX;
        let n = self.flow.tasks.len();
        let (mut order, mut low) = (vec![UNSEEN; 2 * n], vec![0_u32; 2 * n]);
        let mut on_stack = vec![false; 2 * n];
        let (mut stack, mut frames, mut next) = (Vec::new(), Vec::new(), 0_u32);
        let mut cycles = Vec::new();
        for &start in members.iter().filter(|&&i| self.covers(i)) {
            if order[start as usize] != UNSEEN {
                continue;
            }
            frames.push((start, 0_usize));
            while let Some((node, k)) = frames.last_mut() {
                let v = *node as usize;
                if *k == 0 && order[v] == UNSEEN {
                    (order[v], low[v]) = (next, next);
                    next += 1;
                    stack.push(*node);
                    on_stack[v] = true;
                }
                match self.successor(*node, *k) {
                    Some(w) => {
                        *k += 1;
                        if w == NONE {
                            continue;
                        }
                        if order[w as usize] == UNSEEN {
                            frames.push((w, 0));
                        } else if on_stack[w as usize] {
                            low[v] = low[v].min(order[w as usize]);
                        }
                    }
                    None => {
                        frames.pop();
                        if let Some((parent, _)) = frames.last() {
                            let p = *parent as usize;
                            low[p] = low[p].min(low[v]);
                        }
                        if low[v] == order[v] {
                            let from = stack
                                .iter()
                                .rposition(|&w| w as usize == v)
                                .expect("v is on the stack");
                            let component = stack.split_off(from);
                            component.iter().for_each(|&w| on_stack[w as usize] = false);
                            if component.len() > 1 {
                                cycles.push(
                                    component
                                        .into_iter()
                                        .filter(|&w| (w as usize) < n)
                                        .collect(),
                                );
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
        let mut settled = vec![false; self.tasks.len()];
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
                let open = |i: &u32| self.at(*i).is_group() && !settled[*i as usize];
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
                outer.iter().for_each(|&g| settled[g as usize] = true);
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
}
