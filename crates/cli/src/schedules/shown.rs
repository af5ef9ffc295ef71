//! Shows schedules and their runs to people.

use crate::output::{Column, Output, Text, id, member, printable, show_table, style};
use crate::remote::quoted;
use crate::when::When;
use serde_json::{Value, json};
use std::io;

/// When it is due, in one line.
fn timing(schedule: &Value) -> String {
    let zone = member(schedule, "time_zone");
    let zone = match zone.as_str() {
        "" => String::new(),
        zone => format!(" {zone}"),
    };
    for name in ["cron", "rrule"] {
        if let Some(text) = schedule.get(name).and_then(Value::as_str) {
            return format!("{}{zone}", printable(&text.replace('\n', " ")));
        }
    }
    format!("every {} s", member(schedule, "every_seconds"))
}

/// What it starts, in one line.
fn work(schedule: &Value) -> String {
    match (
        schedule.get("workflow"),
        schedule.get("tasks").and_then(Value::as_array),
    ) {
        (Some(workflow), _) => format!("workflow {}", member(workflow, "name")),
        (None, Some(tasks)) if tasks.len() == 1 => "1 task".to_owned(),
        (None, tasks) => format!("{} tasks", tasks.map_or(0, Vec::len)),
    }
}

fn state(schedule: &Value, when: &When) -> String {
    if schedule["paused"] == Value::Bool(true) {
        return "paused".to_owned();
    }
    match when.member(schedule, "next_at").as_str() {
        "" => "ended".to_owned(),
        next => next.to_owned(),
    }
}

pub(super) fn listed(result: &Value, when: &When, out: &mut Output) -> io::Result<()> {
    let found = result["schedules"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let rows: Vec<Vec<Text>> = found
        .iter()
        .map(|it| {
            let counters = &it["counters"];
            let cells = [
                member(it, "name"),
                state(it, when),
                timing(it),
                work(it),
                member(counters, "started"),
                member(counters, "skipped"),
                member(counters, "missed"),
                member(counters, "failed"),
            ];
            cells.map(Text::plain).into()
        })
        .collect();
    let columns = [
        Column::whole("NAME"),
        Column::whole("NEXT"),
        Column::short("WHEN"),
        Column::short("STARTS"),
        Column::whole("STARTED"),
        Column::whole("SKIPPED").extra(),
        Column::whole("MISSED").extra(),
        Column::whole("FAILED").extra(),
    ];
    show_table(&columns, &rows, out)
}

/// The option that names the same owner, behind a blank.
pub(super) fn owner(asked: &Value) -> String {
    match asked.get("owner").and_then(Value::as_str) {
        Some(owner) => format!(" --owner {}", quoted(owner)),
        None => String::new(),
    }
}

pub(super) fn shown(result: &Value, when: &When, out: &mut Output) -> io::Result<()> {
    let name = member(result, "name");
    out.line(format!(
        "{name}: {}, {}, version {}",
        timing(result),
        work(result),
        member(result, "version")
    ))?;
    if result["paused"] == Value::Bool(true) {
        let note = member(result, "note");
        out.line(match note.as_str() {
            "" => "paused".to_owned(),
            note => format!("paused: {note}"),
        })?;
    }
    let next = result["next"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    for (n, time) in next.iter().enumerate() {
        let at = when.member(&json!({"at": time}), "at");
        let label = if n == 0 { "next" } else { "    " };
        let utc = time.as_str().unwrap_or_default();
        out.line(match at == utc {
            true => format!("{label}  {utc}"),
            false => format!("{label}  {at}  {utc}"),
        })?;
    }
    let counters = &result["counters"];
    let counted: Vec<String> = ["started", "started_by_hand", "skipped", "missed", "failed"]
        .iter()
        .map(|name| format!("{} {}", member(counters, name), name.replace('_', " ")))
        .collect();
    out.line(counted.join(", "))?;
    let error = member(result, "last_error");
    if !error.is_empty() {
        out.line(format!("last error: {error}"))?;
    }
    let runs = result["runs"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    if runs.is_empty() {
        return Ok(());
    }
    let rows: Vec<Vec<Text>> = runs
        .iter()
        .map(|run| {
            let by = match run["by_hand"].as_bool() {
                Some(true) => "hand",
                Some(false) | None => "time",
            };
            vec![
                Text::from(when.member(run, "scheduled_at")),
                Text::from(by),
                Text::from(member(run, "outcome")),
                status(run),
                id(out, &member(run, "root_task_id")),
                Text::from(member(run, "error")),
            ]
        })
        .collect();
    let columns = [
        Column::whole("TIME"),
        Column::whole("BY").extra(),
        Column::whole("OUTCOME"),
        Column::whole("STATUS"),
        Column::whole("ROOT"),
        Column::wraps("ERROR"),
    ];
    show_table(&columns, &rows, out)
}

/// The status of a run in the words of all other commands. The server tells a stage here.
fn status(run: &Value) -> Text {
    let stage = member(run, "status");
    let (status, more) = match stage.as_str() {
        "submitted" => ("pending", ""),
        "working" => ("in_progress", ""),
        "input_required" | "auth_required" => ("in_progress", ", waits for a person"),
        "rejected" => ("failed", ", rejected"),
        other => (other, ""),
    };
    Text::of(style(status), format!("{status}{more}"))
}

pub(super) fn run(asked: &Value, result: &Value, out: &mut Output) -> io::Result<()> {
    let root = member(result, "root_task_id");
    match member(result, "outcome").as_str() {
        "started" => out.line(format!("started: {root}")),
        "failed" => out.line(format!("failed: {}", member(result, "error"))),
        "skipped" => {
            let name = quoted(&member(asked, "name"));
            let again = format!("taskledger schedules run-now {name} --overlap allow");
            let again = out.command(&(again + &owner(asked)));
            out.line(format!(
                "skipped: a run is in progress; `{again}` starts another one at the same time"
            ))
        }
        other => out.line(other),
    }
}
