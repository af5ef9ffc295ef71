//! `tasks.execute`. spec: interface / tasks.execute

use super::super::reader::{Fault, Reader, boolean, task_id};
use crate::application::{ExecuteOptions, Target};
use serde_json::{Map, Value};
use taskledger_domain::Violation;
use taskledger_domain::limits;
use taskledger_domain::task::call;

/// Seconds that a task may wait for an executor that does not exist yet: a day.
pub const EXECUTOR_WAIT_SECONDS_MAX: f64 = 86_400.0;

/// What to run, and how.
#[derive(Debug, Clone)]
pub struct Params {
    /// New tasks or a stored one.
    pub target: Target,
    /// How.
    pub options: ExecuteOptions,
}

impl Params {
    /// The parameters in declared order.
    pub const NAMES: &[&str] = &[
        "tasks",
        "task_id",
        "use_streaming",
        "allow_unknown_executors",
        "executor_wait_seconds",
    ];

    /// Reads the parameters.
    ///
    /// # Errors
    /// Every violation.
    pub fn read(map: &Map<String, Value>) -> Result<Self, Vec<Violation>> {
        let mut reader = Reader::new(map);
        let stored = reader.optional("task_id", task_id);
        let list = reader
            .raw("tasks")
            .filter(|tasks| !tasks.is_null())
            .and_then(|tasks| match call::parse_tasks(tasks) {
                Ok(list) => Some(list),
                Err(violations) => {
                    reader.add(violations);
                    None
                }
            });
        let given = |name: &str| map.get(name).is_some_and(|v| !v.is_null());
        if given("tasks") == given("task_id") {
            let reason = if given("tasks") {
                "given together with `tasks`"
            } else {
                "missing"
            };
            let expected =
                "either `tasks`, to create and run them, or `task_id`, to run a stored task";
            reader.report(
                "task_id",
                Fault::new(reason, expected),
                map.get("task_id").unwrap_or(&Value::Null),
            );
        }
        let streaming = reader.optional("use_streaming", boolean);
        if streaming == Some(true) {
            reader.report("use_streaming", no_streaming(), &Value::Bool(true));
        }
        let allow_unknown_executors = reader
            .optional("allow_unknown_executors", boolean)
            .unwrap_or(false);
        let wait = reader.optional("executor_wait_seconds", |value: &Value| {
            let seconds = value
                .as_f64()
                .filter(|s| (0.0..=EXECUTOR_WAIT_SECONDS_MAX).contains(s));
            let expected = "a number of seconds from 0 to 86400";
            seconds
                .ok_or(Fault::new("out of range", expected))
                .map(|s| (s * 1000.0) as u64)
        });
        let options = ExecuteOptions {
            allow_unknown_executors,
            executor_wait_ms: wait.unwrap_or(limits::EXECUTOR_WAIT_MS_DEFAULT),
        };
        reader.finish(|| {
            let target = stored.map(Target::Stored).or(list.map(Target::New))?;
            Some(Self { target, options })
        })
    }
}

/// Why a streamed answer is refused, instead of leaving a client waiting for events.
pub fn no_streaming() -> Fault {
    Fault::new(
        "not supported by this server",
        "false or absent; poll tasks.get, whose `run` tells the state",
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ID, faults, map};
    use super::*;
    use serde_json::json;

    #[test]
    fn exactly_one_of_tasks_and_task_id_is_taken() {
        for params in [json!({}), json!({"task_id": ID, "tasks": [{"name": "a"}]})] {
            let fields: Vec<_> = faults(Params::read(&map(params)))
                .into_iter()
                .map(|(field, _)| field)
                .collect();
            assert_eq!(fields, ["task_id"]);
        }
        assert!(Params::read(&map(json!({"task_id": ID}))).is_ok());
        assert!(Params::read(&map(json!({"tasks": [{"name": "a"}]}))).is_ok());
    }

    #[test]
    fn an_empty_list_is_refused() {
        let fields = faults(Params::read(&map(json!({"tasks": []}))));
        assert_eq!(
            fields,
            [("tasks".to_owned(), "Must not be empty".to_owned())]
        );
    }
}
