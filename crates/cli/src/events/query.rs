//! `taskledger events query`

use crate::following::say;
use crate::nothing::filters;
use crate::output::{Output, list, member};
use crate::request::{Params, actor};
use crate::tasks::{Order, events_table};
use crate::when::When;
use crate::{Api, CliError, Remote, ids};
use serde_json::Value;
use std::process::ExitCode;
use taskledger_domain::limits::LIST_LIMIT_MAX;

/// Search the events of all flows by time, actor, type, flow and task
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger events query --since 1h
  taskledger events query --actor user:ann --types task_cancelled,task_deleted --order desc
  taskledger events query --flow @last --order desc --limit 20
  taskledger events query --since yesterday --until today --json

Times are those at which events were recorded: spans before now (`15m`, `1h`, `7d`), `today`, `yesterday 14:00`, dates,
or RFC 3339. A page can be empty although more events follow; then it has a cursor.")]
pub struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Only events at this time or later
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only events before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only events caused by this principal, such as user:ann, service:ci, anonymous or engine
    #[arg(long, value_parser = actor)]
    actor: Option<String>,
    /// Only these types of events, separated by commas
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
    /// The cursor that the previous page printed
    #[arg(long)]
    cursor: Option<String>,
}

/// Asks the server and shows a page.
pub async fn query(args: Args, when: &When, out: &mut Output) -> Result<ExitCode, CliError> {
    let api = args.remote.api()?;
    out.calls_with(api.options().to_owned());
    let asked = args.params();
    let mut params = asked.clone();
    when.resolve_in(&mut params, &["since", "until"])?;
    ids::resolve_in(&api, &mut params).await?;
    let result = api.call("events.query", params).await?;
    if out.is_json() {
        out.value(&result)?;
        return Ok(ExitCode::SUCCESS);
    }
    match hint(&result, &asked, out) {
        Some(hint) => say(&hint),
        None => events_table(&result, out)?,
    }
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn params(self) -> Value {
        let order = self.order.map(Order::as_str);
        let types = (!self.types.is_empty()).then_some(self.types);
        Params::default()
            .maybe("since", self.since)
            .maybe("until", self.until)
            .maybe("actor", self.actor)
            .maybe("types", types)
            .maybe("flow", self.flow)
            .maybe("task_id", self.task)
            .maybe("limit", self.limit)
            .maybe("order", order)
            .maybe("cursor", self.cursor)
            .build()
    }
}

/// What may help when there is nothing to show, in the words in which it was asked for.
fn hint(result: &Value, asked: &Value, out: &Output) -> Option<String> {
    if !list(result, "events").is_empty() {
        return None;
    }
    let cursor = member(result, "next_cursor");
    if !cursor.is_empty() {
        return Some(format!(
            "no event in the part of the log that was searched; to search on: --cursor {cursor}"
        ));
    }
    let filters = filters("events.query", asked);
    Some(match filters.is_empty() {
        true => {
            let run = out.command("taskledger run FILE");
            format!("there is no event yet; `{run}` makes some")
        }
        false => format!(
            "no event fits {}; leave one out, or ask for an earlier --since. Names of types and actors are those that \
             `{}` shows",
            filters.join(" and "),
            out.command("taskledger events query --order desc --limit 5")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::{Output, hint};
    use serde_json::json;

    #[test]
    fn a_page_without_events_says_what_may_help() {
        let out = Output::to(Box::new(Vec::new()), false, false);
        let none = json!({"events": []});
        let given = json!({"since": "1h", "types": ["task_failed", "task_cancelled"], "limit": 5});
        let said = hint(&none, &given, &out).unwrap();
        assert!(
            said.starts_with(
                "no event fits --since 1h and --types task_failed,task_cancelled; leave one out"
            ),
            "{said}"
        );
        let said = hint(&none, &json!({"order": "desc"}), &out).unwrap();
        assert!(said.starts_with("there is no event yet"), "{said}");
        let more = json!({"events": [], "next_cursor": "d7"});
        assert!(hint(&more, &given, &out).unwrap().ends_with("--cursor d7"));
        assert_eq!(
            hint(&json!({"events": [{"position": 1}]}), &given, &out),
            None
        );
    }
}
