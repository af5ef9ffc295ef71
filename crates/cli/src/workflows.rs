//! `taskledger workflows`: documents of RFC-0024. `validate`, `dry-run` and `schemas` need no server.

mod kept;

use super::input::{read_object, read_text};
use super::labels::labels;
use super::output::{Column, Output, Text, counted, list, member, printable, show_table, style};
use super::request::Params;
use super::{Api, CliError, Remote};
use clap::Subcommand;
use serde_json::{Map, Value, json};
use std::io;
use std::process::ExitCode;
use taskledger_domain::json;
use taskledger_workflows::{Fault, Report, read};

/// Check workflow documents and run them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger workflows validate report.yaml
  taskledger workflows dry-run report.yaml --trigger '{\"quarter\": \"2026-Q1\"}' --outputs outputs.json
  taskledger workflows schemas report.yaml --phase report
  taskledger workflows run report.yaml --trigger '{\"quarter\": \"2026-Q1\"}'
  taskledger workflows run report.yaml --trigger-file trigger.json --user ann
  taskledger workflows save report.yaml
  taskledger workflows diff 'Quarterly report' --file report.yaml
  taskledger workflows run --saved 'Quarterly report' --trigger '{\"quarter\": \"2026-Q1\"}'

`validate`, `dry-run` and `schemas` need no server. They exit with 1 when the document has errors,
`dry-run` also when a phase does not complete, `diff` when a change breaks callers, workers or readers of
results. `run` and `save` exit with 2 when the document has errors. Outputs are {phase: output, or [outputs]
of one completion each};
the output {\"$fail\": reason} fails an attempt.")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show all errors of a document with their lines
    #[command(alias = "check")]
    Validate(Validate),
    /// Simulate a run with given outputs, without a server or workers
    DryRun(DryRun),
    /// Print the inputs and outputs of phases as JSON Schemas
    Schemas(Schemas),
    /// Create the tasks of a document, and run them
    #[command(disable_version_flag = true, override_usage = RUN_USAGE)]
    Run(Box<Run>),
    /// Save a document as the newest version of its name
    Save(Box<kept::Save>),
    /// List saved documents
    List(Box<kept::List>),
    /// Print a saved document
    #[command(disable_version_flag = true)]
    Show(Box<kept::Show>),
    /// List the versions of a document
    Versions(Box<kept::Versions>),
    /// Show the differences between two versions, or a version and a file
    Diff(Box<kept::Diff>),
    /// Delete all versions of a document
    Delete(Box<kept::Delete>),
    /// Show the progress of a run
    Progress(Box<kept::Progress>),
}

#[derive(Debug, clap::Args)]
struct Validate {
    #[command(flatten)]
    document: DocumentFile,
}

#[derive(Debug, clap::Args)]
struct DryRun {
    #[command(flatten)]
    document: DocumentFile,
    #[command(flatten)]
    trigger: Trigger,
    /// The outputs of phases, a JSON object by phase name
    #[arg(long, value_name = "FILE")]
    outputs: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Schemas {
    #[command(flatten)]
    document: DocumentFile,
    /// The phase; default: all
    #[arg(long, value_name = "NAME")]
    phase: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Trigger {
    /// The trigger of the run, a JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "trigger_file")]
    trigger: Option<String>,
    /// The same from a file; `-` is standard input
    #[arg(long, value_name = "FILE")]
    trigger_file: Option<String>,
}

#[derive(Debug, clap::Args)]
struct DocumentFile {
    /// The document in YAML or JSON; `-` is standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// Treat unknown keys and warnings as errors
    #[arg(long)]
    strict: bool,
}

#[derive(Debug, clap::Args)]
struct Run {
    #[command(flatten)]
    remote: Remote,
    /// The document in YAML or JSON; `-` is standard input
    #[arg(value_name = "FILE", required_unless_present = "saved")]
    file: Option<String>,
    /// Treat unknown keys and warnings as errors
    #[arg(long)]
    strict: bool,
    /// A saved document, instead of FILE
    #[arg(long, value_name = "NAME", conflicts_with_all = ["file", "strict"])]
    saved: Option<String>,
    /// Its version; the newest without it
    #[arg(long, value_name = "N", requires = "saved", conflicts_with = "file")]
    version: Option<u32>,
    /// The user who owns the saved document; default: you
    #[arg(long, value_name = "USER", requires = "saved", conflicts_with = "file")]
    owner: Option<String>,
    #[command(flatten)]
    trigger: Trigger,
    /// The user who owns the run; default: you
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// A label of the run's root; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,
    /// Create the tasks without starting them
    #[arg(long)]
    no_start: bool,
}

/// The usage of a file and that of a saved document. The generated text names the file only.
const RUN_USAGE: &str = "taskledger workflows run [OPTIONS] <FILE>
       taskledger workflows run [OPTIONS] --saved <NAME>";

/// Does what was asked and shows the result.
pub async fn workflows(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    match args.command {
        Command::Validate(args) => validate(&args.document, out),
        Command::DryRun(args) => dry_run(&args, out),
        Command::Schemas(args) => schemas(&args, out),
        Command::Run(args) => run(*args, out).await,
        Command::Save(args) => kept::save(*args, out).await,
        Command::List(args) => kept::list(*args, out).await,
        Command::Show(args) => kept::show(*args, out).await,
        Command::Versions(args) => kept::versions(*args, out).await,
        Command::Diff(args) => kept::diff(*args, out).await,
        Command::Delete(args) => kept::delete(*args, out).await,
        Command::Progress(args) => kept::progress(*args, out).await,
    }
}

fn text_of(file: &str) -> Result<String, CliError> {
    read_text(file).map_err(|error| CliError::Usage(format!("cannot read `{file}`: {error}")))
}

/// Ends a command that sends a document, after [`tell`] has shown its errors.
fn not_sent(file: &str) -> CliError {
    let text = format!("the document `{file}` has errors, so it is not sent to the server");
    CliError::Usage(text)
}

fn schemas(args: &Schemas, out: &mut Output) -> Result<ExitCode, CliError> {
    let DocumentFile { file, strict } = &args.document;
    let text = text_of(file)?;
    let report = read(&text, *strict);
    let Some(workflow) = &report.workflow else {
        tell(&report, file, &text, out)?;
        return Ok(ExitCode::FAILURE);
    };
    let schemas = workflow.schemas(args.phase.as_deref());
    let schemas = schemas.map_err(|error| CliError::Usage(error.to_string()))?;
    let phases = schemas.into_iter().map(
        |it| json!({"phase_name": it.phase, "input_schema": it.input, "output_schema": it.output}),
    );
    out.value(&json!({"phases": phases.collect::<Vec<_>>()}))?;
    Ok(ExitCode::SUCCESS)
}

fn validate(document: &DocumentFile, out: &mut Output) -> Result<ExitCode, CliError> {
    let text = text_of(&document.file)?;
    let report = read(&text, document.strict);
    let is_valid = report.workflow.is_some();
    if out.is_json() {
        let faults = |faults: &[Fault]| faults.iter().map(shown).collect::<Vec<_>>();
        let mut told = json!({
            "valid": is_valid,
            "errors": faults(&report.errors),
            "warnings": faults(&report.warnings),
        });
        if let Some(workflow) = &report.workflow {
            told["workflow"] = json!({
                "name": workflow.name,
                "version": workflow.version,
                "hash": workflow.hash,
                "phases": workflow.phases.iter().map(|phase| &phase.name).collect::<Vec<_>>(),
                "not_acted_on": workflow.not_acted_on,
            });
        }
        out.value(&told)?;
    } else {
        tell(&report, &document.file, &text, out)?;
        if let Some(workflow) = &report.workflow {
            let phases = counted(workflow.phases.len() as u64, "phase", "phases");
            let (file, name) = (&document.file, printable(&workflow.name));
            out.line(format!("{file}: `{name}`, {phases}, no errors"))?;
        }
    }
    Ok(ExitCode::from(u8::from(!is_valid)))
}

fn shown(fault: &Fault) -> Value {
    json!({
        "error": fault.error, "path": fault.path, "line": fault.line, "column": fault.column,
        "reason": fault.reason, "suggestion": fault.suggestion,
        "phase_name": fault.phase_name, "invalid_refs": fault.invalid_refs,
    })
}

/// Errors, then warnings, each with its line.
fn tell(report: &Report, file: &str, text: &str, out: &mut Output) -> io::Result<()> {
    let lines: Vec<&str> = text.lines().collect();
    let errors = report.errors.iter().map(|fault| ("error", fault));
    let warnings = report.warnings.iter().map(|fault| ("warning", fault));
    let workflow = report.workflow.iter();
    for path in workflow.flat_map(|workflow| &workflow.not_acted_on) {
        out.line(format!(
            "{file}: note: {}: has no effect here",
            printable(path)
        ))?;
    }
    for (kind, fault) in errors.chain(warnings) {
        let place = match (fault.line, fault.column) {
            (Some(line), Some(column)) => format!("{file}:{line}:{column}"),
            _ => file.to_owned(),
        };
        let path = match fault.path.as_str() {
            "" => String::new(),
            path => format!("{}: ", printable(path)),
        };
        out.line(format!(
            "{place}: {kind}: {path}{}",
            printable(&fault.reason)
        ))?;
        if let (Some(number), Some(column)) = (fault.line, fault.column)
            && let Some(line) = lines.get(number as usize - 1)
        {
            out.lines(pointed_at(number, column, line))?;
        }
        if let Some(suggestion) = &fault.suggestion {
            out.line(format!("  help: {}", printable(suggestion)))?;
        }
    }
    Ok(())
}

/// Characters of a line that are shown around a place.
const SHOWN_BEFORE: usize = 60;
const SHOWN_BEHIND: usize = 40;

/// A line with a mark below a column, which counts characters from 1.
fn pointed_at(number: u32, column: u32, line: &str) -> [String; 2] {
    let column = column as usize - 1;
    let from = column.saturating_sub(SHOWN_BEFORE);
    let part = line.chars().skip(from).take(SHOWN_BEFORE + SHOWN_BEHIND);
    let part: String = part.map(|c| if c.is_control() { ' ' } else { c }).collect();
    let number = number.to_string();
    let margin = " ".repeat(number.len());
    let mark = " ".repeat(column - from);
    [
        format!("  {number} | {part}"),
        format!("  {margin} | {mark}^"),
    ]
}

async fn run(args: Run, out: &mut Output) -> Result<ExitCode, CliError> {
    let (method, what) = match (args.saved, args.file) {
        (Some(name), _) => {
            let what = Params::default().with("name", name);
            let what = what.maybe("version", args.version);
            ("workflows.run", what.maybe("owner", args.owner))
        }
        (None, file) => {
            let file = file.unwrap_or_else(|| "-".to_owned());
            let text = text_of(&file)?;
            let report = read(&text, args.strict);
            if !out.is_json() {
                tell(&report, &file, &text, out)?;
                if report.workflow.is_none() {
                    return Err(not_sent(&file));
                }
            }
            let what = Params::default().with("document", text);
            ("workflows.create", what.with("strict", args.strict))
        }
    };
    let trigger = args.trigger.read()?;
    let params = what
        .with("execute", !args.no_start)
        .maybe("trigger", trigger.map(Value::Object))
        .maybe("user_id", args.user)
        .maybe("labels", labels(&args.labels)?)
        .build();
    let api = args.remote.api()?;
    out.calls_with(api.options().to_owned());
    let created = api.call(method, params).await?;
    if out.is_json() {
        out.value(&created)?;
    } else {
        show(&created, out)?;
        crate::warnings::report(&created);
    }
    Ok(ExitCode::SUCCESS)
}

fn dry_run(args: &DryRun, out: &mut Output) -> Result<ExitCode, CliError> {
    let text = text_of(&args.document.file)?;
    let report = read(&text, args.document.strict);
    let Some(workflow) = &report.workflow else {
        return validate(&args.document, out);
    };
    let trigger = args.trigger.read()?.unwrap_or_default();
    let outputs = args.outputs.as_deref().map(read_object).transpose()?;
    let played = workflow.play(&trigger, &outputs.unwrap_or_default());
    let played = played.map_err(|error| CliError::Usage(error.to_string()))?;
    if out.is_json() {
        out.value(&json!({"steps": played.steps, "phases": played.phases}))?;
    } else {
        for step in &played.steps {
            let of = ["error", "output", "input"].into_iter();
            let mut of = of.filter_map(|key| step.get(key));
            let shown = of.next().map(Value::to_string).unwrap_or_default();
            let (phase, kind) = (member(step, "phase"), member(step, "step"));
            out.line(format!("{kind} {phase} {}", printable(&shown)))?;
        }
        let columns = [
            Column::whole("PHASE"),
            Column::whole("STATUS"),
            Column::wraps("REASON"),
        ];
        let row = |it| {
            let status = member(it, "status");
            vec![
                Text::from(member(it, "phase")),
                Text::of(style(&status), status),
                Text::from(member(it, "reason")),
            ]
        };
        let rows: Vec<_> = played.phases.iter().map(row).collect();
        show_table(&columns, &rows, out)?;
    }
    let is_over = |phase: &Value| phase["status"] == "completed" || phase["status"] == "skipped";
    let is_complete = played.phases.iter().all(is_over);
    Ok(ExitCode::from(u8::from(!is_complete)))
}

impl Trigger {
    fn read(&self) -> Result<Option<Map<String, Value>>, CliError> {
        if let Some(file) = &self.trigger_file {
            return read_object(file).map(Some);
        }
        let Some(text) = &self.trigger else {
            return Ok(None);
        };
        let read = json::read(text.as_bytes());
        read.map(Some)
            .map_err(|error| CliError::Usage(format!("--trigger: not a JSON object: {error}")))
    }
}

fn show(created: &Value, out: &mut Output) -> io::Result<()> {
    let row = |phase| {
        let task = match member(phase, "task_id") {
            none if none.is_empty() => member(phase, "status"),
            task => task,
        };
        vec![Text::from(member(phase, "phase_name")), Text::from(task)]
    };
    let rows: Vec<_> = list(created, "phases").iter().map(row).collect();
    show_table(&[Column::whole("PHASE"), Column::whole("TASK")], &rows, out)?;
    let root = member(created, "root_task_id");
    match created.get("run_id") {
        Some(_) => {
            let watch = out.command(&format!("taskledger watch {root}"));
            out.text(&Text::from(format!("run {root} has started: {watch}")).whole())
        }
        None => {
            let execute = out.command(&format!("taskledger tasks execute {root}"));
            out.text(&Text::from(format!("created {root}: {execute}")).whole())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_marked_in_its_line_however_long_that_is() {
        assert_eq!(
            pointed_at(12, 3, "  x: b.key"),
            ["  12 |   x: b.key", "     |   ^"]
        );
        let long = format!("{}X{}", "a".repeat(500), "b".repeat(500));
        let [line, mark] = pointed_at(7, 501, &long);
        assert_eq!(
            line.chars().count(),
            "  7 | ".len() + SHOWN_BEFORE + SHOWN_BEHIND
        );
        assert_eq!(line.find('X'), mark.find('^'));
    }
}
