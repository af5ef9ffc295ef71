//! `taskledger audit`

use super::{Output, Params, Request};
use serde_json::Value;
use std::io;
use taskledger_cli::output::{Column, Style, Text, list, member, show_table, time};
use taskledger_cli::request::principal;

/// Which entries.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only actions of this principal: user:NAME, service:NAME, anonymous, operator or server
    #[arg(long, visible_alias = "actor", value_parser = principal)]
    principal: Option<String>,
    /// Only this action, such as token.create or login.failed
    #[arg(long)]
    action: Option<String>,
    /// Only actions on this object
    #[arg(long)]
    object: Option<String>,
    /// Not before this time: `1h`, `yesterday 14:00`, a date, or RFC 3339
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Entries to show, 1 to 100
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: Option<u32>,
    /// The cursor that the previous page printed
    #[arg(long)]
    cursor: Option<String>,
}

impl Args {
    /// The principal that was asked for, and any entry of it; `None` for a later page.
    pub(super) fn of_principal(&self) -> Option<(String, Request)> {
        if self.cursor.is_some() {
            return None;
        }
        let principal = self.principal.clone()?;
        let named = principal.clone();
        let any = Request {
            method: "audit.list",
            params: Params::default()
                .maybe("principal", Some(principal))
                .maybe("limit", Some(1))
                .build(),
            show,
        };
        Some((named, any))
    }

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

/// Whether a page has no entry.
pub(super) fn is_empty(page: &Value) -> bool {
    list(page, "entries").is_empty()
}

const COLUMNS: [Column<'static>; 9] = [
    Column::whole("TIME"),
    Column::short("BY"),
    Column::short("TOKEN").extra(),
    Column::short("ADDRESS").extra(),
    Column::whole("ACTION"),
    Column::short("OBJECT"),
    Column::whole("OUTCOME"),
    Column::short("REQUEST").extra(),
    Column::wraps("DETAIL"),
];

fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    let rows: Vec<_> = list(result, "entries")
        .iter()
        .map(|it| row(it, out))
        .collect();
    show_table(&COLUMNS, &rows, out)
}

fn row(entry: &Value, out: &Output) -> Vec<Text> {
    let text = |name| Text::from(member(entry, name));
    let outcome = member(entry, "outcome");
    let style = match outcome.as_str() {
        "refused" => Style::Bad,
        _ => Style::Plain,
    };
    vec![
        time(out, entry, "at"),
        text("principal"),
        text("token"),
        text("address"),
        text("action"),
        text("object"),
        Text::of(style, outcome),
        text("request"),
        Text::of(Style::Dim, member(entry, "detail")),
    ]
}
