//! `taskledger tasks history`

use super::changes::{self, shortened};
use super::{CliError, Output, Params, Request};
use crate::output::{Column, Text, id, list, member, printable, show_table, style, time};
use crate::tree::SKIPPED;
use clap::ValueEnum;
use serde_json::Value;
use std::io;
use taskledger_domain::limits::LIST_LIMIT_MAX;

/// Show what happened to a task, or to its whole tree
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger tasks history 0f8fad5b-d9cb-469f-a165-70867728950e
  taskledger tasks history 0f8fad5b-d9cb-469f-a165-70867728950e --flow --order desc --limit 20
  taskledger tasks history 0f8fad5b-d9cb-469f-a165-70867728950e --types task_failed,task_requeued")]
pub(super) struct Args {
    /// The task; it may have been deleted
    #[arg(value_name = "ID")]
    task_id: String,
    /// All events of its tree
    #[arg(long)]
    flow: bool,
    /// Events to show, 1 to 1000
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(LIST_LIMIT_MAX)))]
    limit: Option<u32>,
    /// Only these types of events, separated by commas
    #[arg(long, alias = "events", value_delimiter = ',', value_name = "TYPE")]
    types: Vec<String>,
    /// Oldest or newest first
    #[arg(long, value_enum)]
    order: Option<Order>,
    /// The cursor that the previous page printed
    #[arg(long)]
    cursor: Option<String>,
}

/// The order of a list of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// Oldest first.
    Asc,
    /// Newest first.
    Desc,
}

impl Order {
    /// As calls name it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Asc => "asc",
            Self::Desc => "desc",
        }
    }
}

impl Args {
    pub(super) fn request(self) -> Result<Request, CliError> {
        let order = self.order.map(Order::as_str);
        let types = (!self.types.is_empty()).then_some(self.types);
        Ok(Request {
            method: "tasks.history",
            params: Params::default()
                .with("task_id", self.task_id)
                .maybe("scope", self.flow.then_some("flow"))
                .maybe("limit", self.limit)
                .maybe("types", types)
                .maybe("order", order)
                .maybe("cursor", self.cursor)
                .build(),
            show: if self.flow { show_flow } else { show_task },
        })
    }
}

/// What a list of events shows of each.
const OF_TASK: [Column<'static>; 5] = [
    Column::whole(POSITION),
    Column::whole(TIME),
    Column::short(BY).extra(),
    Column::whole(TYPE),
    Column::wraps(WHAT),
];
const OF_FLOW: [Column<'static>; 6] = [
    Column::whole(POSITION),
    Column::whole(TIME),
    Column::short(BY).extra(),
    Column::whole(TASK),
    Column::whole(TYPE),
    Column::wraps(WHAT),
];
const OF_ALL: [Column<'static>; 7] = [
    Column::whole(POSITION),
    Column::whole(TIME),
    Column::short(BY).extra(),
    Column::whole(FLOW),
    Column::whole(TASK).extra(),
    Column::whole(TYPE),
    Column::wraps(WHAT),
];
const POSITION: &str = "POSITION";
const TIME: &str = "TIME";
const BY: &str = "BY";
const FLOW: &str = "FLOW";
const TASK: &str = "TASK";
const TYPE: &str = "TYPE";
const WHAT: &str = "WHAT";

pub(super) fn show_task(result: &Value, out: &mut Output) -> io::Result<()> {
    show(result, &OF_TASK, out)
}

fn show_flow(result: &Value, out: &mut Output) -> io::Result<()> {
    show(result, &OF_FLOW, out)
}

/// The events of several flows.
pub(crate) fn events_table(result: &Value, out: &mut Output) -> io::Result<()> {
    show(result, &OF_ALL, out)
}

fn show(result: &Value, columns: &[Column<'_>], out: &mut Output) -> io::Result<()> {
    let events = list(result, "events");
    let rows: Vec<Vec<Text>> = events
        .iter()
        .zip(changes::of_page(list(result, changes::EARLIER), events))
        .map(|(event, change)| {
            let cells = columns.iter().map(|column| cell(event, column.head(), out));
            let mut cells: Vec<_> = cells.collect();
            // What changed is the last column.
            if let (Some(change), Some(last)) = (change, cells.last_mut()) {
                *last = Text::from(change);
            }
            cells
        })
        .collect();
    show_table(columns, &rows, out)
}

fn cell(event: &Value, column: &str, out: &Output) -> Text {
    match column {
        POSITION => Text::from(member(event, "position")),
        TIME => time(out, event, "timestamp"),
        FLOW => id(out, &member(event, "root_task_id")),
        TASK => id(out, &member(event, "task_id")),
        TYPE => {
            let kind = member(event, "type");
            Text::of(style(&changed_to(event)), kind)
        }
        BY => Text::from(member(event, "actor")),
        _ => Text::from(
            event
                .get("data")
                .map_or_else(String::new, |data| what(&member(event, "type"), data)),
        ),
    }
}

/// The status that an event gives its task; empty when it gives none.
fn changed_to(event: &Value) -> String {
    let status = event.pointer("/data/status").unwrap_or(&Value::Null);
    member(status, "to")
}

/// The event with the counts of a run that has ended.
const RUN_ENDED: &str = "run_ended";

/// The counts of a run at its end: what it has left pending is skipped.
fn at_end(counts: &Value) -> Value {
    let named = counts.as_object().into_iter().flatten();
    let named = named.map(|(status, count)| match status.as_str() {
        "pending" => (SKIPPED.to_owned(), count.clone()),
        _ => (status.clone(), count.clone()),
    });
    Value::Object(named.collect())
}

/// The members of what changed, payloads apart, on one line.
fn what(kind: &str, data: &Value) -> String {
    /// Characters of one member, so that a line stays a line; `--json` shows all of it.
    const MEMBER_CHARS_MAX: usize = 120;
    const PAYLOADS: [&str; 4] = ["inputs", "schemas", "params", "result"];
    let mut parts = Vec::new();
    for (name, value) in data.as_object().into_iter().flatten() {
        let empty = value.as_array().is_some_and(Vec::is_empty);
        if value.is_null() || empty || PAYLOADS.contains(&name.as_str()) {
            continue;
        }
        if name == "status" {
            let ends = ["from", "to"].map(|end| member(value, end));
            let known: Vec<_> = ends.into_iter().filter(|end| !end.is_empty()).collect();
            parts.insert(0, known.join(" -> "));
            continue;
        }
        let ended = (kind == RUN_ENDED && name == "counts").then(|| at_end(value));
        let value = ended.as_ref().unwrap_or(value);
        parts.push(format!("{name}={}", shortened(value, MEMBER_CHARS_MAX)));
    }
    printable(&parts.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    fn what(data: &Value) -> String {
        super::what("task_failed", data)
    }

    #[test]
    fn what_a_run_has_left_pending_at_its_end_is_skipped() {
        let data =
            json!({"state": "failed", "counts": {"completed": 2, "failed": 1, "pending": 1}});
        assert_eq!(
            super::what("run_ended", &data),
            r#"counts={"completed": 2, "failed": 1, "skipped": 1}, state=failed"#
        );
        assert!(what(&data).contains(r#""pending": 1"#));
    }

    #[test]
    fn a_change_is_one_line_without_payloads() {
        let data = json!({"attempt": 1, "error": "line\nbreak", "status": {"from": "in_progress", "to": "failed"},
            "will_retry": true, "inputs": {"a": 1}, "parent_id": null, "dependencies": []});
        assert_eq!(
            what(&data),
            r#"in_progress -> failed, attempt=1, error="line\nbreak", will_retry=true"#
        );
        assert_eq!(
            what(&json!({"status": {"from": null, "to": "pending"}})),
            "pending"
        );
        let long = what(
            &json!({"name": "use it", "reason": "group", "labels": {"team": "x".repeat(200)},
            "error": format!("no {}", "e".repeat(200))}),
        );
        for part in [
            r#"name="use it""#.to_owned(),
            "reason=group".to_owned(),
            "labels={1 member}".to_owned(),
            format!(r#"error="no {}…""#, "e".repeat(117)),
        ] {
            assert!(long.split(", ").any(|it| it == part), "{long}");
        }
    }
}
