//! `taskledger schedules`: what starts workflows and tasks at given times.

use super::input::read_text;
use super::output::{Column, Output, Text, member, printable, short, show_table};
use super::tasks::{Object, Params, json_object};
use super::when::When;
use super::{Api, CliError, Remote};
use clap::{Subcommand, ValueEnum};
use serde_json::{Value, json};
use std::io;
use std::process::ExitCode;

/// Start workflows and tasks at given times
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger schedules create nightly --cron '0 2 * * *' --time-zone Europe/Berlin --workflow 'Quarterly report'
  taskledger schedules create poll --every 300 --tasks tasks.json --overlap allow
  taskledger schedules create payday --rrule 'FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0' --workflow Payroll
  taskledger schedules get nightly
  taskledger schedules pause nightly --note 'until the database is moved'
  taskledger schedules run-now nightly

Each time starts one run, on one of several servers and after a restart too.")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a schedule
    Create(Box<Create>),
    /// List schedules
    List(Box<List>),
    /// Show a schedule, its next times and its last runs
    Get(Box<Which>),
    /// Change a schedule; what is not named stays
    Update(Box<Update>),
    /// Have the times of a schedule pass without runs
    Pause(Box<Pause>),
    /// Have a schedule start runs again
    Resume(Box<Which>),
    /// Delete a schedule; its runs go on
    Delete(Box<Delete>),
    /// Start a run of a schedule now
    RunNow(Box<RunNow>),
}

#[derive(Debug, clap::Args)]
struct Which {
    #[command(flatten)]
    remote: Remote,
    /// The schedule
    #[arg(value_name = "NAME")]
    name: String,
    /// The user whose schedules are meant, if that is not you; empty: those of nobody
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
}

#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    remote: Remote,
    /// Names behind this one
    #[arg(long, value_name = "NAME")]
    after: Option<String>,
    /// Schedules shown, at most
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// The user whose schedules are meant, if that is not you; empty: those of nobody
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Overlap {
    Skip,
    Queue,
    Allow,
    CancelPrevious,
}

impl Overlap {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Queue => "queue",
            Self::Allow => "allow",
            Self::CancelPrevious => "cancel_previous",
        }
    }
}

/// What a schedule does.
#[derive(Debug, clap::Args)]
struct What {
    /// When: a cron expression of 5 fields, or @hourly, @daily, @weekly, @monthly, @yearly
    #[arg(long, value_name = "EXPRESSION", group = "when")]
    cron: Option<String>,
    /// When: an RFC 5545 recurrence rule
    #[arg(long, value_name = "RULE", group = "when")]
    rrule: Option<String>,
    /// When: each so many seconds
    #[arg(long, value_name = "SECONDS", group = "when")]
    every: Option<u64>,
    /// The zone of `--cron` and `--rrule`, by its IANA name; UTC without it
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// What to start: a saved workflow
    #[arg(long, value_name = "NAME", group = "what")]
    workflow: Option<String>,
    /// Its version; the newest at the time without it
    #[arg(long, value_name = "N", requires = "workflow")]
    workflow_version: Option<u32>,
    /// What its runs are started with, as JSON object
    #[arg(long, value_name = "JSON", requires = "workflow", value_parser = json_object)]
    inputs: Option<Object>,
    /// What to start: a file with tasks as JSON array; `-` is standard input
    #[arg(long, value_name = "FILE", group = "what")]
    tasks: Option<String>,
    /// No run before this time
    #[arg(long, value_name = "TIME")]
    start_at: Option<String>,
    /// No run after this time
    #[arg(long, value_name = "TIME")]
    end_at: Option<String>,
    /// Runs in all
    #[arg(long, value_name = "N")]
    max_runs: Option<u64>,
    /// What happens at a time while a run goes on; skip without it
    #[arg(long, value_enum)]
    overlap: Option<Overlap>,
    /// Seconds within which a missed time is made up; 60 without it
    #[arg(long, value_name = "SECONDS")]
    catch_up: Option<u64>,
    /// Seconds by which each start is put off at most
    #[arg(long, value_name = "SECONDS")]
    jitter: Option<u64>,
}

#[derive(Debug, clap::Args)]
struct Create {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    what: What,
    /// Have its times pass without runs at first
    #[arg(long)]
    paused: bool,
    /// Why
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Update {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    what: What,
    /// Change it only if this is its version
    #[arg(long, value_name = "N")]
    expected_version: Option<u32>,
}

#[derive(Debug, clap::Args)]
struct Pause {
    #[command(flatten)]
    which: Which,
    /// Why
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Delete {
    #[command(flatten)]
    which: Which,
    /// Delete it only if this is its version
    #[arg(long, value_name = "N")]
    expected_version: Option<u32>,
}

#[derive(Debug, clap::Args)]
struct RunNow {
    #[command(flatten)]
    which: Which,
    /// What happens while a run goes on, if it is not as the schedule says
    #[arg(long, value_enum)]
    overlap: Option<Overlap>,
}

impl Which {
    fn params(&self) -> Params {
        Params::default()
            .with("name", self.name.as_str())
            .maybe("owner", self.owner.clone())
    }
}

impl What {
    fn add_to(self, params: Params, when: &When) -> Result<Params, CliError> {
        let time = |text: Option<String>| {
            let at = text.map(|text| when.parse(&text)).transpose();
            at.map(|at| at.map(|at| at.to_string()))
                .map_err(CliError::Usage)
        };
        let tasks = match self.tasks {
            None => None,
            Some(file) => {
                let text = read_text(&file)
                    .map_err(|error| CliError::Usage(format!("cannot read `{file}`: {error}")))?;
                let tasks: Value = serde_json::from_str(&text)
                    .map_err(|error| CliError::Usage(format!("`{file}` is not JSON: {error}")))?;
                // A file for `tasks.execute` has them in `tasks`.
                Some(tasks.get("tasks").cloned().unwrap_or(tasks))
            }
        };
        let workflow = self.workflow.map(|name| {
            let inputs = self.inputs.map(|object| object.0);
            json!({"name": name, "version": self.workflow_version, "inputs": inputs})
        });
        Ok(params
            .maybe("cron", self.cron)
            .maybe("rrule", self.rrule)
            .maybe("every_seconds", self.every)
            .maybe("time_zone", self.time_zone)
            .maybe("workflow", workflow)
            .maybe("tasks", tasks)
            .maybe("start_at", time(self.start_at)?)
            .maybe("end_at", time(self.end_at)?)
            .maybe("max_runs", self.max_runs)
            .maybe("overlap", self.overlap.map(Overlap::as_str))
            .maybe("catch_up_seconds", self.catch_up)
            .maybe("jitter_seconds", self.jitter))
    }
}

/// Does what was asked.
pub(super) async fn schedules(
    args: Args,
    when: &When,
    out: &mut Output,
) -> Result<ExitCode, CliError> {
    let (remote, method, params) = match args.command {
        Command::Create(args) => {
            let params = args.what.add_to(args.which.params(), when)?;
            let params = params.with("paused", args.paused).maybe("note", args.note);
            (args.which.remote, "schedules.create", params)
        }
        Command::List(args) => {
            let params = Params::default()
                .maybe("after", args.after)
                .maybe("limit", args.limit)
                .maybe("owner", args.owner);
            (args.remote, "schedules.list", params)
        }
        Command::Get(which) => {
            let params = which.params();
            (which.remote, "schedules.get", params)
        }
        Command::Update(args) => {
            let params = args.what.add_to(args.which.params(), when)?;
            let params = params.maybe("expected_version", args.expected_version);
            (args.which.remote, "schedules.update", params)
        }
        Command::Pause(args) => {
            let params = args.which.params().maybe("note", args.note);
            (args.which.remote, "schedules.pause", params)
        }
        Command::Resume(which) => {
            let params = which.params().with("paused", false);
            (which.remote, "schedules.pause", params)
        }
        Command::Delete(args) => {
            let params = args.which.params();
            let params = params.maybe("expected_version", args.expected_version);
            (args.which.remote, "schedules.delete", params)
        }
        Command::RunNow(args) => {
            let overlap = args.overlap.map(Overlap::as_str);
            let params = args.which.params().maybe("overlap", overlap);
            (args.which.remote, "schedules.run_now", params)
        }
    };
    let result = remote.api()?.call(method, params.build()).await?;
    if out.is_json() {
        out.value(&result)?;
        return Ok(ExitCode::SUCCESS);
    }
    match method {
        "schedules.list" => listed(&result, when, out)?,
        "schedules.delete" => out.line(match result["deleted"].as_bool() {
            Some(true) => "deleted",
            Some(false) | None => "there is no such schedule",
        })?,
        "schedules.run_now" => run(&result, out)?,
        _ => shown(&result, when, out)?,
    }
    Ok(ExitCode::SUCCESS)
}

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

fn listed(result: &Value, when: &When, out: &mut Output) -> io::Result<()> {
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
    show_table(&columns, &rows, out)?;
    match member(result, "next_after").as_str() {
        "" => Ok(()),
        after => out.line(format!("more: --after '{after}'")),
    }
}

fn shown(result: &Value, when: &When, out: &mut Output) -> io::Result<()> {
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
            let cells = [
                when.member(run, "scheduled_at"),
                by.to_owned(),
                member(run, "outcome"),
                member(run, "status"),
                short(&member(run, "root_task_id")),
                member(run, "error"),
            ];
            cells.map(Text::plain).into()
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

fn run(result: &Value, out: &mut Output) -> io::Result<()> {
    let root = member(result, "root_task_id");
    match member(result, "outcome").as_str() {
        "started" => out.line(format!("started: {root}")),
        "failed" => out.line(format!("failed: {}", member(result, "error"))),
        "skipped" => {
            out.line("skipped: a run goes on; `--overlap allow` starts another one beside it")
        }
        other => out.line(other),
    }
}
