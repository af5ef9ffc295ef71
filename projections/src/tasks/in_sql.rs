//! Applies events to tasks that are not all in memory, with SQL statements.

use std::sync::Arc;
use taskledger_domain::FlowId;
use taskledger_domain::flow::RunStarted;

/// A run over more tasks than are in memory: it is given to them in SQL.
pub(crate) struct CoverInSql {
    pub(super) flow: FlowId,
    pub(super) run: RunStarted,
}

pub(crate) enum InSql {
    /// A run begins over them.
    Cover(CoverInSql),
    /// Their flow has another owner.
    Owner(OwnerChange),
}

/// A flow with more tasks than are in memory has another owner; of its root, in memory and in the
/// totals, that is done.
pub(crate) struct OwnerChange {
    pub(super) flow: FlowId,
    pub(super) from: Option<Arc<str>>,
    pub(super) to: Option<Arc<str>>,
}
