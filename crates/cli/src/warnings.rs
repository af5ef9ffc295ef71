//! Warnings in answers. They go to standard error, so that a script reads the same output with and without them.

use crate::output::{list, member};
use serde_json::Value;
use taskledger_terminal::message;

/// Writes the warnings of an answer, each with the command that mends it. Those about lines of a document are left
/// out: they were written when the document was read.
pub(crate) fn report(answer: &Value) {
    for text in texts(answer) {
        message(&text);
    }
}

fn texts(answer: &Value) -> Vec<String> {
    let all = list(answer, "warnings").iter();
    let own = all.filter(|warning| warning.get("line").is_none_or(Value::is_null));
    own.map(text).collect()
}

fn text(warning: &Value) -> String {
    let mut text = format!("warning: {}", member(warning, "reason"));
    let suggestion = member(warning, "suggestion");
    if !suggestion.is_empty() {
        text += &format!("; {suggestion}");
    }
    let command = member(warning, "command");
    if !command.is_empty() {
        text += &format!("\n  {command}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::texts;
    use serde_json::json;

    #[test]
    fn warnings_of_the_run_are_written_and_those_about_lines_are_not() {
        let answer = json!({"warnings": [
            {"path": "workflow.a.x", "line": 7, "column": 3, "reason": "unknown key `x`", "suggestion": null},
            {"path": "trigger.qarter", "line": null, "reason": "no phase uses it", "suggestion": "did you mean `quarter`?"},
            {"field": "k", "reason": "there is no secret `k`", "command": "taskledger secrets set k"},
        ]});
        let expected = [
            "warning: no phase uses it; did you mean `quarter`?",
            "warning: there is no secret `k`\n  taskledger secrets set k",
        ];
        assert_eq!(texts(&answer), expected);
        assert!(texts(&json!({"status": "started"})).is_empty());
    }
}
