//! The queries. Each query reads one consistent state on a reader connection.
//!
//! Texts use `$1` and plain SQL where they can, so that another database can share them.

mod cursor;
mod flows;
mod list;
mod owners;
mod parts;
mod reading;
mod rows;
mod runs;
mod select;
mod snapshot;
mod totals;

pub use cursor::{Cursor, Order};
pub use flows::{AtRest, Attempt, FlowSummary, OpenRun, RunSummary};
pub use list::{LIST_BYTES_MAX, List};
pub use owners::Usage;
pub use reading::{Node, Reading};
pub use runs::{Made, Parts, Returned, RunCursor, RunFilter, RunList, RunRow, RunSnapshot, Wait};
pub use select::{ListFilter, Start};
pub use snapshot::Snapshot;

use crate::{Error, ReadModels, TaskView};
use taskledger_domain::TaskId;

impl ReadModels {
    /// A task with its blockers, and with its run when it is the root of its latest run.
    /// Cost: O(dependencies). spec: interface / tasks.get
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Damaged`].
    pub async fn get(&self, id: TaskId) -> Result<Option<TaskView>, Error> {
        let mut tx = self.read().await?;
        rows::view(&mut tx, id).await
    }
}
