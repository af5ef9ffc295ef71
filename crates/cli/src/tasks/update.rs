//! `taskledger tasks update`

use super::dependency::{Dependency, dependencies, dependency};
use super::{CliError, Object, Output, Params, Request, json_object};
use crate::labels::labels;
use crate::output::member;
use crate::when::future;
use serde_json::{Value, json};
use std::io;

/// Change a task
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger tasks update 0f8fad5b-d9cb-469f-a165-70867728950e --priority 0
  taskledger tasks update 0f8fad5b-d9cb-469f-a165-70867728950e --updates '{\"inputs\":{\"n\":2}}'")]
pub(super) struct Args {
    /// The task
    #[arg(value_name = "ID")]
    task_id: String,
    #[command(flatten)]
    changes: Changes,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
struct Changes {
    /// New name
    #[arg(long)]
    name: Option<String>,
    /// New executor
    #[arg(long, value_name = "EXECUTOR")]
    method: Option<String>,
    /// New inputs
    #[arg(long, value_name = "JSON", value_parser = json_object)]
    inputs: Option<Object>,
    /// New settings of the execution
    #[arg(long, value_name = "JSON", value_parser = json_object)]
    params: Option<Object>,
    /// New parent in the same flow
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// New user
    #[arg(long)]
    user: Option<String>,
    /// 0 urgent, 1 high, 2 normal, 3 low
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=3))]
    priority: Option<u8>,
    /// Do not start it before this time, such as `10m` from now on; an empty text removes it
    #[arg(long, value_name = "TIME", value_parser = start)]
    start_at: Option<String>,
    /// New dependencies, in place of the old ones; may be repeated
    #[arg(long, value_name = "ID[:optional|:always]", value_parser = dependency)]
    depends_on: Vec<Dependency>,
    /// Remove all dependencies
    #[arg(long, conflicts_with = "depends_on")]
    no_dependencies: bool,
    /// A new label; the options replace all labels of the task; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,
    /// Remove all labels
    #[arg(long, conflicts_with = "labels")]
    no_labels: bool,
    /// Any fields, as JSON; the other options take precedence
    #[arg(long, value_name = "JSON", value_parser = json_object)]
    updates: Option<Object>,
}

impl Args {
    pub(super) fn request(self) -> Result<Request, CliError> {
        let Changes {
            name,
            method,
            inputs,
            params,
            parent,
            user,
            priority,
            start_at,
            depends_on,
            no_dependencies,
            labels: given,
            no_labels,
            updates,
        } = self.changes;
        let replaces_dependencies = no_dependencies || !depends_on.is_empty();
        let updates = Params(updates.map(|object| object.0).unwrap_or_default())
            .maybe("name", name)
            .maybe("schemas", method.map(|method| json!({"method": method})))
            .maybe("inputs", inputs.map(|object| object.0))
            .maybe("params", params.map(|object| object.0))
            .maybe("parent_id", parent)
            .maybe("user_id", user)
            .maybe("priority", priority)
            .maybe(
                "start_at",
                start_at.map(|at| {
                    if at.is_empty() {
                        Value::Null
                    } else {
                        Value::from(at)
                    }
                }),
            )
            .maybe(
                "dependencies",
                replaces_dependencies.then(|| dependencies(&depends_on)),
            )
            .maybe("labels", labels(&given)?.or(no_labels.then(|| json!({}))));
        Ok(Request {
            method: "tasks.update",
            params: Params::default()
                .with("task_id", self.task_id)
                .with("updates", updates.build())
                .build(),
            show,
        })
    }
}

fn start(text: &str) -> Result<String, String> {
    match text {
        "" => Ok(String::new()),
        text => future(text),
    }
}

fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    out.line(format!(
        "{}  {}",
        member(result, "id"),
        member(result, "status")
    ))
}
