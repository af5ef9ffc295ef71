//! `--start-at` and `--delay`: when tasks start.

use super::CliError;
use super::input::Params;
use super::when;
use serde_json::{Map, Value};

/// When a task starts, if not at once.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Timing {
    /// Do not start it before this time, such as `10m` from now on, `tomorrow 14:00` or `2026-01-31T14:00:00Z`
    #[arg(long, value_name = "TIME", value_parser = when::future)]
    start_at: Option<String>,
    /// Start it this many seconds after it is ready
    #[arg(long, value_name = "SECONDS", value_parser = finite)]
    delay: Option<f64>,
}

impl Timing {
    /// Adds the members to a task.
    pub(super) fn add_to(&self, task: &mut Map<String, Value>) {
        if let Some(start_at) = &self.start_at {
            task.insert("start_at".to_owned(), Value::from(start_at.as_str()));
        }
        if let Some(delay) = self.delay {
            delayed(task.entry("params").or_insert(Value::Null), delay);
        }
    }

    /// Adds them to the roots of the workflow that a call of `tasks.execute` holds.
    pub fn add_to_roots(&self, call: &mut Params) -> Result<(), CliError> {
        if self.start_at.is_none() && self.delay.is_none() {
            return Ok(());
        }
        let tasks = call.get_mut("tasks").and_then(Value::as_array_mut);
        let Some(tasks) = tasks else {
            return Err(CliError::Usage(
                "--start-at, --delay: expected a workflow with `tasks`, not the id of a stored task"
                    .to_owned(),
            ));
        };
        for task in tasks.iter_mut().filter_map(Value::as_object_mut) {
            let inner = if task.contains_key("task") {
                task.get_mut("task").and_then(Value::as_object_mut)
            } else {
                Some(task)
            };
            let root = inner.filter(|task| task.get("parent_id").is_none_or(Value::is_null));
            if let Some(root) = root {
                self.add_to(root);
            }
        }
        Ok(())
    }
}

/// Sets the delay in the params of a task, which keep their other members.
pub(super) fn delayed(params: &mut Value, delay: f64) {
    if params.is_null() {
        *params = Value::Object(Map::new());
    }
    if let Some(params) = params.as_object_mut() {
        params.insert("delay_seconds".to_owned(), seconds(delay));
    }
}

/// `inf` and `nan` are numbers to Rust, and none in JSON.
pub(super) fn finite(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    let number = number.filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0);
    number.ok_or_else(|| "expected a number of seconds, such as `90` or `0.5`".to_owned())
}

/// As people write it: `5`, not `5.0`.
fn seconds(seconds: f64) -> Value {
    if seconds.fract() == 0.0 && (0.0..=1e15).contains(&seconds) {
        Value::from(seconds as u64)
    } else {
        Value::from(seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use taskledger_domain::Timestamp;

    fn timing() -> Timing {
        Timing {
            start_at: Some("T".to_owned()),
            delay: Some(5.0),
        }
    }

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn the_roots_of_a_workflow_start_later_and_keep_their_params() {
        let mut call = map(json!({"tasks": [
            {"name": "r", "params": {"retry_count": 1}},
            {"name": "a", "parent_id": "r"},
            {"task": {"name": "s"}, "children": []},
        ]}));
        timing().add_to_roots(&mut call).unwrap();
        let expected = json!({"tasks": [
            {"name": "r", "start_at": "T", "params": {"retry_count": 1, "delay_seconds": 5}},
            {"name": "a", "parent_id": "r"},
            {"task": {"name": "s", "start_at": "T", "params": {"delay_seconds": 5}}, "children": []},
        ]});
        assert_eq!(Value::Object(call), expected);
    }

    #[test]
    fn a_stored_task_is_started_as_it_is() {
        let mut call = map(json!({"task_id": "x"}));
        assert!(timing().add_to_roots(&mut call).is_err());
        Timing::default().add_to_roots(&mut call).unwrap();
    }

    #[test]
    fn times_and_delays_are_read_before_anything_is_sent() {
        #[derive(Debug, clap::Parser)]
        struct Line {
            #[command(flatten)]
            timing: Timing,
        }
        let read = |words: [&str; 2]| {
            let line = <Line as clap::Parser>::try_parse_from(["x", words[0], words[1]]);
            line.map(|line| line.timing).map_err(|it| it.to_string())
        };
        let at = read(["--start-at", "2999-01-31T14:00:00+01:00"]).unwrap();
        assert_eq!(at.start_at.unwrap(), "2999-01-31T14:00:00+01:00");
        let span = read(["--start-at", "10m"]).unwrap().start_at.unwrap();
        assert!(Timestamp::parse(&span).is_ok(), "{span}");
        assert_eq!(read(["--delay", "0.5"]).unwrap().delay, Some(0.5));
        for bad in ["inf", "infinity", "nan", "1e400", "-1", "x"] {
            let said = read(["--delay", bad]).unwrap_err();
            assert!(
                said.contains("expected a number of seconds") || bad == "-1",
                "{said}"
            );
        }
        let said = read(["--start-at", "yesterday"]).unwrap_err();
        assert!(said.contains("is not a time to come"), "{said}");
        let said = read(["--start-at", "2020-01-01"]).unwrap_err();
        assert!(said.contains("`2020-01-01` has passed"), "{said}");
    }
}
