//! `taskledger tokens list`

use super::{Output, Params, Request, words};
use crate::cli::output::{member, next_page, table};
use serde_json::Value;
use std::io;

/// List tokens without their secrets, oldest first
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only tokens of this user, or with --service of this service
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// The name is that of a service
    #[arg(long, requires = "name")]
    service: bool,
    /// Tokens to show, 1 to 100
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: Option<u32>,
    /// Where the page before ended
    #[arg(long)]
    cursor: Option<String>,
}

impl Args {
    pub(super) fn request(self) -> Request {
        Request {
            method: "tokens.list",
            params: Params::default()
                .maybe("name", self.name)
                .maybe("kind", self.service.then_some("service"))
                .maybe("limit", self.limit)
                .maybe("cursor", self.cursor)
                .build(),
            show,
        }
    }
}

fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    let tokens = result.get("tokens").and_then(Value::as_array);
    let row = |token: &Value| {
        vec![
            member(token, "id"),
            format!("{}:{}", member(token, "kind"), member(token, "name")),
            member(token, "state"),
            member(token, "expires_at"),
            member(token, "last_used_at"),
            words(token, "scopes"),
            words(token, "agents"),
            member(token, "note"),
        ]
    };
    let rows: Vec<Vec<String>> = tokens.into_iter().flatten().map(row).collect();
    let head = [
        "ID",
        "OF",
        "STATE",
        "EXPIRES",
        "LAST USED",
        "SCOPES",
        "AGENTS",
        "NOTE",
    ];
    out.lines(table(&head, &rows))?;
    next_page(result, out)
}
