//! Reads input files of commands: JSON objects, and workflows in one of three forms, as JSON or YAML.

use super::CliError;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{self, Read};
use taskledger_domain::json::{self, Unread};
use taskledger_domain::limits::REQUEST_BODY_BYTES_MAX;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// The parameters of a call.
pub type Params = Map<String, Value>;

/// The parameters of `tasks.execute` in `file`; `-` is standard input.
pub fn read_workflow(file: &str) -> Result<Params, CliError> {
    read(file, parse_workflow)
}

/// The JSON object in `file`; `-` is standard input.
pub(super) fn read_object(file: &str) -> Result<Params, CliError> {
    read(file, |text| {
        json::read(text.trim_end().as_bytes())
            .map_err(|error| format!("not a JSON object: {error}"))
    })
}

fn read(file: &str, parse: fn(&str) -> Result<Params, String>) -> Result<Params, CliError> {
    let text = read_text(file)
        .map_err(|error| CliError::Usage(format!("cannot read `{file}`: {error}")))?;
    parse(&text).map_err(|reason| CliError::Usage(format!("`{file}`: {reason}")))
}

/// The text of `file`, at most as much as a server would take.
pub(super) fn read_text(file: &str) -> io::Result<String> {
    let source: Box<dyn Read> = if file == "-" {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(file)?)
    };
    let mut text = String::new();
    source
        .take(REQUEST_BODY_BYTES_MAX as u64 + 1)
        .read_to_string(&mut text)?;
    if text.len() > REQUEST_BODY_BYTES_MAX {
        let reason = format!("larger than {REQUEST_BODY_BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    // JSON may begin with a byte order mark, which readers may ignore (RFC 8259, 8.1).
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len_utf8());
    }
    Ok(text)
}

fn parse_workflow(text: &str) -> Result<Params, String> {
    const EXPECTED: &str = "expected a `tasks.execute` request, its params, or an array of tasks";
    if text.trim().is_empty() {
        return Err(format!("it is empty; {EXPECTED}, as JSON or YAML"));
    }
    let mut params = match json_or_yaml(text)? {
        Value::Array(tasks) => Params::from_iter([("tasks".to_owned(), Value::Array(tasks))]),
        Value::Object(mut request) if request.contains_key("method") => {
            if request.get("method").and_then(Value::as_str) != Some("tasks.execute") {
                return Err(EXPECTED.to_owned());
            }
            match request.remove("params") {
                Some(Value::Object(params)) => params,
                Some(_) | None => return Err("the request has no `params` object".to_owned()),
            }
        }
        Value::Object(params) => params,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return Err(EXPECTED.to_owned());
        }
    };
    if params.contains_key("openintent") {
        return Err(
            "it is a workflow document; `taskledger workflows run FILE` runs it".to_owned(),
        );
    }
    if !params.contains_key("tasks") && !params.contains_key("task_id") {
        return Err(EXPECTED.to_owned());
    }
    // The answer is wanted at once; following is done here.
    params.remove("use_streaming");
    Ok(params)
}

/// JSON by the first letter that it may begin with, else YAML. YAML in brackets begins like JSON: what is none is
/// looked at again, and its faults are those of JSON.
fn json_or_yaml(text: &str) -> Result<Value, String> {
    // What ends too early ends in its last line, not in the empty one behind it.
    let text = text.trim_end();
    if text.trim_start().starts_with(['{', '[', '"']) || text.trim().is_empty() {
        return match json::read(text.as_bytes()) {
            Ok(value) => Ok(value),
            Err(lossy @ (Unread::Large(_) | Unread::Reserved)) => Err(lossy.to_string()),
            Err(Unread::Json(error)) => {
                taskledger_workflows::value(text).map_err(|_| format!("not valid JSON: {error}"))
            }
        };
    }
    taskledger_workflows::value(text).map_err(|faults| {
        let Some(fault) = faults.into_iter().next() else {
            return "neither JSON nor YAML".to_owned();
        };
        match fault.line {
            Some(line) => format!("line {line}: {}", fault.reason),
            None => fault.reason,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::parse_workflow as parse;
    use serde_json::{Value, json};

    #[test]
    fn yaml_in_brackets_is_yaml() {
        let tasks = parse("[{name: a, schemas: {method: m}}]").unwrap();
        assert_eq!(
            tasks["tasks"],
            json!([{"name": "a", "schemas": {"method": "m"}}])
        );
        let told = parse(r#"{"tasks": [}"#).unwrap_err();
        assert!(told.starts_with("not valid JSON: expected value"), "{told}");
    }

    #[test]
    fn a_workflow_document_is_for_another_command() {
        let told = parse("openintent: '1.0'\ninfo: {name: x}\n").unwrap_err();
        assert!(told.contains("`taskledger workflows run FILE`"), "{told}");
    }

    #[test]
    fn a_workflow_is_a_request_its_params_or_its_tasks() {
        let params = json!({"tasks": [{"name": "a"}]});
        let forms = [
            json!([{"name": "a"}]),
            params.clone(),
            json!({"tasks": [{"name": "a"}], "use_streaming": true}),
            json!({"jsonrpc": "2.0", "method": "tasks.execute", "params": params, "id": 1}),
        ];
        for form in forms {
            assert_eq!(
                parse(&form.to_string()).map(Value::Object),
                Ok(params.clone())
            );
        }
        assert!(parse(r#"{"task_id":"x"}"#).is_ok());
    }

    #[test]
    fn a_workflow_may_be_yaml() {
        let yaml = "# three forms\ntasks:\n  - name: a\n    schemas: {method: echo_executor}\n    inputs: {n: 1}\n";
        let task = json!({"name": "a", "schemas": {"method": "echo_executor"}, "inputs": {"n": 1}});
        assert_eq!(parse(yaml).map(Value::Object), Ok(json!({"tasks": [task]})));
        assert_eq!(
            parse("- name: a\n").map(Value::Object),
            Ok(json!({"tasks": [{"name": "a"}]}))
        );
        let twice = parse("tasks: []\ntasks: []\n").unwrap_err();
        assert!(twice.starts_with("line 2: "), "{twice}");
    }

    #[test]
    fn anything_else_is_refused_with_what_is_expected() {
        for bad in [
            "",
            "{",
            "7",
            "null",
            "{}",
            r#"{"method":"tasks.get","params":{}}"#,
            r#"{"method":"tasks.execute"}"#,
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        let cut = parse("{\"tasks\": [\n").unwrap_err();
        assert!(cut.contains("at line 1 column 11"), "{cut}");
        let empty = parse(" \n").unwrap_err();
        assert!(
            empty.starts_with("it is empty; expected a `tasks.execute` request"),
            "{empty}"
        );
    }
}
