//! Queries about who owns a flow, and how much a user owns.

use super::select::ListFilter;
use super::totals::{Counted, OF_ALL_TIMES, sum};
use crate::{Error, ReadModels};
use std::sync::Arc;
use taskledger_domain::FlowId;
use taskledger_domain::task::Status;
use taskledger_sql::Columns;

/// How much a user owns of what quotas limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Flows whose root has not ended: it is pending or in progress.
    pub open_flows: u64,
    /// Tasks that are pending, groups among them.
    pub waiting_tasks: u64,
}

impl ReadModels {
    /// Who owns a flow now: the `user_id` of its root. `None`: there is no such flow, or its root is
    /// deleted. `Some(None)`: nobody owns it. Cost: O(1).
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Damaged`].
    pub async fn owner_of(&self, flow: FlowId) -> Result<Option<Option<Arc<str>>>, Error> {
        let mut tx = self.read().await?;
        let mut args = tx.args();
        args.id(flow.root().0);
        let row = tx.fetch_optional(OWNER, args).await?;
        Ok(row.map(|row| Columns::of(&row).opt_text()).transpose()?)
    }

    /// How much somebody owns; zeros for a name that nobody has. Cost: three sums over at most 16 rows.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Damaged`].
    pub async fn usage_of(&self, owner: &Arc<str>) -> Result<Usage, Error> {
        let mut tx = self.read().await?;
        let owned = Counted::owned_by(owner);
        let mut counts = [0_u64; 3];
        let wanted = [
            (Status::Pending, true),
            (Status::InProgress, true),
            (Status::Pending, false),
        ];
        for (count, (status, root_only)) in counts.iter_mut().zip(wanted) {
            let filter = ListFilter {
                status: Some(status),
                root_only,
                ..ListFilter::default()
            };
            let n = sum(&mut tx, &filter, &owned, OF_ALL_TIMES).await?;
            *count = u64::try_from(n).unwrap_or(0);
        }
        let [pending_roots, running_roots, waiting_tasks] = counts;
        Ok(Usage {
            open_flows: pending_roots + running_roots,
            waiting_tasks,
        })
    }
}

/// Relies on the index tasks_id: a root has the id of its flow.
const OWNER: &str = "SELECT owner
    FROM tasks
    WHERE id = $1 AND parent_no IS NULL";
