//! `tasks.claim`.

use super::super::super::reader::{Fault, Parameters, Reader, TASK_ID, integer, seconds};
use super::kinds::{LEASE_SECONDS_DEFAULT, MethodNames, NewName, lease_seconds};
use crate::application::api::work::Wanted;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::Violation;
use taskledger_domain::limits::CLAIMS_MAX;

/// Seconds that a call waits for work.
pub const WAIT_SECONDS_MAX: u32 = 60;

/// What a worker wants, and how long it waits for that.
#[derive(Debug, Clone)]
pub struct Params {
    /// Who works; absent for the name of the caller.
    pub worker: Option<Arc<str>>,
    /// Tasks of some methods, or one task.
    pub wanted: Wanted,
    /// Claims at once, 1 to 100.
    pub max: usize,
    /// Milliseconds that the leases hold unless they are renewed.
    pub lease_ms: u64,
    /// How long the call waits while there is no work.
    pub wait: Duration,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let methods = reader.optional(
            "methods",
            MethodNames,
            "The methods whose tasks are wanted; this or `task_id`.",
        );
        let task = reader.optional("task_id", TASK_ID, "The one task that is wanted.");
        let worker = reader.optional(
            "worker",
            NewName,
            "The name of the worker; without it the name of the caller.",
        );
        let max = reader.with_default("max", integer(1..=CLAIMS_MAX as u64), 1, "Claims at once.");
        let lease_s = reader.with_default(
            "lease_seconds",
            lease_seconds(),
            LEASE_SECONDS_DEFAULT,
            "How long the leases hold unless they are renewed.",
        );
        let wait_ms = reader.with_default(
            "wait_seconds",
            seconds(WAIT_SECONDS_MAX),
            0,
            "How long the call waits for a task of `methods`; it is answered as soon as there is one.",
        );
        let named = (reader.given("methods"), reader.given("task_id"));
        let expected = "exactly one of `methods` and `task_id`";
        match named {
            (true, false) | (false, true) => {}
            (false, false) => {
                reader.report("methods", Fault::new("missing", expected), &Value::Null);
            }
            (true, true) => {
                let task = reader.value("task_id").clone();
                let fault = Fault::new("together with `methods`", expected);
                reader.report("task_id", fault, &task);
            }
        }
        if task.is_some() && wait_ms > 0 {
            let wait = reader.value("wait_seconds").clone();
            let expected = "no wait with `task_id`: that task is claimed at once, or it is said why it cannot be";
            let fault = Fault::new("together with `task_id`", expected);
            reader.report("wait_seconds", fault, &wait);
        }
        reader.finish(|| {
            Some(Self {
                worker,
                wanted: match (methods, task) {
                    (Some(methods), _) => Wanted::Methods(methods),
                    (None, task) => Wanted::Task(task?),
                },
                max: usize::try_from(max).unwrap_or(usize::MAX),
                lease_ms: lease_s * 1000,
                wait: Duration::from_millis(wait_ms),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{ID, faults, map};
    use super::*;
    use serde_json::json;

    #[test]
    fn a_claim_of_methods_has_defaults() {
        let read = Params::read(&map(json!({"methods": ["a", "b"]}))).unwrap();
        let Wanted::Methods(methods) = &read.wanted else {
            panic!("methods");
        };
        assert_eq!(methods.len(), 2);
        assert_eq!((read.max, read.lease_ms, read.worker), (1, 60_000, None));
        assert!(read.wait.is_zero());
    }

    #[test]
    fn everything_is_read() {
        let given = json!({"task_id": ID, "worker": "w-1", "max": 100, "lease_seconds": 5});
        let read = Params::read(&map(given)).unwrap();
        assert!(matches!(read.wanted, Wanted::Task(task) if task.to_string() == ID));
        assert_eq!(read.worker.as_deref(), Some("w-1"));
        assert_eq!((read.max, read.lease_ms), (100, 5_000));
        let waits = json!({"methods": ["a"], "wait_seconds": 0.5});
        let read = Params::read(&map(waits)).unwrap();
        assert_eq!(read.wait, Duration::from_millis(500));
    }

    #[test]
    fn a_named_task_is_not_waited_for() {
        let waits = json!({"task_id": ID, "wait_seconds": 8});
        assert_eq!(
            faults(Params::read(&map(waits))),
            [("wait_seconds".into(), "together with `task_id`".into())]
        );
        let now = json!({"task_id": ID, "wait_seconds": 0});
        assert!(Params::read(&map(now)).is_ok());
    }

    #[test]
    fn either_methods_or_a_task_are_wanted() {
        let both = json!({"methods": ["a"], "task_id": ID});
        assert_eq!(
            faults(Params::read(&map(both))),
            [("task_id".into(), "together with `methods`".into())]
        );
        assert_eq!(
            faults(Params::read(&map(json!({"methods": null})))),
            [("methods".into(), "missing".into())]
        );
    }

    #[test]
    fn every_fault_is_named() {
        let given = json!({"methods": ["a", ""], "worker": "", "max": 0, "lease_seconds": 4,
            "wait_seconds": 61, "priority": 1});
        let fields: Vec<_> = faults(Params::read(&map(given)))
            .into_iter()
            .map(|(field, _)| field)
            .collect();
        let expected = [
            "methods",
            "worker",
            "max",
            "lease_seconds",
            "wait_seconds",
            "priority",
        ];
        assert_eq!(fields, expected);
    }
}
