//! `tasks.create`. spec: interface / tasks.create

use serde_json::{Map, Value};
use taskledger_domain::Violation;
use taskledger_domain::task::call::{self, TaskList};

/// The parameters in declared order.
pub const NAMES: &[&str] = &[
    "name",
    "user_id",
    "parent_id",
    "priority",
    "inputs",
    "schemas",
    "dependencies",
    "params",
    "children",
    "id",
    "tasks",
    "task",
];

/// Reads one task, a task with `children`, `{task, children}` nodes, or `{tasks: [...]}`.
///
/// # Errors
/// Every violation.
pub fn read(map: &Map<String, Value>) -> Result<TaskList, Vec<Violation>> {
    call::parse_create(map)
}
