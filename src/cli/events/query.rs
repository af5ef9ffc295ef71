//! `taskledger events query`

use crate::cli::output::Output;
use crate::cli::tasks::{Order, Params, events_table};
use crate::cli::{Api, CliError, Remote, storage};
use std::process::ExitCode;
use taskledger_domain::Timestamp;
use taskledger_domain::limits::LIST_LIMIT_MAX;

/// Search what happened in all flows by time, actor, type, flow and task
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger events query --since 1h
  taskledger events query --actor user:ann --types task_cancelled,task_deleted --order desc
  taskledger events query --since 2026-01-31T00:00:00Z --until 2026-02-01T00:00:00Z --json

Times are those at which events were recorded. A page may be empty although more follows; then it has
a cursor.")]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Not before this time in RFC 3339, or so long ago: 15m, 1h, 7d
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<Moment>,
    /// Before this time in RFC 3339, or so long ago
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<Moment>,
    /// Only what this principal caused, such as user:ann, service:ci, anonymous or engine
    #[arg(long)]
    actor: Option<String>,
    /// Only these types of events, with commas
    #[arg(long, value_delimiter = ',', value_name = "TYPE")]
    types: Vec<String>,
    /// Only this flow, named by its root task
    #[arg(long, value_name = "ID")]
    flow: Option<String>,
    /// Only this task
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Events to show, 1 to 1000
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(LIST_LIMIT_MAX)))]
    limit: Option<u32>,
    /// Oldest or newest first
    #[arg(long, value_enum)]
    order: Option<Order>,
    /// Where the page before ended
    #[arg(long)]
    cursor: Option<String>,
}

/// A time as people say it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Moment {
    /// Sent as it is; the server reads it.
    At(String),
    /// Seconds before now.
    Ago(i64),
}

fn moment(text: &str) -> Result<Moment, String> {
    let expected = || {
        format!(
            "`{text}` is no time, expected RFC 3339 or an age such as `90s`, `15m`, `1h` or `7d`"
        )
    };
    let unit = match text.as_bytes().last() {
        Some(b's') => 1,
        Some(b'm') => 60,
        Some(b'h') => 3_600,
        Some(b'd') => 86_400,
        Some(_) if text.contains('T') => return Ok(Moment::At(text.to_owned())),
        Some(_) | None => return Err(expected()),
    };
    let digits = &text[..text.len() - 1];
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let count = plain.then(|| digits.parse::<i64>().ok()).flatten();
    let seconds = count.and_then(|count| count.checked_mul(unit));
    // A hundred years.
    let seconds = seconds.filter(|seconds| *seconds <= 36_500 * 86_400);
    seconds.map(Moment::Ago).ok_or_else(expected)
}

impl Moment {
    fn text(self) -> String {
        match self {
            Self::At(text) => text,
            Self::Ago(seconds) => {
                Timestamp(storage::clock().now().0 - seconds * 1_000_000).to_string()
            }
        }
    }
}

/// Asks the server and shows a page.
pub(super) async fn query(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    let order = args.order.map(Order::as_str);
    let types = (!args.types.is_empty()).then_some(args.types);
    let params = Params::default()
        .maybe("since", args.since.map(Moment::text))
        .maybe("until", args.until.map(Moment::text))
        .maybe("actor", args.actor)
        .maybe("types", types)
        .maybe("flow", args.flow)
        .maybe("task_id", args.task)
        .maybe("limit", args.limit)
        .maybe("order", order)
        .maybe("cursor", args.cursor)
        .build();
    let api = args.remote.api()?;
    let result = api.call("events.query", params).await?;
    if out.is_json() {
        out.value(&result)?;
    } else {
        events_table(&result, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::{Moment, moment};

    #[test]
    fn a_time_is_a_moment_or_an_age() {
        assert_eq!(moment("90s"), Ok(Moment::Ago(90)));
        assert_eq!(moment("1h"), Ok(Moment::Ago(3_600)));
        assert_eq!(moment("7d"), Ok(Moment::Ago(604_800)));
        let at = "2026-01-31T00:00:00Z";
        assert_eq!(moment(at), Ok(Moment::At(at.to_owned())));
        for text in ["", "h", "1", "-1h", "1w", "99999999d", "yesterday"] {
            assert!(
                moment(text).unwrap_err().contains("expected RFC 3339"),
                "{text}"
            );
        }
    }
}
