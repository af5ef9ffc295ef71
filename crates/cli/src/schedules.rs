//! `taskledger schedules`: what starts workflows and tasks at given times.

mod shown;

use super::input::read_text;
use super::meant::question;
use super::nothing::shown_or_said;
use super::output::{Output, list, member};
use super::request::{Object, Params, json_object};
use super::when::{self, When};
use super::{Api, ApiError, CliError, Remote, drain};
use clap::{Subcommand, ValueEnum};
use serde_json::{Value, json};
use shown::{listed, owner, run, shown};
use std::process::ExitCode;
use taskledger_domain::json;
use taskledger_zones::Zones;

/// Start workflows and tasks at given times
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger schedules create nightly --cron '0 2 * * *' --time-zone Europe/Berlin --workflow 'Quarterly report'
  taskledger schedules create poll --every 5m --tasks tasks.json --overlap allow
  taskledger schedules create payday --rrule 'FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0' --workflow Payroll
  taskledger schedules get nightly
  taskledger schedules pause nightly --note 'until the database is moved'
  taskledger schedules run-now nightly

Each time of a schedule starts one run, also with several servers and after a restart.")]
pub struct Args {
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
    /// Change a schedule; settings that are not given stay
    Update(Box<Update>),
    /// Pause a schedule: it starts no runs
    Pause(Box<Pause>),
    /// Resume a paused schedule
    Resume(Box<Which>),
    /// Delete a schedule; its runs continue
    Delete(Box<Delete>),
    /// Start a run of a schedule now; exits with 1 if none is started
    RunNow(Box<RunNow>),
}

#[derive(Debug, clap::Args)]
struct Which {
    #[command(flatten)]
    remote: Remote,
    /// The schedule
    #[arg(value_name = "NAME")]
    name: String,
    /// The user who owns the schedule; default: you; empty: no owner
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
}

#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    remote: Remote,
    /// Only names after this one
    #[arg(long, value_name = "NAME")]
    after: Option<String>,
    /// Schedules to show at most
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// The user who owns the schedule; default: you; empty: no owner
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Overlap {
    Skip,
    Queue,
    Allow,
    #[value(alias = "cancel_previous")]
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

/// A bound that a schedule can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Bound {
    #[value(alias = "start_at")]
    StartAt,
    #[value(alias = "end_at")]
    EndAt,
    #[value(alias = "max_runs")]
    MaxRuns,
}

impl Bound {
    const fn as_str(self) -> &'static str {
        match self {
            Self::StartAt => "start_at",
            Self::EndAt => "end_at",
            Self::MaxRuns => "max_runs",
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
    /// When: at this interval, in seconds or as a span such as `90s`, `15m`, `1h` or `7d`
    #[arg(long, value_name = "SECONDS", group = "when", value_parser = when::seconds)]
    every: Option<u64>,
    /// The zone of `--cron` and `--rrule`, by its IANA name; default: UTC
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// What to start: a saved workflow
    #[arg(long, value_name = "NAME", group = "what")]
    workflow: Option<String>,
    /// Its version; default: the newest when a run starts
    #[arg(long, value_name = "N", requires = "workflow")]
    workflow_version: Option<u32>,
    /// The trigger of its runs, a JSON object
    #[arg(long, value_name = "JSON", requires = "workflow", value_parser = json_object)]
    inputs: Option<Object>,
    /// What to start: a file with tasks as JSON array; `-` is standard input
    #[arg(long, value_name = "FILE", group = "what")]
    tasks: Option<String>,
    /// No run before this time, such as `10m` from now on, `tomorrow 14:00` or `2026-01-31T14:00:00Z`; intervals count
    /// from it, also from a date that has passed
    #[arg(long, value_name = "TIME", value_parser = when::beginning)]
    start_at: Option<String>,
    /// No run after this time, written as for `--start-at`
    #[arg(long, value_name = "TIME", value_parser = when::future)]
    end_at: Option<String>,
    /// Runs that the schedule starts at most; runs by hand do not count
    #[arg(long, value_name = "N")]
    max_runs: Option<u64>,
    /// What to do at a time of the schedule while a run is in progress: skip the time (the default), wait for the
    /// end of the run, start another run at the same time, or cancel the run first
    #[arg(long, value_enum)]
    overlap: Option<Overlap>,
    /// How late a time that was missed while no server ran may still start its run, in seconds or as a span;
    /// default: 60 s
    #[arg(long, value_name = "SECONDS", value_parser = when::seconds)]
    catch_up: Option<u64>,
    /// Random delay of each start at most, in seconds or as a span; default: 0
    #[arg(long, value_name = "SECONDS", value_parser = when::seconds)]
    jitter: Option<u64>,
}

#[derive(Debug, clap::Args)]
struct Create {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    what: What,
    /// Create it paused
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
    /// A bound to remove; may be repeated
    #[arg(long, value_enum, value_name = "MEMBER")]
    without: Vec<Bound>,
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
    /// What to do while a run is in progress; default: as the schedule says
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
    fn add_to(self, params: Params) -> Result<Params, CliError> {
        let tasks = match self.tasks {
            None => None,
            Some(file) => {
                let text = read_text(&file)
                    .map_err(|error| CliError::Usage(format!("cannot read `{file}`: {error}")))?;
                let tasks: Value = json::read(text.as_bytes()).map_err(|error| {
                    CliError::Usage(format!("`{file}`: {error}, expected JSON"))
                })?;
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
            .maybe("start_at", self.start_at)
            .maybe("end_at", self.end_at)
            .maybe("max_runs", self.max_runs)
            .maybe("overlap", self.overlap.map(Overlap::as_str))
            .maybe("catch_up_seconds", self.catch_up)
            .maybe("jitter_seconds", self.jitter))
    }
}

/// Whether an update has more than the name of its schedule.
fn changes_something(params: &Params) -> bool {
    let is_name = |name: &&String| matches!(name.as_str(), "name" | "owner");
    params.0.keys().any(|name| !is_name(&name))
}

/// That there is no schedule to delete.
async fn none_such(api: &dyn Api, asked: &Value, out: &Output) -> CliError {
    let (name, meant) = (member(asked, "name"), meant_name(api, asked).await);
    let list = format!("taskledger schedules list{}", owner(asked));
    let list = out.command(&list);
    CliError::Usage(format!(
        "there is no schedule `{name}`{meant}{} `{list}` shows those that there are",
        if meant.is_empty() { ";" } else { "" }
    ))
}

/// The code of the refusal for a schedule that does not exist.
const NOT_FOUND: i64 = -31014;
/// Schedules among which one is looked for that was probably meant: as many as a page has.
const NAMES_MAX: u32 = 100;

/// `; did you mean ..?`, if that is known. What the server does not answer is not.
async fn meant_name(api: &dyn Api, asked: &Value) -> String {
    let params = Params::default()
        .with("limit", NAMES_MAX)
        .maybe("owner", asked.get("owner").cloned());
    let found = api.call("schedules.list", params.build()).await;
    let found = found.unwrap_or_default();
    let names = list(&found, "schedules").iter();
    let names: Vec<String> = names.map(|schedule| member(schedule, "name")).collect();
    question(&member(asked, "name"), names.iter().map(String::as_str))
}

/// A refusal with the name of the schedule or of the time zone that was probably meant.
async fn helped(api: &dyn Api, asked: &Value, error: ApiError) -> ApiError {
    let ApiError::Refused {
        code,
        message,
        mut data,
    } = error
    else {
        return error;
    };
    let mut faults = list(&data, "errors").iter();
    let meant = if code == NOT_FOUND {
        meant_name(api, asked).await
    } else if faults.any(|fault| member(fault, "field") == "time_zone") {
        let zones = Zones::bundled().names();
        question(
            &member(asked, "time_zone"),
            zones.iter().map(String::as_str),
        )
    } else {
        String::new()
    };
    if let (Some(data), Some(meant)) = (data.as_object_mut(), meant.strip_prefix("; "))
        && !data.contains_key("hint")
    {
        data.insert("hint".to_owned(), meant.into());
    }
    ApiError::Refused {
        code,
        message,
        data,
    }
}

/// Does what was asked.
pub async fn schedules(args: Args, when: &When, out: &mut Output) -> Result<ExitCode, CliError> {
    let (remote, method, params) = match args.command {
        Command::Create(args) => {
            let params = args.what.add_to(args.which.params())?;
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
            let params = args.what.add_to(args.which.params())?;
            let without: Vec<&str> = args.without.iter().map(|it| it.as_str()).collect();
            let params = params.maybe("without", (!without.is_empty()).then_some(without));
            if !changes_something(&params) {
                let text =
                    "nothing to change: give at least one option such as --every or --overlap";
                return Err(CliError::Usage(text.to_owned()));
            }
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
    let api = remote.api()?;
    out.calls_with(api.options().to_owned());
    let asked = params.build();
    let result = match api.call(method, asked.clone()).await {
        Ok(result) => result,
        Err(error) => return Err(helped(&api, &asked, error).await.into()),
    };
    if method == "schedules.delete" && result["deleted"] != Value::Bool(true) {
        return Err(none_such(&api, &asked, out).await);
    }
    let is_run = method == "schedules.run_now";
    let code = match is_run && member(&result, "outcome") != "started" {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    };
    if out.is_json() {
        out.value(&result)?;
        return Ok(code);
    }
    match method {
        "schedules.list" => {
            let show = |result: &Value, out: &mut Output| listed(result, when, out);
            shown_or_said(method, (&asked, &asked), &result, show, out)?;
        }
        "schedules.delete" => out.line("deleted")?,
        "schedules.run_now" => run(&asked, &result, out)?,
        _ => shown(&result, when, out)?,
    }
    crate::warnings::report(&result);
    if is_run {
        drain::warn(&api, &member(&result, "root_task_id"), out).await;
    }
    Ok(code)
}

#[cfg(test)]
mod tests;
