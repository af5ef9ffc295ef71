//! `taskledger webhooks list`

use super::{Output, Params, Request};
use crate::cli::output::{member, next_page, printable, table};
use serde_json::Value;
use std::io;

/// List webhooks, oldest first
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Webhooks to show, 1 to 100
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: Option<u32>,
    /// Where the page before ended
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

fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    let webhooks = result.get("webhooks").and_then(Value::as_array);
    let rows: Vec<Vec<String>> = webhooks.into_iter().flatten().map(row).collect();
    out.lines(table(
        &["ID", "STATE", "EVENTS", "URL", "DESCRIPTION"],
        &rows,
    ))?;
    next_page(result, out)
}

fn row(webhook: &Value) -> Vec<String> {
    let disabled = webhook.get("disabled").filter(|it| it.is_object());
    let paused = webhook.get("breaker").unwrap_or(&Value::Null);
    let breaker = member(paused, "state");
    let state = match disabled {
        Some(disabled) => format!("disabled ({})", member(disabled, "reason")),
        None if breaker == "open" => format!("paused until {}", member(paused, "next_try_at")),
        None if !member(webhook, "failing_since").is_empty() => "failing".to_owned(),
        None => "enabled".to_owned(),
    };
    let events = webhook.get("events").and_then(Value::as_array);
    let events = events.map_or_else(
        || "all about tasks".to_owned(),
        |list| {
            let names: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
            printable(&names.join(","))
        },
    );
    vec![
        member(webhook, "id"),
        state,
        events,
        member(webhook, "url"),
        member(webhook, "description"),
    ]
}
