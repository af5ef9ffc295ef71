//! What commands print of answers.

pub(super) use taskledger_terminal::{Look, Output, Style, Text, grid, printable, table};

use super::storage;
use super::when::{Times, When};
use clap::ValueEnum;
use jiff::tz::TimeZone;
use serde_json::Value;
use std::io::{self, IsTerminal};

/// Whether texts for people have colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Colours {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// In any case.
    Always,
    /// Never.
    Never,
}

/// How answers are shown, for every command.
#[derive(Debug, clap::Args)]
pub(super) struct Shown {
    /// Print the answer as JSON
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Colours: `auto` on a terminal, unless NO_COLOR is set
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value = "auto",
        env = "TASKLEDGER_COLOR"
    )]
    color: Colours,
    /// How times are shown; by default as ages on a terminal, and in UTC elsewhere
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "FORM",
        env = "TASKLEDGER_TIME"
    )]
    time: Option<Times>,
}

impl Shown {
    /// Standard output, as it is to look.
    pub(super) fn output(&self) -> Output {
        let out = Output::standard(self.json);
        let columns = out
            .is_terminal()
            .then(|| super::terminal::Size::now().columns);
        let unwanted = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let coloured = match self.color {
            Colours::Always => true,
            Colours::Never => false,
            Colours::Auto => out.is_terminal() && !unwanted("NO_COLOR") && !dumb,
        };
        out.looking(Look { coloured, columns })
    }

    /// Now, and how times are shown beside it.
    pub(super) fn when(&self) -> When {
        let usual = match io::stdout().is_terminal() {
            true => Times::Age,
            false => Times::Utc,
        };
        When {
            now: storage::clock().now(),
            times: self.time.unwrap_or(usual),
            zone: TimeZone::system(),
        }
    }
}

/// Characters of an id that tell it from others for people; commands take so many.
const SHORT_ID: usize = 8;

/// The beginning of an id, as commands take it.
pub(super) fn short(id: &str) -> String {
    id.chars().take(SHORT_ID).collect()
}

/// What a status means.
pub(super) fn style(status: &str) -> Style {
    match status {
        "completed" => Style::Good,
        "failed" => Style::Bad,
        "in_progress" | "running" => Style::Busy,
        "cancelled" => Style::Warn,
        _ => Style::Dim,
    }
}

/// The member `name` of an object as text for people; empty when it is absent or null.
pub(super) fn member(object: &Value, name: &str) -> String {
    match object.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => printable(text),
        Some(other) => printable(&other.to_string()),
    }
}

/// Says how to see the page after this one, if there is one.
pub(super) fn next_page(result: &Value, out: &mut Output) -> io::Result<()> {
    let cursor = member(result, "next_cursor");
    if cursor.is_empty() {
        return Ok(());
    }
    out.line(format!("next page: --cursor {cursor}"))
}

/// So many things: `1 message`, `2 messages`.
pub(super) fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
