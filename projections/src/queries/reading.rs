//! Answers that may be long, read piece by piece from one consistent state: a task with everything
//! below it, and the children of a task. spec: interface / tasks.tree, tasks.children
//!
//! First the shape (two integers a task), from which the order follows without recursion; then the
//! rows in that order, some at a time. Memory: the shape and one piece.

use super::rows;
use crate::{Error, ReadModels, TaskView};
use std::fmt;
use taskledger_domain::TaskId;
use taskledger_sql::{Columns, Tx};

/// Tasks in one piece.
const PIECE_TASKS: usize = 256;
/// Bytes of payloads in one piece, unless a single task has more.
const PIECE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A task at its place in a long answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Levels below the root of a tree, which has 0; 0 for all tasks of a list.
    pub depth: usize,
    /// The task at this place of the tree.
    pub task: TaskView,
}

/// Tasks that are being read. Holds a connection until it is dropped.
pub struct Reading {
    tx: Tx<'static>,
    /// What is still to be read: keys and depths, last first.
    left: Vec<(i64, usize)>,
    /// The root of a tree, which carries its run.
    root: Option<i64>,
    /// Which dependencies failed, as far as it was asked.
    known: rows::Known,
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading")
            .field("left", &self.left.len())
            .finish_non_exhaustive()
    }
}

impl ReadModels {
    /// A task and all its descendants, depth first, siblings in order of creation; `None` when the task
    /// does not exist. The root carries its run. Cost: O(subtree), spread over the pieces.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Damaged`].
    pub async fn tree(&self, id: TaskId) -> Result<Option<Reading>, Error> {
        let mut tx = self.read().await?;
        let Some(root) = rows::number(&mut tx, id).await? else {
            return Ok(None);
        };
        let mut args = tx.args();
        args.int(root);
        let found = tx.fetch_all(SHAPE, args).await?;
        let shape: Vec<(i64, i64)> = found
            .iter()
            .map(|row| {
                let mut c = Columns::of(row);
                Ok((c.int()?, c.int()?))
            })
            .collect::<Result<_, Error>>()?;
        // Sorting 100,000 tasks takes a while, in which this thread would serve nobody.
        let ordered = tokio::task::spawn_blocking(move || {
            let mut left = depth_first(root, &shape);
            left.reverse();
            left
        });
        let left = match ordered.await {
            Ok(left) => left,
            Err(error) => return Err(Error::Damaged(format!("a tree has no order: {error}"))),
        };
        Ok(Some(Reading::new(tx, left, Some(root))))
    }

    /// The direct children of a task in order of creation; `None` when the task does not exist.
    /// Cost: O(children), spread over the pieces.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Damaged`].
    pub async fn children(&self, id: TaskId) -> Result<Option<Reading>, Error> {
        let mut tx = self.read().await?;
        let Some(parent) = rows::number(&mut tx, id).await? else {
            return Ok(None);
        };
        let mut args = tx.args();
        args.int(parent);
        let found = tx.fetch_all(CHILDREN, args).await?;
        let mut left: Vec<(i64, usize)> = found
            .iter()
            .map(|row| Ok((Columns::of(row).int()?, 0)))
            .collect::<Result<_, Error>>()?;
        left.reverse();
        Ok(Some(Reading::new(tx, left, None)))
    }
}

impl Reading {
    fn new(tx: Tx<'static>, left: Vec<(i64, usize)>, root: Option<i64>) -> Self {
        Self {
            tx,
            left,
            root,
            known: rows::Known::default(),
        }
    }

    /// Whether all tasks were given.
    #[must_use]
    pub const fn is_ended(&self) -> bool {
        self.left.is_empty()
    }

    /// The next tasks, at least one; none after the last. Cost: O(tasks given).
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Damaged`]. What was given before is not the whole answer then.
    pub async fn next(&mut self) -> Result<Vec<Node>, Error> {
        let from = self.left.len().saturating_sub(PIECE_TASKS);
        let nos: Vec<i64> = self.left[from..].iter().rev().map(|node| node.0).collect();
        let found = rows::fetch(&mut self.tx, &nos, PIECE_BYTES_MAX).await?;
        let views = rows::views_with(&mut self.tx, found, &mut self.known).await?;
        let mut nodes = Vec::with_capacity(views.len());
        for mut task in views {
            let (no, depth) = self.left.pop().expect("a row for each key at most");
            if self.root == Some(no) {
                task.run = rows::run_of(&mut self.tx, &task.row).await?;
            }
            nodes.push(Node { depth, task });
        }
        Ok(nodes)
    }
}

/// The nodes below `root`, which comes first, in depth-first order with their depths; siblings in
/// order of creation. `shape` holds (node, parent) without the root. Cost: O(n log n).
fn depth_first(root: i64, shape: &[(i64, i64)]) -> Vec<(i64, usize)> {
    let mut by_parent: Vec<(i64, i64)> = shape.iter().map(|&(no, parent)| (parent, no)).collect();
    // Descending, so that what is pushed last, and popped first, is the oldest.
    by_parent.sort_unstable_by(|a, b| b.cmp(a));
    let mut order = Vec::with_capacity(shape.len() + 1);
    let mut open = vec![(root, 0)];
    while let Some((no, depth)) = open.pop() {
        order.push((no, depth));
        let first = by_parent.partition_point(|&(parent, _)| parent > no);
        let children = by_parent[first..]
            .iter()
            .take_while(|&&(parent, _)| parent == no);
        open.extend(children.map(|&(_, child)| (child, depth + 1)));
    }
    order
}

/// Relies on the index tasks_parent.
const SHAPE: &str = "WITH RECURSIVE below(no, parent_no) AS (
        SELECT created_position, parent_no
        FROM tasks
        WHERE parent_no = $1
        UNION ALL
        SELECT t.created_position, t.parent_no
        FROM below
        JOIN tasks t ON t.parent_no = below.no)
    SELECT no, parent_no
    FROM below";
/// Relies on the index tasks_parent.
const CHILDREN: &str = "SELECT created_position
    FROM tasks
    WHERE parent_no = $1
    ORDER BY created_position";

#[cfg(test)]
mod tests {
    use super::depth_first;

    #[test]
    fn siblings_keep_the_order_of_creation_and_follow_their_elder_sisters_children() {
        let shape = [(2, 1), (3, 1), (4, 2), (5, 3), (6, 2)];
        let order = depth_first(1, &shape);
        assert_eq!(order, [(1, 0), (2, 1), (4, 2), (6, 2), (3, 1), (5, 2)]);
    }

    #[test]
    fn a_chain_of_a_hundred_thousand_needs_no_stack() {
        let shape: Vec<_> = (2..=100_000).map(|no| (no, no - 1)).collect();
        let order = depth_first(1, &shape);
        assert_eq!(order.last(), Some(&(100_000, 99_999)));
    }
}
