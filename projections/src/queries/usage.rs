//! What the flows of one user take up, from the sums that the projector keeps. See `tasks::counts`.

use crate::tasks::counts::ALL_TIMES;
use crate::{Error, ReadModels};
use std::sync::Arc;
use taskledger_domain::task::Status;
use taskledger_sql::Columns;

/// What the flows of a user take up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InUse {
    /// Roots that are pending or in progress.
    pub open_flows: u64,
    /// Pending tasks, roots included.
    pub waiting_tasks: u64,
}

impl ReadModels {
    /// What the tasks of a user take up. Cost: a sum over at most 16 rows.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Damaged`].
    pub async fn in_use(&self, user: &str) -> Result<InUse, Error> {
        let mut tx = self.read().await?;
        let mut args = tx.args();
        args.text(Arc::<str>::from(user));
        args.int(ALL_TIMES);
        args.name(Status::Pending.as_str());
        args.name(Status::InProgress.as_str());
        let row = tx.fetch_one(IN_USE, args).await?;
        let mut c = Columns::of(&row);
        Ok(InUse {
            open_flows: u64::try_from(c.int()?).unwrap_or(0),
            waiting_tasks: u64::try_from(c.int()?).unwrap_or(0),
        })
    }
}

/// By primary key.
const IN_USE: &str = "SELECT
        CAST(COALESCE(SUM(CASE WHEN is_root = 1 THEN n ELSE 0 END), 0) AS BIGINT),
        CAST(COALESCE(SUM(CASE WHEN status = $3 THEN n ELSE 0 END), 0) AS BIGINT)
    FROM task_counts
    WHERE user_key = $1 AND bucket = $2 AND status IN ($3, $4)";
