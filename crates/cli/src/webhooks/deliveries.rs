//! `taskledger webhooks deliveries`

use super::{Output, Params, Request};
use crate::output::{Column, Style, Text, id, list, member, show_table, style, time};
use clap::ValueEnum;
use serde_json::Value;
use std::io;

/// List deliveries, newest first
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
    /// Only created at this time or later: `1h`, `yesterday 14:00`, a date, or RFC 3339
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only created before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Deliveries to show, 1 to 100
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: Option<u32>,
    /// The cursor that the previous page printed
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

const COLUMNS: [Column<'static>; 7] = [
    Column::whole("ID"),
    Column::short("STATE"),
    Column::whole("ATTEMPTS"),
    Column::short("LAST"),
    Column::whole("CREATED").extra(),
    Column::short("TYPE"),
    Column::whole("TASK").extra(),
];

pub(crate) fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    let rows: Vec<_> = list(result, "deliveries")
        .iter()
        .map(|it| row(it, out))
        .collect();
    show_table(&COLUMNS, &rows, out)
}

fn row(delivery: &Value, out: &Output) -> Vec<Text> {
    let last = list(delivery, "log").last().map(|attempt| {
        // An answer says more than the class of what is wrong with it.
        match member(attempt, "status") {
            none if none.is_empty() => member(attempt, "error"),
            status => status,
        }
    });
    let state = member(delivery, "state");
    let state = match &*member(delivery, "waits_for") {
        "" => Text::of(style(&state), state),
        "breaker" => {
            let until = out.sentence(&member(delivery, "next_at"));
            Text::of(Style::Warn, format!("paused until {until}"))
        }
        "enabling" => Text::of(Style::Warn, "disabled"),
        _ => Text::of(Style::Dim, "waits for an earlier one"),
    };
    vec![
        Text::from(member(delivery, "id")),
        state,
        Text::from(member(delivery, "attempts")),
        Text::from(last.unwrap_or_else(|| "-".to_owned())),
        time(out, delivery, "created_at"),
        Text::from(member(delivery, "type")),
        id(out, &member(delivery, "task_id")),
    ]
}
