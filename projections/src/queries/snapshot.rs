//! Reads a task at an exactly known place of the log, from where a reader of events can go on.

use super::rows;
use crate::tasks::TaskProjector;
use crate::{Error, ReadModels, TaskView, checkpoint};
use taskledger_domain::{Position, TaskId};
use taskledger_sql::Columns;

/// A task, and what its rows contain.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// As `tasks.get` shows it.
    pub task: TaskView,
    /// The rows reflect exactly the events up to here.
    pub position: Position,
    /// Runs of its flow that have not ended.
    pub open_runs: u32,
}

impl ReadModels {
    /// A task with the position up to which the rows were folded, from one consistent state; `None`
    /// when it does not exist. Cost: O(dependencies).
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Damaged`].
    pub async fn snapshot(&self, id: TaskId) -> Result<Option<Snapshot>, Error> {
        let mut tx = self.read().await?;
        let Some(task) = rows::view(&mut tx, id).await? else {
            return Ok(None);
        };
        let Some((_, position)) = checkpoint::load::<TaskProjector>(&mut tx).await? else {
            return Err(Error::Damaged("the checkpoint has disappeared".to_owned()));
        };
        let mut args = tx.args();
        args.id(task.row.flow_id.0);
        let row = tx.fetch_optional(OPEN_RUNS, args).await?;
        let open_runs = row.map(|row| Columns::of(&row).number()).transpose()?;
        Ok(Some(Snapshot {
            task,
            position,
            open_runs: open_runs.unwrap_or_default(),
        }))
    }
}

/// Relies on the index tasks_id (the root has the flow's id), then by key.
const OPEN_RUNS: &str = "SELECT s.open_runs
    FROM tasks r
    JOIN flow_summary s ON s.flow_no = r.created_position
    WHERE r.id = $1";
