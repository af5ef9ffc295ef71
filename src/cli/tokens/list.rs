//! `taskledger tokens list`

use super::{Output, Params, Request};
use serde_json::Value;
use std::io;
use taskledger_cli::output::{Column, Style, Text, list, member, show_table, style, time, words};

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
    /// The cursor that the previous page printed
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

const COLUMNS: [Column<'static>; 8] = [
    Column::whole("ID"),
    Column::short("OF"),
    Column::whole("STATE"),
    Column::whole("EXPIRES"),
    Column::whole("LAST USED").extra(),
    Column::short("SCOPES"),
    Column::short("AGENTS").extra(),
    Column::short("NOTE").extra(),
];

fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    let rows: Vec<_> = list(result, "tokens")
        .iter()
        .map(|it| row(it, out))
        .collect();
    show_table(&COLUMNS, &rows, out)
}

fn row(token: &Value, out: &Output) -> Vec<Text> {
    let state = member(token, "state");
    vec![
        Text::from(member(token, "id")),
        Text::from(format!(
            "{}:{}",
            member(token, "kind"),
            member(token, "name")
        )),
        Text::of(style(&state), state),
        time(out, token, "expires_at"),
        time(out, token, "last_used_at"),
        Text::from(words(token, "scopes")),
        Text::from(words(token, "agents")),
        Text::of(Style::Dim, member(token, "note")),
    ]
}
