//! Events as lines of text: `time  status  progress  name (id)`, and what ended.

use crate::event_stream::{Event, JsonEvent};
use crate::output::{Output, Style, Text, id as shown_id, member, printable, style};
use serde_json::Value;
use taskledger_domain::NoticeKind;

/// Characters of a result or an error, so that a line stays a line; `--output json` shows all of it.
const SAID_CHARS_MAX: usize = 120;

/// The lines of one stream.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The run whose verdict was told last.
    ended: String,
}

impl Lines {
    /// The line of an event; `None` for one that tells people nothing new. The last event of a run repeats, for programs,
    /// how its root stands, and the verdict that `run_completed`, `run_failed` or `run_cancelled` told just before.
    pub(crate) fn next(
        &mut self,
        event: &Event,
        data: &Value,
        name: &str,
        out: &Output,
    ) -> Option<Text> {
        if let Some(run) = data.get("run").filter(|run| run.is_object()) {
            let run = member(run, "id");
            let is_last = event.name == NoticeKind::StatusUpdate.as_str();
            if is_last && !run.is_empty() && run == self.ended {
                return None;
            }
            self.ended = run;
        }
        Some(line(event, data, name, out))
    }
}

/// The line of an event about a task with this name.
pub(crate) fn line(event: &Event, data: &Value, name: &str, out: &Output) -> Text {
    let status = member(data, "status");
    if status.is_empty() {
        return Text::from(printable(&event.json_line()));
    }
    let style = style(&status);
    let progress = percent(data).map_or_else(String::new, |percent| format!("{percent} %"));
    let (time, id) = (member(data, "timestamp"), member(data, "task_id"));
    let mut line = Text::of(Style::Dim, out.sentence(&time))
        .with(style, format!("  {status:<11}"))
        .with(Style::Plain, format!("  {progress:>5}  "));
    if !name.is_empty() {
        line.push(Style::Plain, format!("{name} "));
    }
    line.push(Style::Dim, format!("({})", shown_id(out, &id).letters()));
    let mut say = |style: Style, text: &str| {
        let mut cut = String::from(": ");
        cut.extend(text.chars().take(SAID_CHARS_MAX));
        if text.chars().nth(SAID_CHARS_MAX).is_some() {
            cut.push('…');
        }
        line.push(style, cut);
    };
    if let Some(run) = data.get("run").filter(|run| run.is_object()) {
        say(Style::Plain, &format!("run {}", member(run, "state")));
    }
    for part in ["message", "output_part", "result", "error"] {
        match member(data, part) {
            text if text.is_empty() => {}
            text if part == "message" || part == "output_part" => say(Style::Plain, &text),
            text if part == "result" => say(Style::Plain, &format!("result {text}")),
            text => say(Style::Bad, &text),
        }
    }
    let refused = data.pointer("/contract_error/message");
    if let (Some(refused), None) = (refused, data.get("error")) {
        let refused = printable(refused.as_str().unwrap_or_default());
        say(Style::Bad, &format!("refused: {refused}"));
    }
    match member(data, "next_attempt_at") {
        at if at.is_empty() => {}
        at => say(
            Style::Warn,
            &format!("next attempt at {}", out.sentence(&at)),
        ),
    }
    line
}

/// How far a task is.
pub(crate) fn percent(task: &Value) -> Option<u8> {
    let progress = task.get("progress").and_then(Value::as_f64)?;
    Some((progress.clamp(0.0, 1.0) * 100.0) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(data: &Value, name: &str) -> String {
        let event = Event {
            name: "task_status_update".to_owned(),
            data: data.to_string(),
            id: "c".to_owned(),
        };
        let out = Output::to(Box::new(Vec::new()), false, false);
        line(&event, data, name, &out).letters()
    }

    #[test]
    fn a_line_tells_when_what_how_far_and_which() {
        let data =
            json!({"timestamp": "T", "status": "in_progress", "progress": 0.425, "task_id": "i"});
        assert_eq!(shown(&data, "fetch"), "T  in_progress   42 %  fetch (i)");
        assert_eq!(shown(&data, ""), "T  in_progress   42 %  (i)");
    }

    #[test]
    fn an_end_tells_its_result_or_its_error_and_a_run_its_verdict() {
        let end = |more: Value| {
            let mut data =
                json!({"timestamp": "T", "status": "failed", "progress": 1, "task_id": "i"});
            data.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            shown(&data, "n")
        };
        let start = "T  failed       100 %  n (i): ";
        assert_eq!(
            end(json!({"error": "a\x1b[2J\nb"})),
            format!("{start}a\u{fffd}[2J b")
        );
        assert_eq!(
            end(json!({"result": {"x": 1}})),
            format!("{start}result {{\"x\":1}}")
        );
        assert_eq!(
            end(json!({"final": true, "run": {"state": "failed"}})),
            format!("{start}run failed")
        );
        assert_eq!(
            end(json!({"contract_error": {"message": "x is missing"}})),
            format!("{start}refused: x is missing")
        );
        assert_eq!(end(json!({"message": "half"})), format!("{start}half"));
        assert_eq!(
            end(json!({"next_attempt_at": "U"})),
            format!("{start}next attempt at U")
        );
        assert!(end(json!({"error": "e".repeat(500)})).ends_with("e…"));
    }

    #[test]
    fn the_end_of_a_run_is_told_once() {
        let out = Output::to(Box::new(Vec::new()), false, false);
        let mut lines = Lines::default();
        let mut told = |name: &str, run: &str| {
            let data = json!({"timestamp": "T", "status": "completed", "task_id": "i", "final": true,
                "run": {"id": run, "state": "completed"}});
            let event = Event {
                name: name.to_owned(),
                data: data.to_string(),
                id: "c".to_owned(),
            };
            lines.next(&event, &data, "n", &out).is_some()
        };
        assert!(told("run_completed", "a"));
        assert!(!told("task_status_update", "a"));
        assert!(told("run_completed", "b"));
        assert!(
            told("task_status_update", "c"),
            "nothing has told of it before"
        );
    }

    #[test]
    fn an_event_without_a_status_is_shown_as_it_came() {
        assert_eq!(
            shown(&json!({"x": "\x1b"}), ""),
            r#"{"cursor":"c","event":"task_status_update","x":"\u001b"}"#
        );
    }
}
