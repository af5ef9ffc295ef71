//! `taskledger workers declare` and `undeclare`

use super::{CliError, Output, Params, Remote, Request};
use crate::input::read_object;
use crate::output::{only, printable};
use crate::request::{Object, json_object};
use serde_json::Value;
use std::io;
use std::process::ExitCode;

/// Declare a method with its input and output
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger workers declare text.upper
  taskledger workers declare text.upper --input-schema input.json --output-schema output.json
  taskledger workers declare text.upper --defaults '{\"timeout_seconds\": 60, \"retry_count\": 3}' --limit 20

Tasks of a declared method wait for a worker instead of being refused. Declaring a method again replaces its
declaration.")]
pub(super) struct Args {
    #[command(flatten)]
    one: One,
    /// For people
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// File with a JSON Schema of the input; `-` is standard input
    #[arg(long, value_name = "FILE")]
    input_schema: Option<String>,
    /// File with a JSON Schema of the output
    #[arg(long, value_name = "FILE")]
    output_schema: Option<String>,
    /// Members of `params` for tasks that do not have them, as a JSON object
    #[arg(long, value_name = "JSON", value_parser = json_object)]
    defaults: Option<Object>,
    /// Attempts at once, on all nodes together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: Option<u32>,
}

/// The method.
#[derive(Debug, clap::Args)]
pub(super) struct One {
    /// The method
    #[arg(value_name = "METHOD")]
    method: String,
}

impl Args {
    pub(super) fn request(self) -> Result<Request, CliError> {
        let schema = |file: Option<String>| file.as_deref().map(read_object).transpose();
        Ok(Request {
            method: "workers.declare",
            params: Params::default()
                .with("method", self.one.method)
                .maybe("description", self.description)
                .maybe("input_schema", schema(self.input_schema)?)
                .maybe("output_schema", schema(self.output_schema)?)
                .maybe("defaults", self.defaults.map(|object| object.0))
                .maybe("limit", self.limit)
                .build(),
            show: declared,
        })
    }
}

/// What is not to be declared any more.
#[derive(Debug, clap::Args)]
pub(super) struct Undeclare {
    #[command(flatten)]
    one: One,
    /// The user for whose tasks it is declared; default: you, or else the shared declaration; empty: the shared one
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
}

impl Undeclare {
    pub(super) fn request(&self) -> Request {
        Request {
            method: "workers.undeclare",
            params: Params::default()
                .with("method", self.one.method.as_str())
                .maybe("owner", self.owner.as_deref())
                .build(),
            show: |_, _| Ok(()),
        }
    }
}

/// Removes a declaration, and says whose it was.
pub(super) async fn undeclare(
    args: &Undeclare,
    remote: &Remote,
    out: &mut Output,
) -> Result<ExitCode, CliError> {
    args.request().answered(remote, out).await?;
    if !out.is_json() {
        out.line(undeclared(args))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn declared(result: &Value, out: &mut Output) -> io::Result<()> {
    const MEMBERS: [&str; 11] = [
        "method",
        "description",
        "input_schema",
        "output_schema",
        "defaults",
        "limit",
        "owner",
        "declared_by",
        "declared_at",
        "workers",
        "waiting",
    ];
    only(result, &MEMBERS, out)
}

pub(super) fn undeclared(args: &Undeclare) -> String {
    let method = printable(&args.one.method);
    let whose = match args.owner.as_deref() {
        None => String::new(),
        Some("") => " for everybody".to_owned(),
        Some(owner) => format!(" for tasks of {}", printable(owner)),
    };
    format!("{method} is not declared{whose} any more")
}
