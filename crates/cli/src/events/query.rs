//! `taskledger events query`

use crate::following::say;
use crate::output::{Output, list, member};
use crate::paging::{filters, next, show_next};
use crate::request::{Params, actor};
use crate::tasks::{Order, add_earlier, events_table};
use crate::when::When;
use crate::{Api, CliError, Remote, ids};
use serde_json::{Value, json};
use std::process::ExitCode;
use taskledger_domain::limits::LIST_LIMIT_MAX;

const METHOD: &str = "events.query";
/// Events that are shown when nobody says how many; as many as the server gives.
const LIMIT_DEFAULT: u32 = 100;
/// Calls of one query. In each the server looks through up to 20,000 events, so that this is a log of four million.
const CALLS_MAX: u32 = 200;

/// Search what happened in all flows by time, actor, type, flow and task
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger events query --since 1h
  taskledger events query --actor user:ann --types task_cancelled,task_deleted --order desc
  taskledger events query --flow @last --order desc --limit 20
  taskledger events query --since yesterday --until today --json

Times are those at which events were recorded: spans before now (`15m`, `1h`, `7d`), `today`, `yesterday 14:00`, dates,
or RFC 3339. The log is looked through until there are enough events, up to four million of them; what is printed at the
end goes on from there.")]
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
    #[arg(long, alias = "events", value_delimiter = ',', value_name = "TYPE")]
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
    let mut result = looked_through(&api, params.clone()).await?;
    if out.is_json() {
        out.value(&result)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(hint) = hint(&result, (&asked, &params), out) {
        say(&hint);
        return Ok(ExitCode::SUCCESS);
    }
    add_earlier(&api, &mut result).await;
    events_table(&result, out)?;
    show_next(METHOD, &params, &result, out)?;
    Ok(ExitCode::SUCCESS)
}

/// Calls until there are as many events as asked for, or the end of the log is reached; the cursor is that of the last
/// call. If the server is busy or the connection is lost after the first call, what was found until then is the answer.
async fn looked_through(api: &dyn Api, mut params: Value) -> Result<Value, CliError> {
    let limit = params.get("limit").and_then(Value::as_u64);
    let wanted = limit.unwrap_or_else(|| LIMIT_DEFAULT.into()) as usize;
    let mut found: Vec<Value> = Vec::new();
    let mut calls = 0;
    loop {
        params["limit"] = (wanted - found.len()).into();
        let page = match api.call(METHOD, params.clone()).await {
            Ok(page) => page,
            Err(error) if calls > 0 && error.is_passing() => {
                say(&format!("not all of the log was searched: {error}"));
                let cursor = params["cursor"].take();
                return Ok(json!({"events": found, "next_cursor": cursor}));
            }
            Err(error) => return Err(error.into()),
        };
        calls += 1;
        found.extend_from_slice(list(&page, "events"));
        let cursor = member(&page, "next_cursor");
        if cursor.is_empty() {
            return Ok(json!({ "events": found }));
        }
        if found.len() >= wanted || calls >= CALLS_MAX {
            return Ok(json!({"events": found, "next_cursor": cursor}));
        }
        params["cursor"] = cursor.into();
    }
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

/// What may help when there is nothing to show; the parameters are as they were given, and as they were meant.
fn hint(result: &Value, (asked, meant): (&Value, &Value), out: &Output) -> Option<String> {
    if !list(result, "events").is_empty() {
        return None;
    }
    if let Some(next) = next(METHOD, meant, result, out) {
        return Some(format!(
            "no event in the part of the log that was searched; to search on: {next}"
        ));
    }
    let filters = filters(METHOD, asked);
    if filters.is_empty() && asked.get("cursor").is_some() {
        return Some(format!(
            "no event after this cursor; the newest events: {}",
            out.command("taskledger events query --order desc --limit 5")
        ));
    }
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
    use super::{Api, CALLS_MAX, Output, hint, looked_through};
    use crate::ApiError;
    use async_trait::async_trait;
    use serde_json::{Value, json};

    /// A log of so many parts, with one event in the last.
    struct Log(u32);

    #[async_trait]
    impl Api for Log {
        async fn call(&self, _: &str, params: Value) -> Result<Value, ApiError> {
            let part: u32 = params["cursor"].as_str().map_or(1, |c| c.parse().unwrap());
            Ok(match part == self.0 {
                true => json!({"events": [{"position": 7}]}),
                false => json!({"events": [], "next_cursor": (part + 1).to_string()}),
            })
        }
    }

    #[tokio::test]
    async fn a_query_goes_on_by_itself_within_its_limit() {
        let found = looked_through(&Log(3), json!({"since": "1h"}))
            .await
            .unwrap();
        assert_eq!(found, json!({"events": [{"position": 7}]}));
        let found = looked_through(&Log(CALLS_MAX + 1), json!({}))
            .await
            .unwrap();
        let next = (CALLS_MAX + 1).to_string();
        assert_eq!(found, json!({"events": [], "next_cursor": next}));
    }

    #[test]
    fn a_page_without_events_says_what_may_help() {
        let out = Output::to(Box::new(Vec::new()), false, false);
        let none = json!({"events": []});
        let given = json!({"since": "1h", "types": ["task_failed", "task_cancelled"], "limit": 5});
        let said = hint(&none, (&given, &given), &out).unwrap();
        assert!(
            said.starts_with(
                "no event fits --since 1h and --types task_failed,task_cancelled; leave one out"
            ),
            "{said}"
        );
        let order = json!({"order": "desc"});
        let said = hint(&none, (&order, &order), &out).unwrap();
        assert!(said.starts_with("there is no event yet"), "{said}");
        let behind = json!({"cursor": "pa99999999", "limit": 1});
        let said = hint(&none, (&behind, &behind), &out).unwrap();
        assert_eq!(
            said,
            "no event after this cursor; the newest events: taskledger events query --order desc --limit 5"
        );
        let more = json!({"events": [], "next_cursor": "d7"});
        assert!(hint(&more, (&given, &given), &out).unwrap().ends_with(
            "to search on: taskledger events query --since 1h --types task_failed,task_cancelled --limit 5 --cursor d7"
        ));
        assert_eq!(
            hint(
                &json!({"events": [{"position": 1}]}),
                (&given, &given),
                &out
            ),
            None
        );
    }
}
