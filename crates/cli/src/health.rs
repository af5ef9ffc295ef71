//! `taskledger health` and `taskledger executors`: what a server says of itself.

use super::output::{Output, Style, Text, counted, grid, member};
use super::{Api, CliError, Remote};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Show whether a server works; exits with 1 when it is degraded
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger health
  taskledger health --url https://ledger.example && echo works")]
pub struct Args {
    #[command(flatten)]
    remote: Remote,
}

/// List what can run tasks on a server
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger executors
  taskledger executors --json | jq '.executors[].name'")]
pub struct Executors {
    #[command(flatten)]
    remote: Remote,
}

/// Asks and shows.
pub async fn health(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    let found = args.remote.api()?.call("system.health", json!({})).await?;
    if out.is_json() {
        out.value(&found)?;
    } else {
        out.texts(&of_health(&found))?;
    }
    Ok(match member(&found, "status").as_str() {
        "ok" => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Asks and shows.
pub async fn executors(args: Executors, out: &mut Output) -> Result<ExitCode, CliError> {
    let api = args.remote.api()?;
    let found = api.call("system.executors", json!({})).await?;
    if out.is_json() {
        out.value(&found)?;
    } else {
        let lines = of_executors(&found, out.look().columns);
        out.texts(&lines)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn sound(ok: bool) -> (Style, &'static str) {
    if ok {
        (Style::Good, "✓")
    } else {
        (Style::Bad, "✗")
    }
}

pub(super) fn of_health(found: &Value) -> Vec<Text> {
    let status = member(found, "status");
    let (style, mark) = sound(status == "ok");
    let head = Text::of(style, format!("{mark} {status}")).with(
        Style::Plain,
        format!("  version {}", member(found, "version")),
    );
    let mut lines = vec![head];
    for check in list(found, "checks") {
        let (style, mark) = sound(check.get("ok") == Some(&Value::Bool(true)));
        let text = Text::of(style, format!("  {mark} "))
            .with(Style::Plain, member(check, "name"))
            .with(Style::Dim, format!("  {}", member(check, "detail")));
        lines.push(text);
    }
    let number = |path: &str| found.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    let (head, lag) = (number("/log/head"), number("/projections/lag"));
    let resident = counted(number("/flows/resident"), "flow", "flows");
    lines.push(Text::of(
        Style::Dim,
        format!("  log at {head}, read models {lag} behind, {resident} in memory"),
    ));
    if let Some(zones) = found.get("time_zones") {
        let (edition, source) = (member(zones, "edition"), member(zones, "source"));
        let line = format!("  time zones of edition {edition}, {source}");
        lines.push(Text::of(Style::Dim, line));
        let others: Vec<&str> = list(zones, "other_editions")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        if !others.is_empty() {
            let line = format!(
                "  ✗ other servers use the time zones of {}",
                others.join(", ")
            );
            lines.push(Text::of(Style::Bad, line));
        }
    }
    lines
}

pub(super) fn of_executors(found: &Value, columns: Option<usize>) -> Vec<Text> {
    let rows = list(found, "executors").iter().map(|executor| {
        let is_remote = executor.get("remote") == Some(&Value::Bool(true));
        vec![
            Text::from(member(executor, "name")),
            Text::from(if is_remote { "workers" } else { "server" }),
            Text::from(member(executor, "limit")),
            Text::of(Style::Dim, member(executor, "summary")),
        ]
    });
    let rows: Vec<_> = rows.collect();
    grid(
        &["METHOD", "RUNS ON", "LIMIT", "SUMMARY"],
        &rows,
        3,
        columns,
    )
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    let list = value.get(name).and_then(Value::as_array);
    list.map_or(&[][..], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(lines: &[Text]) -> Vec<String> {
        lines.iter().map(Text::letters).collect()
    }

    #[test]
    fn health_is_read_at_a_glance() {
        let found = json!({"status": "degraded", "version": "0.1.0",
            "checks": [{"name": "log", "ok": true, "detail": "writes"}, {"name": "disk", "ok": false, "detail": "full"}],
            "log": {"head": 7}, "projections": {"lag": 2}, "flows": {"resident": 1},
            "time_zones": {"edition": "2026f", "source": "bundled", "other_editions": ["2025b"]}});
        assert_eq!(
            letters(&of_health(&found)),
            [
                "✗ degraded  version 0.1.0",
                "  ✓ log  writes",
                "  ✗ disk  full",
                "  log at 7, read models 2 behind, 1 flow in memory",
                "  time zones of edition 2026f, bundled",
                "  ✗ other servers use the time zones of 2025b",
            ]
        );
    }

    #[test]
    fn executors_are_a_table() {
        let found = json!({"executors": [
            {"name": "echo_executor", "summary": "Returns its inputs", "limit": 256},
            {"name": "ocr", "summary": "", "limit": null, "remote": true}]});
        assert_eq!(
            letters(&of_executors(&found, Some(40))),
            [
                "METHOD         RUNS ON  LIMIT  SUMMARY",
                "echo_executor  server   256    Returns …",
                "ocr            workers",
            ]
        );
    }
}
