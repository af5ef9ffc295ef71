//! What a script says: calls, ends of attempts, time, restarts. One line each, written and read.
//!
//! Ids are symbols: `@4a` is the task that step 4 created under the alias `a`. A symbol that no
//! task has stands for a UUID v4 that nobody knows, so a script stays a script when lines go.

use serde_json::{Map, Value, json};
use std::fmt;

/// One call of a method.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) method: String,
    /// Named, or positional when it is an array.
    pub(crate) params: Value,
    /// `metadata.idempotency_key`.
    pub(crate) key: Option<String>,
    /// Without an `id`, so without an answer.
    pub(crate) silent: bool,
}

/// How an attempt ends, or what it says on the way.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// Whatever JSON the executor returns; only objects complete a task.
    Return(Value),
    Fail(String),
    Report(f64),
}

/// What happens in a step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    /// One call alone, or several as a batch.
    Call(Vec<Call>),
    /// The running attempt of the task with this symbol (without `@`).
    Attempt(String, Outcome),
    /// Milliseconds.
    Advance(u64),
    /// The server stops and starts again on the same folder.
    Restart,
    /// All pages of `tasks.list` with these parameters, by cursor.
    Pages(Value),
}

/// A step; its number names the tasks that it creates, and stays when other steps go.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub(crate) number: usize,
    pub(crate) action: Action,
}

impl Call {
    pub(crate) fn new(method: &str, params: Value) -> Self {
        Self {
            method: method.to_owned(),
            params,
            key: None,
            silent: false,
        }
    }

    fn to_json(&self) -> Value {
        let mut map = Map::new();
        map.insert("method".into(), json!(self.method));
        map.insert("params".into(), self.params.clone());
        if let Some(key) = &self.key {
            map.insert("key".into(), json!(key));
        }
        if self.silent {
            map.insert("silent".into(), json!(true));
        }
        Value::Object(map)
    }

    fn from_json(value: &Value) -> Option<Self> {
        Some(Self {
            method: value["method"].as_str()?.to_owned(),
            params: value["params"].clone(),
            key: value["key"].as_str().map(str::to_owned),
            silent: value["silent"] == true,
        })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.number)?;
        match &self.action {
            Action::Call(calls) => match calls.as_slice() {
                [call] if call.key.is_none() && !call.silent => {
                    write!(f, "{} {}", call.method, call.params)
                }
                calls => {
                    let list: Vec<_> = calls.iter().map(Call::to_json).collect();
                    write!(f, "calls {}", Value::Array(list))
                }
            },
            Action::Attempt(task, Outcome::Return(value)) => write!(f, "return @{task} {value}"),
            Action::Attempt(task, Outcome::Fail(text)) => write!(f, "fail @{task} {text}"),
            Action::Attempt(task, Outcome::Report(part)) => write!(f, "report @{task} {part}"),
            Action::Advance(ms) => write!(f, "advance {ms}"),
            Action::Restart => write!(f, "restart"),
            Action::Pages(params) => write!(f, "pages {params}"),
        }
    }
}

impl Step {
    /// Reads what [`fmt::Display`] wrote.
    fn parse(line: &str) -> Option<Self> {
        let (number, rest) = line.split_once(' ')?;
        let (word, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let attempt = |read: &dyn Fn(&str) -> Option<Outcome>| {
            let (task, rest) = rest.split_once(' ')?;
            Some(Action::Attempt(
                task.strip_prefix('@')?.to_owned(),
                read(rest)?,
            ))
        };
        let action = match word {
            "calls" => {
                let list: Vec<Value> = serde_json::from_str(rest).ok()?;
                Action::Call(list.iter().map(Call::from_json).collect::<Option<_>>()?)
            }
            "return" => attempt(&|v| serde_json::from_str(v).ok().map(Outcome::Return))?,
            "fail" => attempt(&|text| Some(Outcome::Fail(text.to_owned())))?,
            "report" => attempt(&|part| part.parse().ok().map(Outcome::Report))?,
            "advance" => Action::Advance(rest.parse().ok()?),
            "restart" => Action::Restart,
            "pages" => Action::Pages(serde_json::from_str(rest).ok()?),
            method => Action::Call(vec![Call::new(method, serde_json::from_str(rest).ok()?)]),
        };
        Some(Self {
            number: number.parse().ok()?,
            action,
        })
    }
}

/// Reads a script, one step a line; empty lines do not count.
pub(crate) fn parse(text: &str) -> Vec<Step> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| Step::parse(line).unwrap_or_else(|| panic!("`{line}` is no step")))
        .collect()
}

/// Writes a script, one step a line.
pub(crate) fn write(steps: &[Step]) -> String {
    steps.iter().map(|step| format!("{step}\n")).collect()
}

#[test]
fn a_script_that_was_written_can_be_read() {
    let text = "\
1 tasks.create {\"name\":\"a\"}
2 calls [{\"key\":\"k\",\"method\":\"tasks.get\",\"params\":[\"@1\"],\"silent\":true}]
3 return @1 {\"x\":[1]}
4 fail @1 went wrong
5 report @1 0.25
6 advance 2000
7 restart
8 pages {\"limit\":2}
";
    assert_eq!(write(&parse(text)), text);
}
