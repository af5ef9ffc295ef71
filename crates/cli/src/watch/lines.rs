//! Writes events as lines of text: `time  status  progress  name (id)`, and what ended.

use crate::event_stream::{Event, JsonEvent};
use crate::output::{Output, Style, Text, id as shown_id, member, printable, style};
use crate::run::changes::{is_told_again, kind};
use crate::tree::SKIPPED;
use serde_json::Value;
use taskledger_domain::NoticeKind;

/// Characters of a result or an error, so that a line stays a line; `--output json` shows all of it.
const SAID_CHARS_MAX: usize = 120;

/// The lines of one stream.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The run whose verdict was told last.
    ended: String,
    /// The events that are chosen; all when there are none.
    types: Vec<String>,
    /// The end of a root, which is told with the verdict of its run if that follows.
    held: Option<Held>,
}

/// An event that is not told yet.
#[derive(Debug)]
struct Held {
    event: Event,
    data: Value,
    name: String,
}

impl Lines {
    /// Those of a stream from which only these events are taken; all when there are none.
    pub(crate) fn of(types: Vec<String>) -> Self {
        Self {
            types,
            ..Self::default()
        }
    }

    /// The lines that an event makes: none for one that tells people nothing new. For programs the end of a task is
    /// told by its status and then with its result, and the end of a run by its verdict and then by its last event.
    pub(crate) fn next(
        &mut self,
        event: &Event,
        data: &Value,
        name: &str,
        out: &Output,
    ) -> Vec<Text> {
        let kind = kind(&event.name);
        let mut lines = Vec::new();
        if let Some(run) = data.get("run").filter(|run| run.is_object()) {
            let run = member(run, "id");
            let is_last = kind == Some(NoticeKind::StatusUpdate);
            if is_last && !run.is_empty() && run == self.ended {
                return lines;
            }
            self.ended = run;
            let mut data = data.clone();
            match self.held.take() {
                Some(held) if same(&held.data, &data) => add_end(&held.data, &mut data),
                held => lines.extend(held.map(|held| held.line(out))),
            }
            lines.push(line(event, &data, name, out));
            return lines;
        }
        lines.extend(self.rest(out));
        if kind.is_some_and(|kind| self.is_told_again(kind, data)) {
            return lines;
        }
        let is_end = matches!(
            kind,
            Some(NoticeKind::Completed | NoticeKind::Failed | NoticeKind::Cancelled)
        );
        if is_end && member(data, "task_id") == member(data, "root_task_id") {
            self.held = Some(Held {
                event: event.clone(),
                data: data.clone(),
                name: name.to_owned(),
            });
        } else {
            lines.push(line(event, data, name, out));
        }
        lines
    }

    /// What is still to be told when nothing follows for now.
    pub(crate) fn rest(&mut self, out: &Output) -> Option<Text> {
        self.held.take().map(|held| held.line(out))
    }

    /// Whether the run of this event has not been told to have ended.
    pub(crate) fn is_news(&self, run: &str) -> bool {
        self.ended != run
    }

    fn is_told_again(&self, kind: NoticeKind, data: &Value) -> bool {
        let end = match member(data, "status").as_str() {
            "completed" => NoticeKind::Completed,
            "failed" => NoticeKind::Failed,
            _ => NoticeKind::Cancelled,
        };
        let is_chosen = |types: &[String]| types.iter().any(|it| it == end.as_str());
        (self.types.is_empty() || is_chosen(&self.types)) && is_told_again(kind, data)
    }
}

impl Held {
    fn line(&self, out: &Output) -> Text {
        line(&self.event, &self.data, &self.name, out)
    }
}

/// Whether two events say of one task that it stands so.
fn same(one: &Value, other: &Value) -> bool {
    ["task_id", "status"]
        .iter()
        .all(|name| one.get(name) == other.get(name))
}

/// Adds to the verdict of a run how its root has ended.
fn add_end(end: &Value, verdict: &mut Value) {
    for part in ["result", "error"] {
        if let (Some(value), Some(to)) = (end.get(part), verdict.as_object_mut()) {
            to.insert(part.to_owned(), value.clone());
        }
    }
}

/// The line of a task that a run has left out.
pub(crate) fn skipped(task: &Value, at: &Value, out: &Output) -> Text {
    let (at, id) = (member(at, "timestamp"), member(task, "id"));
    Text::of(Style::Dim, out.sentence(&at))
        .with(style(SKIPPED), format!("  {SKIPPED:<11}"))
        .with(Style::Plain, format!("  {:>5}  ", ""))
        .with(Style::Plain, format!("{} ", member(task, "name")))
        .with(Style::Dim, format!("({})", shown_id(out, &id).letters()))
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

    /// The lines of events, each with its name and what it says of a task.
    fn told(lines: &mut Lines, events: &[(&str, &str, Value)]) -> Vec<String> {
        let out = Output::to(Box::new(Vec::new()), false, false);
        let mut shown = Vec::new();
        for (name, id, more) in events {
            let mut data = json!({"timestamp": "T", "task_id": id, "root_task_id": "r"});
            let more = more.as_object().unwrap().clone();
            data.as_object_mut().unwrap().extend(more);
            let event = Event {
                name: (*name).to_owned(),
                data: data.to_string(),
                id: "c".to_owned(),
            };
            shown.extend(lines.next(&event, &data, id, &out));
        }
        shown.extend(lines.rest(&out));
        let words = |line: Text| {
            line.letters()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        };
        shown.into_iter().map(words).collect()
    }

    fn a_failure() -> [(&'static str, &'static str, Value); 8] {
        let run = json!({"status": "failed", "run": {"id": "x", "state": "failed"}});
        [
            ("task_status_update", "a", json!({"status": "completed"})),
            (
                "task_completed",
                "a",
                json!({"status": "completed", "result": 1}),
            ),
            (
                "task_status_update",
                "b",
                json!({"status": "failed", "will_retry": true, "error": "no"}),
            ),
            ("task_status_update", "b", json!({"status": "pending"})),
            ("task_status_update", "r", json!({"status": "failed"})),
            (
                "task_failed",
                "r",
                json!({"status": "failed", "error": "1 failed"}),
            ),
            ("run_failed", "r", run.clone()),
            ("task_status_update", "r", run),
        ]
    }

    #[test]
    fn each_end_is_told_once() {
        assert_eq!(
            told(&mut Lines::default(), &a_failure()),
            [
                "T completed a (a): result 1",
                "T failed b (b): no",
                "T pending b (b)",
                "T failed r (r): run failed: 1 failed",
            ]
        );
        // A root whose run goes on, or is not told of.
        assert_eq!(
            told(&mut Lines::default(), &a_failure()[5..6]),
            ["T failed r (r): 1 failed"]
        );
    }

    #[test]
    fn an_end_is_told_although_the_event_with_its_result_was_not_chosen() {
        let mut lines = Lines::of(vec!["task_status_update".to_owned()]);
        assert_eq!(told(&mut lines, &a_failure()[..1]), ["T completed a (a)"]);
        let mut lines = Lines::of(vec!["task_completed".to_owned()]);
        assert!(told(&mut lines, &a_failure()[..1]).is_empty());
    }

    #[test]
    fn the_end_of_a_run_is_told_once() {
        let mut lines = Lines::default();
        let mut count = |name: &str, run: &str| {
            let run = json!({"id": run, "state": "completed"});
            let data = json!({"status": "completed", "final": true, "run": run});
            told(&mut lines, &[(name, "i", data)]).len()
        };
        assert_eq!(count("run_completed", "a"), 1);
        assert_eq!(count("task_status_update", "a"), 0);
        assert_eq!(count("run_completed", "b"), 1);
        assert_eq!(
            count("task_status_update", "c"),
            1,
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
