//! Finds cycles of dependencies. Nothing recurses: a chain may be as long as a document has phases.

use std::collections::VecDeque;

/// The cycles of a graph, given the nodes that each node depends on: one for each set of nodes that depend on each
/// other, the shortest through the first of its nodes, beginning there. A node that depends on itself is no cycle.
/// Cost: O(nodes + edges).
pub(crate) fn cycles(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let component = components(edges);
    let mut is_done = vec![false; edges.len()];
    let mut members = vec![0_usize; edges.len()];
    component.iter().for_each(|c| members[*c] += 1);
    let mut found = Vec::new();
    for first in 0..edges.len() {
        let own = component[first];
        if members[own] > 1 && !is_done[own] {
            is_done[own] = true;
            found.push(shortest(edges, &component, first));
        }
    }
    found
}

/// For each node, which strongly connected component it is in. Tarjan's algorithm with a stack of its own.
fn components(edges: &[Vec<usize>]) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let count = edges.len();
    let (mut order, mut low, mut component) =
        (vec![NONE; count], vec![0; count], vec![NONE; count]);
    let (mut next_order, mut next_component) = (0, 0);
    let mut open: Vec<usize> = Vec::new();
    // A node, and how many of its edges have been followed.
    let mut calls: Vec<(usize, usize)> = Vec::new();
    for start in 0..count {
        if order[start] != NONE {
            continue;
        }
        calls.push((start, 0));
        while let Some((node, followed)) = calls.pop() {
            if followed == 0 {
                (order[node], low[node]) = (next_order, next_order);
                next_order += 1;
                open.push(node);
            } else {
                let child = edges[node][followed - 1];
                if component[child] == NONE {
                    low[node] = low[node].min(low[child]);
                }
            }
            if let Some(&child) = edges[node].get(followed) {
                calls.push((node, followed + 1));
                if order[child] == NONE {
                    calls.push((child, 0));
                }
                continue;
            }
            if low[node] == order[node] {
                while let Some(member) = open.pop() {
                    component[member] = next_component;
                    if member == node {
                        break;
                    }
                }
                next_component += 1;
            }
        }
    }
    component
}

/// A shortest cycle through `first`, inside of its component. Breadth first.
fn shortest(edges: &[Vec<usize>], component: &[usize], first: usize) -> Vec<usize> {
    let mut before = std::collections::HashMap::new();
    let mut queue = VecDeque::from([first]);
    while let Some(node) = queue.pop_front() {
        for &child in &edges[node] {
            if child == first && node != first {
                let mut cycle = vec![node];
                while let Some(&earlier) = cycle.last().and_then(|last| before.get(last)) {
                    cycle.push(earlier);
                }
                cycle.reverse();
                return cycle;
            }
            if component[child] == component[first]
                && child != first
                && !before.contains_key(&child)
            {
                before.insert(child, node);
                queue.push_back(child);
            }
        }
    }
    vec![first]
}

#[cfg(test)]
mod tests {
    use super::cycles;

    #[test]
    fn a_cycle_is_told_once_from_its_first_node() {
        // 0 -> 1 -> 2 -> 0, 2 -> 1; 3 -> 0; 4 <-> 5; 6 -> 6
        let edges = [
            vec![1],
            vec![2],
            vec![1, 0],
            vec![0],
            vec![5],
            vec![4],
            vec![6],
        ];
        assert_eq!(cycles(&edges), [vec![0, 1, 2], vec![4, 5]]);
        assert_eq!(
            cycles(&[vec![], vec![0], vec![0, 1]]),
            Vec::<Vec<usize>>::new()
        );
    }

    #[test]
    fn a_hundred_thousand_nodes_in_a_chain_or_a_ring_are_judged() {
        let count = 100_000;
        let mut edges: Vec<_> = (0..count).map(|i| vec![i + 1]).collect();
        edges[count - 1].clear();
        assert_eq!(cycles(&edges), Vec::<Vec<usize>>::new());
        edges[count - 1].push(0);
        let found = cycles(&edges);
        assert_eq!(found, [(0..count).collect::<Vec<_>>()]);
    }
}
