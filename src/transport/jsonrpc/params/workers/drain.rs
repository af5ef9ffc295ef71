//! `workers.drain`.

use super::super::super::reader::{BOOLEAN, Parameters, Reader};
use super::super::work::kinds::NewName;
use std::sync::Arc;
use taskledger_domain::Violation;

/// Names a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// The name that the worker gives itself.
    pub worker: Arc<str>,
    /// Whether it gets no more work; `false`: it does again.
    pub drain: bool,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let worker = reader.required(
            "worker",
            NewName,
            "The worker, as it names itself; it need not be there.",
        );
        let about = "Whether it is drained; `false` lets it have work again.";
        let drain = reader.with_default("drain", BOOLEAN, true, about);
        reader.finish(|| {
            Some(Self {
                worker: worker?,
                drain,
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
    fn a_worker_is_drained_unless_it_is_said_otherwise() {
        assert!(Params::read(&map(json!({"worker": "w"}))).unwrap().drain);
        assert_eq!(
            faults(Params::read(&map(json!({"worker": 1, "drain": "no"})))),
            [
                ("worker".into(), "not a string".into()),
                ("drain".into(), "not a boolean".into())
            ]
        );
    }

    #[test]
    fn a_name_that_could_not_be_shown_is_refused() {
        for name in ["z\u{1b}[2J", "a\u{202e}b", " a"] {
            let found = faults(Params::read(&map(json!({"worker": name}))));
            assert_eq!((found.len(), &*found[0].0), (1, "worker"), "{name}");
        }
    }
}
