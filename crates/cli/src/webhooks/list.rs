//! `taskledger webhooks list`

use super::{Output, Params, Request};
use crate::output::{Column, Style, Text, list, member, show_table, words};
use serde_json::Value;
use std::io;

/// List webhooks, oldest first
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Webhooks to show, 1 to 100
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: Option<u32>,
    /// The cursor that the previous page printed
    #[arg(long)]
    cursor: Option<String>,
}

impl Args {
    pub(super) fn request(self) -> Request {
        Request {
            method: "webhooks.list",
            params: Params::default()
                .maybe("limit", self.limit)
                .maybe("cursor", self.cursor)
                .build(),
            show,
        }
    }
}

/// Ids stay whole: commands take no part of them.
const COLUMNS: [Column<'static>; 5] = [
    Column::whole("ID"),
    Column::short("STATE"),
    Column::short("EVENTS").extra(),
    Column::short("URL"),
    Column::short("DESCRIPTION").extra(),
];

pub(crate) fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    let rows: Vec<_> = list(result, "webhooks")
        .iter()
        .map(|it| row(it, out))
        .collect();
    show_table(&COLUMNS, &rows, out)
}

fn row(webhook: &Value, out: &Output) -> Vec<Text> {
    let disabled = webhook.get("disabled").filter(|it| it.is_object());
    let paused = webhook.get("breaker").unwrap_or(&Value::Null);
    let breaker = member(paused, "state");
    let state = match disabled {
        Some(disabled) => {
            let why = member(disabled, "reason");
            Text::of(Style::Warn, format!("disabled ({why})"))
        }
        None if breaker == "open" => {
            let until = out.sentence(&member(paused, "next_try_at"));
            Text::of(Style::Warn, format!("paused until {until}"))
        }
        None if !member(webhook, "failing_since").is_empty() => Text::of(Style::Bad, "failing"),
        None => Text::of(Style::Good, "enabled"),
    };
    let events = match webhook.get("events").filter(|it| it.is_array()) {
        Some(_) => words(webhook, "events"),
        None => "all about tasks".to_owned(),
    };
    vec![
        Text::from(member(webhook, "id")),
        state,
        Text::from(events),
        Text::from(member(webhook, "url")),
        Text::of(Style::Dim, member(webhook, "description")),
    ]
}
