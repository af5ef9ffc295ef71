//! `tasks.execute`. spec: interface / tasks.execute

use super::super::reader::{BOOLEAN, Fault, Kind, Parameters, Reader, Refusal, TASK_ID, seconds};
use crate::application::api::Target;
use serde_json::{Value, json};
use taskledger_domain::Violation;
use taskledger_domain::limits;
use taskledger_domain::task::call::{self, TaskList};

/// Seconds that a task may wait for an executor that does not exist yet: a day.
pub const EXECUTOR_WAIT_SECONDS_MAX: u32 = 86_400;

/// What to run, and how.
#[derive(Debug, Clone)]
pub struct Params {
    /// New tasks or a stored one. New ones perhaps with faults, those of other parameters included.
    pub target: Target,
    /// Whether tasks may wait for an executor that does not exist yet.
    pub allow_unknown_executors: bool,
    /// Milliseconds that they wait.
    pub executor_wait_ms: u64,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let list = reader.optional(
            "tasks",
            TASKS,
            "The tasks to create and run; either these or `task_id`.",
        );
        let stored = reader.optional(
            "task_id",
            TASK_ID,
            "The stored task to run, with what is below it; either this or `tasks`.",
        );
        let both = reader.given("tasks");
        if both == reader.given("task_id") {
            let reason = if both {
                "given together with `tasks`"
            } else {
                "missing"
            };
            let expected =
                "either `tasks`, to create and run them, or `task_id`, to run a stored task";
            let actual = reader.value("task_id");
            reader.report("task_id", Fault::new(reason, expected), actual);
        }
        // Taken out of the call by the dispatcher when it is true.
        super::use_streaming(&mut reader);
        let allow_unknown_executors = reader.with_default(
            "allow_unknown_executors",
            BOOLEAN,
            false,
            "Whether tasks whose executor does not exist yet are taken and wait for it.",
        );
        let executor_wait_ms = reader.with_default(
            "executor_wait_seconds",
            seconds(EXECUTOR_WAIT_SECONDS_MAX),
            limits::EXECUTOR_WAIT_MS_DEFAULT,
            "How long a ready task waits for an executor that does not exist, before it fails.",
        );
        let params = |target| Self {
            target,
            allow_unknown_executors,
            executor_wait_ms,
        };
        match (reader.finish(|| Some(())), list) {
            (Ok(()), list) => {
                let target = stored.map(Target::Stored).or(list.map(Target::New));
                let target = target.expect("one of the two was given, or a fault was reported");
                Ok(params(target))
            }
            // What else is wrong with the tasks is told with it.
            (Err(faults), Some(list)) if !faults.is_empty() => {
                Ok(params(Target::New(list.with_faults(faults))))
            }
            (Err(faults), _) => Err(faults),
        }
    }
}

impl Params {
    /// The same with faults of what stands beside the parameters, so that what else is wrong with new tasks
    /// is told with them.
    ///
    /// # Errors
    /// The faults: nothing else is looked for in a stored task.
    pub fn with_faults(self, faults: Vec<Violation>) -> Result<Self, Vec<Violation>> {
        match self.target {
            Target::New(list) => Ok(Self {
                target: Target::New(list.with_faults(faults)),
                ..self
            }),
            Target::Stored(_) => Err(faults),
        }
    }
}

const TASKS: TasksKind = TasksKind;

/// The tasks of a call.
struct TasksKind;

impl Kind for TasksKind {
    type Out = TaskList;

    fn schema(&self) -> Value {
        json!({"$ref": "#/components/schemas/TaskInputs"})
    }

    fn parse(&self, value: &Value) -> Result<TaskList, Refusal> {
        let list = call::read_tasks(value).map_err(Refusal::Inside)?;
        Ok(list.without_statics())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ID, faults, map};
    use super::*;

    #[test]
    fn exactly_one_of_tasks_and_task_id_is_taken() {
        let missing = faults(Params::read(&map(json!({}))));
        let fields: Vec<_> = missing.into_iter().map(|(field, _)| field).collect();
        assert_eq!(fields, ["task_id"]);
        // With tasks, what else is wrong with them is still to be found.
        let both = json!({"task_id": ID, "tasks": [{"name": "a"}], "use_streaming": 5});
        let Ok(Params {
            target: Target::New(list),
            ..
        }) = Params::read(&map(both))
        else {
            panic!("a list with faults");
        };
        let fields: Vec<_> = list.faults().iter().map(|v| v.field.as_str()).collect();
        assert_eq!(fields, ["task_id", "use_streaming"]);
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
