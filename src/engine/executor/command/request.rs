//! Parses the inputs of `command_executor`.

use crate::engine::executor::ExecutorError;
use crate::engine::secrets::Places;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Arguments of one program: more do not fit the kernel's own limits with useful lengths.
const ARGS_MAX: usize = 10_000;
/// Variables of one program beside ours.
const ENV_MAX: usize = 256;
/// Names that only the server sets, or that make the loader run other code than the program's.
const ENV_RESERVED: [&str; 5] = [
    "PATH",
    "TRACEPARENT",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "BASH_ENV",
];
const ENV_RESERVED_PREFIXES: [&str; 2] = ["LD_", "TASKLEDGER_"];

/// The schema of the inputs, with the allow-list in it.
pub(super) fn schema(programs: &[&String]) -> Value {
    let text = json!({"type": "string"});
    let variable = Places::schema_of(&text);
    json!({
        "type": "object",
        "required": ["program"],
        "additionalProperties": false,
        "properties": {
            "program": {"enum": programs},
            "args": {"type": "array", "items": text, "maxItems": ARGS_MAX},
            "env": {"type": "object", "additionalProperties": variable, "maxProperties": ENV_MAX},
            "cwd": {"type": "string", "minLength": 1},
            "stdin": text,
            "parse_json": {"type": "boolean"}
        }
    })
}

#[derive(Debug, PartialEq)]
pub(super) struct Request {
    pub(super) program: String,
    pub(super) args: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) cwd: Option<PathBuf>,
    pub(super) stdin: Option<String>,
    pub(super) parse_json: bool,
}

impl Request {
    /// Reads the inputs, whether or not they were checked against [`schema`] before.
    pub(super) fn read(inputs: &Map<String, Value>) -> Result<Self, ExecutorError> {
        let program = optional_text(inputs, "program")?
            .ok_or_else(|| ExecutorError::new("`program` is missing, expected a text"))?;
        let args = match inputs.get("args") {
            None => Vec::new(),
            Some(Value::Array(items)) if items.len() <= ARGS_MAX => items
                .iter()
                .enumerate()
                .map(|(i, item)| text(&format!("args[{i}]"), item))
                .collect::<Result<_, _>>()?,
            Some(_) => {
                let expected = format!("an array of at most {ARGS_MAX} texts");
                return Err(wrong("args", &expected));
            }
        };
        let env = match inputs.get("env") {
            None => BTreeMap::new(),
            Some(Value::Object(members)) if members.len() <= ENV_MAX => members
                .iter()
                .map(|(name, value)| {
                    let value = text(&format!("env.{name}"), value)?;
                    variable_name(name).map(|name| (name, value))
                })
                .collect::<Result<_, _>>()?,
            Some(_) => {
                let expected = format!("an object of at most {ENV_MAX} texts");
                return Err(wrong("env", &expected));
            }
        };
        let parse_json = match inputs.get("parse_json") {
            None => false,
            Some(Value::Bool(yes)) => *yes,
            Some(_) => return Err(wrong("parse_json", "a boolean")),
        };
        let stdin = match inputs.get("stdin") {
            None => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => return Err(wrong("stdin", "a text")),
        };
        Ok(Self {
            program,
            args,
            env,
            cwd: optional_text(inputs, "cwd")?.map(PathBuf::from),
            stdin,
            parse_json,
        })
    }
}

fn wrong(field: &str, expected: &str) -> ExecutorError {
    ExecutorError::new(format!("`{field}` is not as expected: {expected}"))
}

fn optional_text(
    inputs: &Map<String, Value>,
    field: &str,
) -> Result<Option<String>, ExecutorError> {
    inputs
        .get(field)
        .map(|value| text(field, value))
        .transpose()
}

/// A text that can be handed to a program.
fn text(field: &str, value: &Value) -> Result<String, ExecutorError> {
    match value {
        Value::String(text) if !text.contains('\0') => Ok(text.clone()),
        Value::String(_) => Err(wrong(field, "a text without NUL characters")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(wrong(field, "a text"))
        }
    }
}

fn variable_name(name: &str) -> Result<String, ExecutorError> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(ExecutorError::new(format!(
            "`{}` cannot be the name of a variable in `env`",
            name.escape_debug()
        )));
    }
    let reserved = ENV_RESERVED.contains(&name)
        || ENV_RESERVED_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix));
    if reserved {
        return Err(ExecutorError::new(format!(
            "variable `{name}` in `env` is reserved"
        )));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::Request;
    use serde_json::json;

    fn read(inputs: &serde_json::Value) -> Result<Request, String> {
        Request::read(inputs.as_object().unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_full_request_is_understood() {
        let request = read(&json!({
            "program": "sort", "args": ["-o", "ä b"], "env": {"TZ": "UTC"}, "cwd": "x",
            "stdin": "b\na\u{0}", "parse_json": true
        }))
        .unwrap();
        assert_eq!(request.args, ["-o", "ä b"]);
        assert_eq!(request.env["TZ"], "UTC");
        assert_eq!(request.stdin.as_deref(), Some("b\na\0"));
        assert!(request.parse_json);
    }

    #[test]
    fn faults_are_named() {
        for (inputs, part) in [
            (json!({}), "`program` is missing"),
            (json!({"program": 1}), "`program`"),
            (json!({"program": "a\u{0}"}), "without NUL"),
            (json!({"program": "a", "args": "x"}), "`args`"),
            (json!({"program": "a", "args": ["x", 1]}), "`args[1]`"),
            (json!({"program": "a", "args": ["a\u{0}b"]}), "`args[0]`"),
            (json!({"program": "a", "env": {"A": 1}}), "`env.A`"),
            (json!({"program": "a", "env": {"A=B": "x"}}), "`A=B`"),
            (
                json!({"program": "a", "env": {"": "x"}}),
                "cannot be the name",
            ),
            (json!({"program": "a", "cwd": 1}), "`cwd`"),
            (json!({"program": "a", "stdin": []}), "`stdin`"),
            (json!({"program": "a", "parse_json": "yes"}), "`parse_json`"),
        ] {
            let error = read(&inputs).unwrap_err();
            assert!(error.contains(part), "{inputs}: {error}");
        }
    }

    #[test]
    fn variables_that_steer_the_loader_or_belong_to_the_server_are_reserved() {
        for name in [
            "PATH",
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "TASKLEDGER_TASK_ID",
            "TRACEPARENT",
        ] {
            let error = read(&json!({"program": "a", "env": {name: "x"}})).unwrap_err();
            assert_eq!(error, format!("variable `{name}` in `env` is reserved"));
        }
    }
}
