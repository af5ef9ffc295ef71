//! The tasks that a call runs: new ones, or a stored one.

use serde::{Deserialize, Serialize};
use taskledger_domain::TaskId;
use taskledger_domain::task::call::TaskList;

/// The tasks that an execution runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Target {
    /// New tasks, which become a flow of their own.
    New(TaskList),
    /// A stored task, with everything below it.
    Stored(TaskId),
}
