//! The parameters of each method, one file each: what a valid call says, as types.
//!
//! Each `read` checks everything and reports every violation; past it, a value's type proves that
//! it is valid. `NAMES` is the declared order, used for positional parameters.

pub mod cancel;
pub mod children;
pub mod copy;
pub mod create;
pub mod delete;
pub mod execute;
pub mod executors;
pub mod get;
pub mod health;
pub mod list;
pub mod retry;
pub mod tree;
pub mod update;

use super::reader::Fault;
use crate::application::Consistency;
use serde_json::Value;

/// Reads the member `consistency`.
///
/// # Errors
/// Anything but `strong` and `eventual`.
pub fn consistency(value: &Value) -> Result<Consistency, Fault> {
    match value.as_str() {
        Some("strong") => Ok(Consistency::Strong),
        Some("eventual") => Ok(Consistency::Eventual),
        _ => Err(Fault::new(
            "not a consistency",
            "\"strong\" or \"eventual\"",
        )),
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use serde_json::{Map, Value};
    use taskledger_domain::Violation;

    pub(crate) const ID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

    pub(crate) fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    /// (field, reason) of each violation.
    pub(crate) fn faults<T>(read: Result<T, Vec<Violation>>) -> Vec<(String, String)> {
        read.err()
            .unwrap_or_default()
            .into_iter()
            .map(|v| (v.field, v.reason))
            .collect()
    }
}
