//! `taskledger tasks create`

use super::dependency::{Dependency, dependencies, dependency};
use super::{CliError, Object, Output, Params, Request, json_object};
use crate::input::read_object;
use crate::labels::labels;
use crate::output::{member, printable};
use crate::timing::Timing;
use serde_json::{Value, json};
use std::io;

/// Create a task, or a tree of tasks from a file. It starts no run, but joins the run that covers its parent, if one is
/// active
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger tasks create --name hello --method echo_executor --inputs '{\"text\":\"hi\"}'
  taskledger tasks create --name report --parent 0f8fad5b-d9cb-469f-a165-70867728950e \\
      --depends-on 7c9e6679-7425-40de-944b-e07fc1f90ae7:optional
  taskledger tasks create --name publish --parent @last --depends-on 7c9e6679 --method echo_executor
  taskledger tasks create --name nightly --method echo_executor --start-at 'tomorrow 02:00'
  taskledger tasks create --file tree.json")]
pub(super) struct Args {
    /// Name of the task
    #[arg(long, required_unless_present = "file")]
    name: Option<String>,
    /// The executor; a task without one is a group
    #[arg(long, value_name = "EXECUTOR")]
    method: Option<String>,
    /// What the executor gets
    #[arg(long, value_name = "JSON", value_parser = json_object)]
    inputs: Option<Object>,
    /// Settings of the execution, such as `{"timeout_seconds": 10}`
    #[arg(long, value_name = "JSON", value_parser = json_object)]
    params: Option<Object>,
    /// The parent; without one, the task starts a new flow
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// The user
    #[arg(long)]
    user: Option<String>,
    /// 0 urgent, 1 high, 2 normal, 3 low
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=3))]
    priority: Option<u8>,
    /// A task to wait for; may be repeated
    #[arg(long, value_name = "ID[:optional|:always]", value_parser = dependency)]
    depends_on: Vec<Dependency>,
    #[command(flatten)]
    timing: Timing,
    /// A label; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,
    /// The parameters of `tasks.create` as JSON; `-` is standard input
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["name", "method", "inputs", "params", "parent", "user", "priority", "depends_on", "start_at", "delay", "labels"]
    )]
    file: Option<String>,
}

impl Args {
    /// Whether the tasks come from a file, in which they name each other.
    pub(super) const fn is_of_file(&self) -> bool {
        self.file.is_some()
    }

    pub(super) fn request(self) -> Result<Request, CliError> {
        let params = match &self.file {
            Some(file) => Value::Object(read_object(file)?),
            None => timed(
                &self.timing,
                Params::default()
                    .maybe("name", self.name)
                    .maybe(
                        "schemas",
                        self.method.map(|method| json!({"method": method})),
                    )
                    .maybe("inputs", self.inputs.map(|object| object.0))
                    .maybe("params", self.params.map(|object| object.0))
                    .maybe("parent_id", self.parent)
                    .maybe("user_id", self.user)
                    .maybe("priority", self.priority)
                    .maybe(
                        "dependencies",
                        (!self.depends_on.is_empty()).then(|| dependencies(&self.depends_on)),
                    )
                    .maybe("labels", labels(&self.labels)?),
            ),
        };
        Ok(Request {
            method: "tasks.create",
            params,
            show,
        })
    }
}

fn timed(timing: &Timing, task: Params) -> Value {
    let mut task = task.0;
    timing.add_to(&mut task);
    Value::Object(task)
}

fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    out.line(format!(
        "{}  {}",
        member(result, "id"),
        member(result, "status")
    ))?;
    let named = result.get("task_ids").and_then(Value::as_object);
    out.lines(named.into_iter().flatten().map(|(alias, id)| {
        let id = id.as_str().unwrap_or_default();
        format!("{id}  {}", printable(alias))
    }))
}
