//! A task with everything below it. spec: interface / tasks.tree
//!
//! First the shape of the subtree (two integers a task), from which the depth-first order follows
//! without recursion; then the rows in that order, some at a time, straight into the text.

use super::rows;
use crate::{Error, ReadModels, TreeWriter};
use std::collections::HashMap;
use taskledger_domain::{FlowId, TaskId};

/// Bytes of one tree, or of the children of one task, in an answer.
pub const TREE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Tasks whose rows are in memory at once.
const CHUNK: usize = 256;

impl ReadModels {
    /// The JSON of a task and all its descendants, as `{task, children: [..]}`; `None` when the
    /// task does not exist. The root carries its run. Cost: O(subtree).
    ///
    /// # Errors
    /// [`Error::TooLarge`] above [`TREE_BYTES_MAX`]; [`Error::Unavailable`], [`Error::Damaged`].
    pub async fn tree(&self, id: TaskId) -> Result<Option<Vec<u8>>, Error> {
        let mut tx = self.readers.begin().await?;
        let Some(root) = rows::number(&mut tx, id).await? else {
            return Ok(None);
        };
        let shape: Vec<(i64, i64)> = sqlx::query_as(SHAPE).bind(root).fetch_all(&mut *tx).await?;
        let order = depth_first(root, &shape);
        drop(shape);
        let mut writer = TreeWriter::new();
        let mut failed = HashMap::new();
        for chunk in order.chunks(CHUNK) {
            let nos: Vec<i64> = chunk.iter().map(|node| node.0).collect();
            let found = rows::fetch(&mut tx, &nos, TREE_BYTES_MAX).await?;
            if found.len() < nos.len() {
                return Err(TOO_LARGE);
            }
            let mut views = rows::views_with(&mut tx, found, &mut failed).await?;
            for (view, &(no, depth)) in views.iter_mut().zip(chunk) {
                if no == root {
                    view.run = rows::run_of(&mut tx, &view.row).await?;
                }
                writer.push(depth, view);
                if writer.len() > TREE_BYTES_MAX {
                    return Err(TOO_LARGE);
                }
            }
        }
        Ok(Some(writer.finish()))
    }

    /// The ids of the live tasks of a flow in order of creation; empty when there is no such flow.
    /// Cost: O(tasks).
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Damaged`].
    pub async fn ids_by_flow(&self, flow: FlowId) -> Result<Vec<TaskId>, Error> {
        let mut tx = self.readers.begin().await?;
        let found = sqlx::query(IDS)
            .bind(flow.0.as_bytes().to_vec())
            .fetch_all(&mut *tx)
            .await?;
        found
            .iter()
            .map(|row| crate::sql::Columns::of(row).id().map(TaskId))
            .collect()
    }
}

const TOO_LARGE: Error = Error::TooLarge {
    limit: TREE_BYTES_MAX,
};

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
/// Relies on the indexes tasks_id and tasks_flow_ordinal.
const IDS: &str = "SELECT t.id
    FROM tasks r
    JOIN tasks t ON t.flow_no = r.created_position
    WHERE r.id = $1
    ORDER BY t.ordinal";

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
