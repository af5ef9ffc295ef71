//! The parameters of each method, one file each: what a valid call says, as types.
//!
//! Each `read` checks everything and reports every violation; past it, a value's type proves that
//! it is valid. `NAMES` is the declared order, used for positional parameters.

pub mod cancel;
pub mod children;
pub mod copy;
pub mod delete;
pub mod executors;
pub mod get;
pub mod health;
pub mod list;
pub mod retry;
pub mod tree;

use super::reader::Fault;
use serde_json::Value;

/// Whether a read waits for what was written before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Consistency {
    /// The answer shows every write that was acknowledged before the call.
    #[default]
    Strong,
    /// The answer comes at once and may be a moment old.
    Eventual,
}

impl Consistency {
    /// Reads the member `consistency`.
    ///
    /// # Errors
    /// Anything but `strong` and `eventual`.
    pub fn parse(value: &Value) -> Result<Self, Fault> {
        match value.as_str() {
            Some("strong") => Ok(Self::Strong),
            Some("eventual") => Ok(Self::Eventual),
            _ => Err(Fault::new(
                "not a consistency",
                "\"strong\" or \"eventual\"",
            )),
        }
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
