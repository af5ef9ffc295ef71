//! What people ask. Each query reads one consistent state on a reader connection.
//!
//! Texts use `$1` and plain SQL where they can, so that another database can share them.

mod cursor;
mod flows;
mod list;
mod rows;
mod totals;
mod tree;

pub use cursor::{Cursor, Order};
pub use flows::{Attempt, FlowSummary, OpenRun};
pub use list::{LIST_BYTES_MAX, List, ListFilter, Start};
pub use tree::TREE_BYTES_MAX;

use crate::{Error, ReadModels, TaskView};
use taskledger_domain::TaskId;

impl ReadModels {
    /// A task with its blockers, and with its run when it is the root of its latest run.
    /// Cost: O(dependencies). spec: interface / tasks.get
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Damaged`].
    pub async fn get(&self, id: TaskId) -> Result<Option<TaskView>, Error> {
        let mut tx = self.readers.begin().await?;
        let Some(no) = rows::number(&mut tx, id).await? else {
            return Ok(None);
        };
        let found = rows::fetch(&mut tx, &[no], usize::MAX).await?;
        let mut views = rows::views(&mut tx, found).await?;
        for view in &mut views {
            view.run = rows::run_of(&mut tx, &view.row).await?;
        }
        Ok(views.pop())
    }

    /// The direct children of a task in order of creation; `None` when the task does not exist.
    /// Cost: O(children). spec: interface / tasks.children
    ///
    /// # Errors
    /// [`Error::TooLarge`] when they exceed [`TREE_BYTES_MAX`]; [`Error::Unavailable`],
    /// [`Error::Damaged`].
    pub async fn children(&self, id: TaskId) -> Result<Option<Vec<TaskView>>, Error> {
        let mut tx = self.readers.begin().await?;
        let Some(no) = rows::number(&mut tx, id).await? else {
            return Ok(None);
        };
        let nos: Vec<i64> = sqlx::query_scalar(CHILDREN)
            .bind(no)
            .fetch_all(&mut *tx)
            .await?;
        let found = rows::fetch(&mut tx, &nos, TREE_BYTES_MAX).await?;
        if found.len() < nos.len() {
            return Err(Error::TooLarge {
                limit: TREE_BYTES_MAX,
            });
        }
        rows::views(&mut tx, found).await.map(Some)
    }
}

/// Relies on the index tasks_parent.
const CHILDREN: &str = "SELECT created_position
    FROM tasks
    WHERE parent_no = $1
    ORDER BY created_position";
