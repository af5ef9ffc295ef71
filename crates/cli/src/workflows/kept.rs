//! `taskledger workflows save`, `list`, `show`, `versions`, `diff`, `delete` and `progress`: calls to a server.

use super::{not_sent, tell, text_of};
use crate::output::{Column, Output, Text, counted, is_time, member, printable, show_table, time};
use crate::request::{Params, Request};
use crate::{CliError, Remote};
use serde_json::Value;
use std::io;
use std::process::ExitCode;
use taskledger_workflows::read;

#[derive(Debug, clap::Args)]
pub(super) struct Owner {
    /// The user who owns the workflow; default: you; empty: no owner
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Save {
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    document: super::DocumentFile,
    /// Save only if this is the newest version now; 0: only if no version is saved
    #[arg(long, value_name = "N")]
    expected_version: Option<u32>,
    #[command(flatten)]
    owner: Owner,
}

#[derive(Debug, clap::Args)]
pub(super) struct List {
    #[command(flatten)]
    remote: Remote,
    /// Only names after this one
    #[arg(long, value_name = "NAME")]
    after: Option<String>,
    /// Names to show at most
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    #[command(flatten)]
    owner: Owner,
}

#[derive(Debug, clap::Args)]
pub(super) struct Show {
    #[command(flatten)]
    remote: Remote,
    /// The workflow: `info.name` of its document
    #[arg(value_name = "NAME")]
    name: String,
    /// The version; the newest without it
    #[arg(long, value_name = "N")]
    version: Option<u32>,
    #[command(flatten)]
    owner: Owner,
}

#[derive(Debug, clap::Args)]
pub(super) struct Versions {
    #[command(flatten)]
    remote: Remote,
    /// The workflow: `info.name` of its document
    #[arg(value_name = "NAME")]
    name: String,
    /// Versions before this one
    #[arg(long, value_name = "N")]
    before: Option<u32>,
    /// Versions to show at most
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    #[command(flatten)]
    owner: Owner,
}

#[derive(Debug, clap::Args)]
pub(super) struct Diff {
    #[command(flatten)]
    remote: Remote,
    /// The workflow: `info.name` of its document
    #[arg(value_name = "NAME")]
    name: String,
    /// The older version; default: the one before `--to`, or with `--file` the newest
    #[arg(long, value_name = "N")]
    from: Option<u32>,
    /// The newer version; default: the newest
    #[arg(long, value_name = "N")]
    to: Option<u32>,
    /// A document to compare with, instead of `--to`; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "to")]
    file: Option<String>,
    #[command(flatten)]
    owner: Owner,
}

#[derive(Debug, clap::Args)]
pub(super) struct Delete {
    #[command(flatten)]
    remote: Remote,
    /// The workflow: `info.name` of its document
    #[arg(value_name = "NAME")]
    name: String,
    /// Delete only if this is the newest version now
    #[arg(long, value_name = "N")]
    expected_version: Option<u32>,
    #[command(flatten)]
    owner: Owner,
}

#[derive(Debug, clap::Args)]
pub(super) struct Progress {
    #[command(flatten)]
    remote: Remote,
    /// The run: its root task, as other commands name tasks
    #[arg(value_name = "ROOT")]
    root: String,
}

/// Calls the server and shows the answer.
async fn answered(
    remote: &Remote,
    (method, params): (&'static str, Params),
    show: fn(&Value, &mut Output) -> io::Result<()>,
    out: &mut Output,
) -> Result<Value, CliError> {
    let params = params.build();
    let request = Request {
        method,
        params,
        show,
    };
    request.answered(remote, out).await
}

pub(super) async fn save(args: Save, out: &mut Output) -> Result<ExitCode, CliError> {
    let text = text_of(&args.document.file)?;
    let report = read(&text, args.document.strict);
    if report.workflow.is_none() && !out.is_json() {
        tell(&report, &args.document.file, &text, out)?;
        return Err(not_sent(&args.document.file));
    }
    let params = Params::default()
        .with("document", text)
        .with("strict", args.document.strict)
        .maybe("expected_version", args.expected_version)
        .maybe("owner", args.owner.owner);
    answered(&args.remote, ("workflows.save", params), saved, out).await?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn list(args: List, out: &mut Output) -> Result<ExitCode, CliError> {
    let params = Params::default()
        .maybe("after", args.after)
        .maybe("limit", args.limit)
        .maybe("owner", args.owner.owner);
    answered(&args.remote, ("workflows.list", params), names, out).await?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the document as it was given, so that it can be written to a file.
pub(super) async fn show(args: Show, out: &mut Output) -> Result<ExitCode, CliError> {
    let params = Params::default()
        .with("name", args.name)
        .maybe("version", args.version)
        .maybe("owner", args.owner.owner);
    answered(&args.remote, ("workflows.get", params), document, out).await?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn versions(args: Versions, out: &mut Output) -> Result<ExitCode, CliError> {
    let params = Params::default()
        .with("name", args.name)
        .maybe("before", args.before)
        .maybe("limit", args.limit)
        .maybe("owner", args.owner.owner);
    answered(&args.remote, ("workflows.versions", params), events, out).await?;
    Ok(ExitCode::SUCCESS)
}

/// Exits with 1 when a change breaks somebody.
pub(super) async fn diff(args: Diff, out: &mut Output) -> Result<ExitCode, CliError> {
    let document = args.file.as_deref().map(text_of).transpose()?;
    let params = Params::default()
        .with("name", args.name)
        .maybe("from", args.from)
        .maybe("to", args.to)
        .maybe("document", document)
        .maybe("owner", args.owner.owner);
    let result = answered(&args.remote, ("workflows.diff", params), changes, out).await?;
    let breaks = result.get("breaking").and_then(Value::as_u64) != Some(0);
    Ok(ExitCode::from(u8::from(breaks)))
}

pub(super) async fn delete(args: Delete, out: &mut Output) -> Result<ExitCode, CliError> {
    let params = Params::default()
        .with("name", args.name)
        .maybe("expected_version", args.expected_version)
        .maybe("owner", args.owner.owner);
    answered(&args.remote, ("workflows.delete", params), deleted, out).await?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn progress(args: Progress, out: &mut Output) -> Result<ExitCode, CliError> {
    let root = crate::ids::resolved(&args.remote.api()?, &args.root).await?;
    let params = Params::default().with("root_task_id", root);
    answered(&args.remote, ("workflows.progress", params), counts, out).await?;
    Ok(ExitCode::SUCCESS)
}

fn entries<'a>(result: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    let entries = result.get(name).and_then(Value::as_array);
    entries.into_iter().flatten()
}

fn rows<'a, const N: usize>(
    entries: impl Iterator<Item = &'a Value>,
    names: [&str; N],
    out: &Output,
) -> Vec<Vec<Text>> {
    let cell = |entry, name| match is_time(name) {
        true => time(out, entry, name),
        false => Text::from(member(entry, name)),
    };
    let row = |entry| names.map(|name| cell(entry, name)).to_vec();
    entries.map(row).collect()
}

fn saved(result: &Value, out: &mut Output) -> io::Result<()> {
    let (name, version) = (member(result, "name"), member(result, "version"));
    if result.get("created") == Some(&Value::Bool(false)) {
        return out.line(format!("`{name}` is version {version} already"));
    }
    out.line(format!("`{name}` saved as version {version}"))?;
    match entries(result, "changes").next() {
        Some(_) => changes(result, out),
        None => Ok(()),
    }
}

fn names(result: &Value, out: &mut Output) -> io::Result<()> {
    let members = ["name", "version", "info_version", "saved_at", "saved_by"];
    let rows = rows(entries(result, "workflows"), members, out);
    let columns = [
        Column::whole("NAME"),
        Column::whole("VERSION"),
        Column::short("INFO").extra(),
        Column::whole("SAVED").extra(),
        Column::short("BY").extra(),
    ];
    show_table(&columns, &rows, out)
}

fn document(result: &Value, out: &mut Output) -> io::Result<()> {
    match result.get("document") {
        Some(Value::String(text)) => out.lines(text.lines().map(shown_line)),
        Some(other) => {
            let text = format!("{other:#}");
            out.lines(text.lines().map(printable))
        }
        None => Ok(()),
    }
}

/// A line of a document: tabs stay what they are.
fn shown_line(line: &str) -> String {
    let parts: Vec<String> = line.split('\t').map(printable).collect();
    parts.join("\t")
}

fn events(result: &Value, out: &mut Output) -> io::Result<()> {
    let members = ["version", "event", "info_version", "at", "by", "kept"];
    let rows = rows(entries(result, "versions"), members, out);
    let columns = [
        Column::whole("VERSION"),
        Column::whole("EVENT"),
        Column::short("INFO").extra(),
        Column::whole("AT"),
        Column::short("BY"),
        Column::whole("KEPT").extra(),
    ];
    show_table(&columns, &rows, out)
}

fn changes(result: &Value, out: &mut Output) -> io::Result<()> {
    for change in entries(result, "changes") {
        let what = match [member(change, "before"), member(change, "after")] {
            [before, after] if before.is_empty() || after.is_empty() => format!("{before}{after}"),
            [before, after] => format!("{before} -> {after}"),
        };
        let (path, kind) = (member(change, "path"), member(change, "change"));
        let reason = match member(change, "reason").as_str() {
            "" => String::new(),
            reason => format!("  BREAKING: {reason}"),
        };
        out.line(format!("{kind:<8} {path}: {what}{reason}"))?;
    }
    let count = |name| result.get(name).and_then(Value::as_u64).unwrap_or(0);
    let all = counted(count("count"), "change", "changes");
    out.line(format!("{all}, {} breaking", count("breaking")))
}

fn deleted(_: &Value, out: &mut Output) -> io::Result<()> {
    out.line("deleted")
}

fn counts(result: &Value, out: &mut Output) -> io::Result<()> {
    const LISTED: [&str; 7] = [
        "completed",
        "in_progress",
        "suspended",
        "ready",
        "pending",
        "failed",
        "cancelled",
    ];
    let counts = result.get("counts").unwrap_or(&Value::Null);
    let of = |name| format!("{} {name}", member(counts, name));
    let (status, total) = (member(result, "status"), member(counts, "total"));
    let listed = LISTED.map(of).join(", ");
    out.line(format!("{status}: {total} tasks: {listed}"))?;
    if let Some(workflow) = result.get("workflow") {
        let (name, version) = (member(workflow, "name"), member(workflow, "version"));
        let saved = match member(workflow, "saved_version").as_str() {
            "" => String::new(),
            number => format!(", saved as version {number}"),
        };
        out.line(format!("a run of `{name}` {version}{saved}"))?;
    }
    let skipped = entries(result, "skipped_phases").filter_map(Value::as_str);
    for name in skipped {
        out.line(format!("skipped: {}", printable(name)))?;
    }
    for phase in entries(result, "suspended_phases") {
        let (name, task) = (member(phase, "phase_name"), member(phase, "task_id"));
        let since = out.sentence(&member(phase, "suspended_since"));
        out.line(format!("waits for a person since {since}: {name} ({task})"))?;
    }
    for phase in entries(result, "unresolvable_phases") {
        let (name, why) = (member(phase, "phase_name"), member(phase, "message"));
        out.line(format!("cannot be claimed: {name}: {why}"))?;
    }
    Ok(())
}
