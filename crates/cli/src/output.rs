//! What commands print of answers.

pub use taskledger_terminal::{Column, Look, Output, Style, Text, aligned, grid, printable};

use super::clock;
use super::when::{Times, When, local_zone};
use clap::ValueEnum;
use serde::Serialize as _;
use serde_json::Value;
use serde_json::ser::Formatter;
use std::io::{self, IsTerminal};

/// Whether texts for people have colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Colours {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// In any case
    Always,
    /// Never
    Never,
}

/// The heading of these options in help.
const OUTPUT: &str = "Output";

/// How answers are shown, for every command.
#[derive(Debug, clap::Args)]
pub struct Shown {
    /// Print the answer as JSON
    #[arg(long, global = true, help_heading = OUTPUT)]
    pub json: bool,
    /// Colours: `always`, `never`, or `auto`, which is on a terminal unless NO_COLOR is set
    #[arg(
        long,
        global = true,
        help_heading = OUTPUT,
        value_enum,
        hide_possible_values = true,
        value_name = "WHEN",
        default_value = "auto",
        env = "TASKLEDGER_COLOR"
    )]
    color: Colours,
    /// How times are shown: as an `age`, by the `local` clock or in `utc`; by default as ages on a terminal, and in UTC
    /// elsewhere
    #[arg(
        long,
        global = true,
        help_heading = OUTPUT,
        value_enum,
        hide_possible_values = true,
        value_name = "FORM",
        env = "TASKLEDGER_TIME"
    )]
    time: Option<Times>,
}

impl Shown {
    /// Standard output, as it is to look.
    pub fn output(&self) -> Output {
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
        out.looking(Look { coloured, columns }).telling(self.when())
    }

    /// Now, and how times are shown beside it.
    pub fn when(&self) -> When {
        let usual = match io::stdout().is_terminal() {
            true => Times::Age,
            false => Times::Utc,
        };
        When {
            now: clock().now(),
            times: self.time.unwrap_or(usual),
            zone: local_zone(),
        }
    }
}

/// Characters of an id that tell it from others for people; commands take so many.
const SHORT_ID: usize = 8;

/// The beginning of an id, as commands take it.
pub(super) fn short(id: &str) -> String {
    id.chars().take(SHORT_ID).collect()
}

/// What a status or a state means.
pub fn style(status: &str) -> Style {
    match status {
        "completed" | "active" | "delivered" => Style::Good,
        "failed" | "dead" => Style::Bad,
        "in_progress" | "running" | "working" => Style::Busy,
        "cancelled" | "revoked" | "expired" | "draining" | "drained" => Style::Warn,
        "" => Style::Plain,
        _ => Style::Dim,
    }
}

/// The member `name` of an object as text for people; empty when it is absent or null.
pub fn member(object: &Value, name: &str) -> String {
    match object.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => printable(text),
        Some(other) => printable(&other.to_string()),
    }
}

/// An id: short on a terminal, whole where programs read it.
pub(super) fn id(out: &Output, id: &str) -> Text {
    Text::from(match out.look().columns {
        Some(_) => short(id),
        None => id.to_owned(),
    })
}

/// The time in the member `name` of an object, as people read it; empty when there is none.
pub fn time(out: &Output, object: &Value, name: &str) -> Text {
    Text::of(Style::Dim, out.time(&member(object, name)))
}

/// The member `name` of an object, which is a list.
pub fn list<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    let list = object.get(name).and_then(Value::as_array);
    list.map_or(&[][..], Vec::as_slice)
}

/// The texts of a list, with commas.
pub fn words(object: &Value, name: &str) -> String {
    let words: Vec<&str> = list(object, name)
        .iter()
        .filter_map(Value::as_str)
        .collect();
    printable(&words.join(","))
}

/// A table, as wide as there is room.
pub fn show_table(columns: &[Column<'_>], rows: &[Vec<Text>], out: &mut Output) -> io::Result<()> {
    out.texts(&aligned(columns, rows, out.look().columns))
}

/// Columns that the name of a member takes beside its value.
const NAME_COLUMNS: usize = 16;

/// A member as a line with its name; empty ones have none.
pub(super) fn named(name: &str, value: impl Into<Text>) -> Option<Text> {
    let value = value.into();
    if value.columns() == 0 {
        return None;
    }
    let mut line = Text::of(Style::Dim, format!("{name:<NAME_COLUMNS$} "));
    line.append(value);
    Some(line.hanging(" ".repeat(NAME_COLUMNS + 1)))
}

/// Whether a member is a time, by its name.
pub(super) fn is_time(name: &str) -> bool {
    name.ends_with("_at")
        || matches!(
            name,
            "at" | "since" | "until" | "previous_until" | "deadline" | "failing_since"
        )
}

/// JSON with blanks between its parts, where a line may be broken.
pub(super) fn spaced(value: &Value) -> String {
    struct Spaced;
    impl Formatter for Spaced {
        fn begin_array_value<W: ?Sized + io::Write>(
            &mut self,
            to: &mut W,
            first: bool,
        ) -> io::Result<()> {
            to.write_all(if first { b"" } else { b", " })
        }

        fn begin_object_key<W: ?Sized + io::Write>(
            &mut self,
            to: &mut W,
            first: bool,
        ) -> io::Result<()> {
            to.write_all(if first { b"" } else { b", " })
        }

        fn begin_object_value<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
            to.write_all(b": ")
        }
    }
    let mut text = Vec::new();
    let mut to = serde_json::Serializer::with_formatter(&mut text, Spaced);
    value.serialize(&mut to).expect("a value in memory is JSON");
    printable(&String::from_utf8_lossy(&text))
}

/// A member as a line: times as people read them, lists of words with commas; `None` when it is empty.
fn member_line(object: &Value, name: &str, out: &Output) -> Option<Text> {
    let all = list(object, name);
    let value = match !all.is_empty() && all.iter().all(Value::is_string) {
        // A line may be broken at blanks.
        true if out.look().columns.is_some() => words(object, name).replace(',', ", "),
        true => words(object, name),
        false => match object.get(name) {
            Some(value @ (Value::Object(_) | Value::Array(_))) if out.look().columns.is_some() => {
                spaced(value)
            }
            Some(_) | None => member(object, name),
        },
    };
    let value = match name {
        "status" | "state" => Text::of(style(&value), value),
        "error" => Text::of(Style::Bad, value),
        name if is_time(name) => Text::from(out.time(&value)),
        _ => Text::from(value),
    };
    named(name, value)
}

/// These members as lines; what is empty is left out.
pub fn only(object: &Value, names: &[&str], out: &mut Output) -> io::Result<()> {
    let lines = names
        .iter()
        .filter_map(|name| member_line(object, name, out));
    let lines: Vec<Text> = lines.collect();
    out.texts(&lines)
}

/// Members as lines, these first and then the others; what is empty is left out.
pub(super) fn members(object: &Value, first: &[&str], out: &mut Output) -> io::Result<()> {
    let Some(map) = object.as_object() else {
        return out.line(printable(&object.to_string()));
    };
    let rest = map.keys().map(String::as_str);
    let rest = rest.filter(|name| !first.contains(name));
    let names: Vec<&str> = first.iter().copied().chain(rest).collect();
    only(object, &names, out)
}

/// So many things: `1 message`, `2 messages`.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
