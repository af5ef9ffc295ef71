//! `taskledger tasks list`

use super::{CliError, Output, Params, Read, Request};
use crate::cli::output::{member, next_page, table};
use clap::ValueEnum;
use serde_json::Value;
use std::io;

/// List tasks, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger tasks list
  taskledger tasks list --status failed --limit 20
  taskledger tasks list --suspended
  taskledger tasks list --root-only --json | jq '.tasks[].id'")]
pub(super) struct Args {
    /// Only tasks in this status: pending, in_progress, completed, failed, cancelled
    #[arg(long)]
    status: Option<String>,
    /// Only tasks of this user
    #[arg(long)]
    user: Option<String>,
    /// Only tasks without a parent
    #[arg(long, conflicts_with = "parent")]
    root_only: bool,
    /// Only tasks that wait for a person
    #[arg(long)]
    suspended: bool,
    /// Only children of this task
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// Only tasks with exactly this name
    #[arg(long)]
    name: Option<String>,
    /// Only tasks with this priority
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=3))]
    priority: Option<u8>,
    /// Only tasks created after this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    created_after: Option<String>,
    /// Only tasks created before this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    created_before: Option<String>,
    /// Tasks to show, 1 to 1000
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: Option<u32>,
    /// Tasks to leave out first
    #[arg(long, conflicts_with = "cursor")]
    offset: Option<u64>,
    /// Where the page before ended
    #[arg(long)]
    cursor: Option<String>,
    /// Newest or oldest first
    #[arg(long, value_enum)]
    order: Option<Order>,
    #[command(flatten)]
    read: Read,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Order {
    /// Oldest first.
    Asc,
    /// Newest first.
    Desc,
}

impl Args {
    pub(super) fn request(self) -> Result<Request, CliError> {
        let params = Params::default()
            .maybe("status", self.status)
            .maybe("user_id", self.user)
            .flag("root_only", self.root_only)
            .flag("suspended", self.suspended)
            .maybe("parent_id", self.parent)
            .maybe("name", self.name)
            .maybe("priority", self.priority)
            .maybe("created_after", self.created_after)
            .maybe("created_before", self.created_before)
            .maybe("limit", self.limit)
            .maybe("offset", self.offset)
            .maybe("cursor", self.cursor)
            .maybe(
                "order",
                self.order.map(|order| match order {
                    Order::Asc => "asc",
                    Order::Desc => "desc",
                }),
            )
            .read(&self.read);
        Ok(Request {
            method: "tasks.list",
            params: params.build(),
            show,
        })
    }
}

fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    let tasks = result.get("tasks").and_then(Value::as_array);
    let tasks = tasks.map_or(&[][..], Vec::as_slice);
    out.lines(rows(tasks))?;
    out.line(format!("{} of {}", tasks.len(), member(result, "total")))?;
    next_page(result, out)
}

/// Tasks as a table.
pub(super) fn rows(tasks: &[Value]) -> Vec<String> {
    let rows: Vec<Vec<String>> = tasks
        .iter()
        .map(|task| {
            ["id", "status", "priority", "created_at", "name"]
                .map(|name| member(task, name))
                .to_vec()
        })
        .collect();
    table(&["ID", "STATUS", "PRIORITY", "CREATED", "NAME"], &rows)
}
