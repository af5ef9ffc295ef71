//! The imports of all files of clauses.

pub(super) use crate::answer::{Reply, RpcError, shown};
pub(super) use crate::clause::{
    Clause, Finding, Level, Outcome, decided, ensure, may, must, must_not, not_testable, seen,
    should,
};
pub(super) use crate::lives::FOREVER_MS;
pub(super) use crate::probe::Probe;
pub(super) use crate::refusals::{ANY, INVALID_PARAMS, expect_field, instant, same};
pub(super) use crate::tasks::{MEMBERS, NewTask, Started, expect_task, is_terminal, text_of};
pub(super) use serde_json::{Value, json};

/// There is no such task.
pub(super) const NOT_FOUND: i64 = -32001;
/// A dependency closes a cycle.
pub(super) const CIRCULAR: i64 = -32002;
/// No executor has the name.
pub(super) const NO_EXECUTOR: i64 = -32003;

/// A UUID v4 that no task has.
pub(super) const UNKNOWN_ID: &str = "00000000-0000-4000-8000-000000000000";
