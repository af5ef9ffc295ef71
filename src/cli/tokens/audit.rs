//! `taskledger audit`

use super::{Output, Params, Request};
use crate::cli::output::{member, next_page, table};
use serde_json::Value;
use std::io;

/// Which entries.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only what this principal did: user:NAME, service:NAME, anonymous or server
    #[arg(long)]
    principal: Option<String>,
    /// Only this action, such as token.create or login.failed
    #[arg(long)]
    action: Option<String>,
    /// Only what was done to this object
    #[arg(long)]
    object: Option<String>,
    /// Not before this time, in RFC 3339
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Entries to show, 1 to 100
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: Option<u32>,
    /// Where the page before ended
    #[arg(long)]
    cursor: Option<String>,
}

impl Args {
    pub(super) fn request(self) -> Request {
        Request {
            method: "audit.list",
            params: Params::default()
                .maybe("principal", self.principal)
                .maybe("action", self.action)
                .maybe("object", self.object)
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
    const MEMBERS: [&str; 7] = [
        "at",
        "principal",
        "address",
        "action",
        "object",
        "outcome",
        "detail",
    ];
    let entries = result.get("entries").and_then(Value::as_array);
    let row = |entry: &Value| MEMBERS.iter().map(|name| member(entry, name)).collect();
    let rows: Vec<Vec<String>> = entries.into_iter().flatten().map(row).collect();
    let head = [
        "AT",
        "PRINCIPAL",
        "ADDRESS",
        "ACTION",
        "OBJECT",
        "OUTCOME",
        "DETAIL",
    ];
    out.lines(table(&head, &rows))?;
    next_page(result, out)
}
