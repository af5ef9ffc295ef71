//! `taskledger webhooks deliveries`

use super::{Output, Params, Request};
use crate::cli::output::{member, next_page, table};
use clap::ValueEnum;
use serde_json::Value;
use std::io;

/// Show what became of messages, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger webhooks deliveries --state dead
  taskledger webhooks deliveries 7c9e6679-7425-40de-944b-e07fc1f90ae7 --json | jq '.deliveries[].log'")]
pub(super) struct Args {
    /// Only of this webhook
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Only in this state
    #[arg(long, value_enum)]
    state: Option<State>,
    /// Only about this task
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Only made at this time or after it (RFC 3339)
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only made before this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Deliveries to show, 1 to 100
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: Option<u32>,
    /// Where the page before ended
    #[arg(long)]
    cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum State {
    /// It will be tried, perhaps again
    Waiting,
    /// It has arrived
    Delivered,
    /// It was given up
    Dead,
    /// Its webhook is gone
    Cancelled,
    /// A newer one took its place
    Superseded,
}

impl State {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
            Self::Superseded => "superseded",
        }
    }
}

impl Args {
    pub(super) fn request(self) -> Request {
        Request {
            method: "webhooks.deliveries",
            params: Params::default()
                .maybe("id", self.id)
                .maybe("state", self.state.map(State::as_str))
                .maybe("task_id", self.task)
                .maybe("since", self.since)
                .maybe("until", self.until)
                .maybe("limit", self.limit)
                .maybe("cursor", self.cursor)
                .build(),
            show,
        }
    }
}

fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    const HEAD: [&str; 7] = ["ID", "STATE", "ATTEMPTS", "LAST", "CREATED", "TYPE", "TASK"];
    let deliveries = result.get("deliveries").and_then(Value::as_array);
    let rows: Vec<Vec<String>> = deliveries.into_iter().flatten().map(row).collect();
    out.lines(table(&HEAD, &rows))?;
    next_page(result, out)
}

fn row(delivery: &Value) -> Vec<String> {
    let log = delivery.get("log").and_then(Value::as_array);
    let last = log.and_then(|log| log.last()).map(|attempt| {
        // An answer says more than the class of what is wrong with it.
        match member(attempt, "status") {
            none if none.is_empty() => member(attempt, "error"),
            status => status,
        }
    });
    let state = match &*member(delivery, "waits_for") {
        "" => member(delivery, "state"),
        "breaker" => format!("paused until {}", member(delivery, "next_at")),
        "enabling" => "disabled".to_owned(),
        _ => "behind another".to_owned(),
    };
    vec![
        member(delivery, "id"),
        state,
        member(delivery, "attempts"),
        last.unwrap_or_else(|| "-".to_owned()),
        member(delivery, "created_at"),
        member(delivery, "type"),
        member(delivery, "task_id"),
    ]
}
