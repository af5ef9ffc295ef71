//! Circles of a graph: its strongly connected components of more than one node.

use std::collections::{BTreeMap, BTreeSet};

/// What each node points at. All nodes are keys.
pub(crate) type Graph<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// The circles, largest first, each in order of names. Two nodes are in one circle when each is reached
/// from the other. Cost: O(nodes * edges), small for source.
pub(crate) fn of<'a>(graph: &Graph<'a>) -> Vec<Vec<&'a str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> = graph
        .keys()
        .map(|&node| (node, reachable(graph, node)))
        .collect();
    let mut done: BTreeSet<&str> = BTreeSet::new();
    let mut circles = Vec::new();
    for (&node, reached) in &reach {
        if done.contains(node) {
            continue;
        }
        let back = |other: &&&'a str| reach.get(**other).is_some_and(|r| r.contains(node));
        let circle: BTreeSet<&'a str> = reached.iter().filter(back).copied().collect();
        done.extend(&circle);
        if circle.len() > 1 {
            circles.push(circle.into_iter().collect());
        }
    }
    circles.sort_by_key(|circle: &Vec<&str>| std::cmp::Reverse(circle.len()));
    circles
}

fn reachable<'a>(graph: &Graph<'a>, from: &str) -> BTreeSet<&'a str> {
    let next = |node: &str| graph.get(node).into_iter().flatten().copied();
    let mut found: BTreeSet<&'a str> = BTreeSet::new();
    let mut open: Vec<&'a str> = next(from).collect();
    while let Some(node) = open.pop() {
        if found.insert(node) {
            open.extend(next(node));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found_and_chains_are_none() {
        let edges = [
            ("a", "b"),
            ("b", "c"),
            ("c", "a"),
            ("c", "d"),
            ("d", "e"),
            ("e", "d"),
        ];
        let mut graph = Graph::new();
        for (from, to) in edges {
            graph.entry(from).or_default().insert(to);
        }
        graph.entry("f").or_default().insert("a");
        assert_eq!(of(&graph), [vec!["a", "b", "c"], vec!["d", "e"]]);
    }
}
