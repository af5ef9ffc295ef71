//! `workers.undeclare`.

use super::super::super::reader::{Parameters, Reader};
use super::super::owner::OwnerKind;
use super::super::work::kinds::NewName;
use std::sync::Arc;
use taskledger_domain::Violation;

/// Names a method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Name of the method.
    pub method: Arc<str>,
    /// For whose tasks it is declared; empty: for those of all.
    pub owner: Option<Arc<str>>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let method = reader.required("method", NewName, "The declared method.");
        let owner = reader.optional(
            "owner",
            OwnerKind,
            "The user for whose tasks it is declared; needs `users:any` unless it is the caller. Empty: the shared declaration. Default: the caller's own, or else the shared one.",
        );
        reader.finish(|| {
            Some(Self {
                method: method?,
                owner,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{faults, map};
    use super::*;
    use serde_json::json;

    #[test]
    fn an_owner_may_be_named() {
        let read = |given| Params::read(&map(given)).unwrap().owner;
        assert_eq!(read(json!({"method": "m"})), None);
        for owner in ["ann", ""] {
            let given = json!({"method": "m", "owner": owner});
            assert_eq!(read(given).as_deref(), Some(owner));
        }
        let given = json!({"method": "m", "owner": 1});
        let expected = [("owner".into(), "not a string".into())];
        assert_eq!(faults(Params::read(&map(given))), expected);
    }

    #[test]
    fn a_name_that_could_not_be_shown_is_refused() {
        for name in ["z\u{1b}[2J", "a\u{202e}b", " a"] {
            let found = faults(Params::read(&map(json!({"method": name}))));
            assert_eq!((found.len(), &*found[0].0), (1, "method"), "{name}");
        }
    }
}
