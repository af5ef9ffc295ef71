//! The results of a run, page by page.

use super::{Made, RunRow, outputs, row_of};
use crate::queries::rows;
use crate::{Error, ReadModels};
use taskledger_domain::RunId;
use taskledger_sql::Columns;

/// A page of the results of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Returned {
    /// How the run stands.
    pub run: RunRow,
    /// Tasks that the run has completed and that run something, and its root if it has; by order of creation.
    pub tasks: Vec<Made>,
    /// The ordinal behind which it goes on; `None` at the end.
    pub next: Option<u32>,
}

impl ReadModels {
    /// Results of a run of tasks behind an ordinal, at most `limit`, and at most so many bytes unless the first alone
    /// has more; `None` when the run does not exist. Cost: O(tasks of the flow up to the last of them).
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Damaged`].
    pub async fn run_returned(
        &self,
        run: RunId,
        behind: Option<u32>,
        limit: usize,
        bytes_max: usize,
    ) -> Result<Option<Returned>, Error> {
        let mut tx = self.read().await?;
        let Some(run) = row_of(&mut tx, run).await? else {
            return Ok(None);
        };
        let mut args = tx.args();
        args.id(run.flow.0);
        args.id(run.run.0);
        args.id(run.task.0);
        args.int(behind.map_or(-1, i64::from));
        args.int(i64::try_from(limit).unwrap_or(i64::MAX - 1) + 1);
        let found = tx.fetch_all(RETURNED, args).await?;
        let nos: Vec<i64> = found
            .iter()
            .map(|row| Columns::of(row).int())
            .collect::<Result<_, _>>()?;
        let wanted = &nos[..nos.len().min(limit)];
        let tasks = rows::fetch(&mut tx, wanted, bytes_max).await?;
        let tasks = outputs::of_page(&mut tx, &run, behind, tasks, bytes_max).await?;
        let last = tasks.last().map(|it| it.task.ordinal);
        let next = last.filter(|_| tasks.len() < nos.len());
        Ok(Some(Returned { run, tasks, next }))
    }
}

/// Relies on the indexes tasks_id and tasks_flow_ordinal, then by key.
const RETURNED: &str = "SELECT t.created_position
    FROM tasks f
    JOIN tasks t ON t.flow_no = f.flow_no
    JOIN attempts a ON a.task_no = t.created_position AND a.attempt = t.attempt
    WHERE f.id = $1 AND t.result IS NOT NULL AND a.run_id = $2
        AND (t.method IS NOT NULL OR t.id = $3) AND t.ordinal > $4
    ORDER BY t.ordinal
    LIMIT $5";
