//! `taskledger tasks list`

use super::read::Read;
use super::searching::looked_through;
use super::selection::Selection;
use super::{CliError, HttpApi, Output, Params, Request};
use crate::Api;
use crate::following::say;
use crate::nothing::nothing;
use crate::output::{Style, Text, counted, grid, list as list_of, member, short, style};
use crate::paging::show_next;
use crate::span::span;
use crate::tree::{SKIPPED, mark, shown_status, took};
use crate::when::When;
use clap::ValueEnum;
use serde_json::Value;
use std::process::ExitCode;

/// Tasks that are shown when nobody says how many; as many as the server gives.
const LIMIT_DEFAULT: usize = 100;

/// List flows, newest first; with --all the tasks in them too
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger tasks list
  taskledger tasks list --status failed --since 1h
  taskledger tasks list --all --status failed --error 'time-out'
  taskledger tasks list --name 'report-*' --since yesterday
  taskledger tasks list --label team=data --label stage
  taskledger tasks list --at 'yesterday 14:00'
  taskledger tasks list --status failed --ended-since 1h
  taskledger tasks list --suspended
  taskledger tasks list --json | jq '.tasks[].id'

A name with `*`, --error, --ended-since, --ended-until and --at are matched by this command, among the newest
10,000 tasks that match the other filters. --at shows tasks that existed then and had not ended; a task that
ended and was retried since counts by its last end.
Times are spans before now (`15m`, `1h`, `7d`), `today`, `yesterday 14:00`, dates, or RFC 3339.")]
pub(super) struct Args {
    #[command(flatten)]
    which: Selection,
    /// Tasks to show, 1 to 1000
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: Option<u32>,
    /// Tasks to skip
    #[arg(long, conflicts_with = "cursor")]
    offset: Option<u64>,
    /// The cursor that the previous page printed
    #[arg(long)]
    cursor: Option<String>,
    /// Newest or oldest first
    #[arg(long, value_enum)]
    order: Option<Order>,
    #[command(flatten)]
    read: Read,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Order {
    /// Oldest first.
    Asc,
    /// Newest first.
    Desc,
}

impl Args {
    /// What the server is asked; what it cannot filter is left out.
    pub(super) fn request(&self, when: &When) -> Result<Request, CliError> {
        let params = self
            .which
            .params(when)?
            .maybe("limit", self.limit)
            .maybe("offset", self.offset)
            .maybe("cursor", self.cursor.clone())
            .maybe(
                "order",
                self.order.map(|order| match order {
                    Order::Asc => "asc",
                    Order::Desc => "desc",
                }),
            )
            .read(&self.read);
        Ok(Request {
            method: "tasks.list",
            params: params.build(),
            show: |_, _| Ok(()),
        })
    }

    /// The options again, for a later command: with the times that were meant, and the ids of `params`.
    fn meant(&self, params: &Value, when: &When) -> Result<Value, CliError> {
        let mut meant = Params(self.which.asked())
            .flag("all", self.which.is_of_all())
            .build();
        let times = ["since", "until", "at", "ended_since", "ended_until"];
        when.resolve_in(&mut meant, &times)?;
        for (option, name) in [
            ("parent", "parent_id"),
            ("limit", "limit"),
            ("order", "order"),
            ("consistency", "consistency"),
        ] {
            if let Some(value) = params.get(name) {
                meant[option] = value.clone();
            }
        }
        Ok(meant)
    }
}

/// Asks, looks through what was answered, and shows it.
pub(super) async fn list(
    args: Args,
    api: &HttpApi,
    when: &When,
    out: &mut Output,
) -> Result<ExitCode, CliError> {
    let mut request = args.request(when)?;
    crate::ids::resolve_in(api, &mut request.params).await?;
    let meant = args.meant(&request.params, when)?;
    let rest = args.which.rest(when)?;
    let result = match &rest {
        Some(_) => {
            let wanted = args.limit.map_or(LIMIT_DEFAULT, |limit| limit as usize);
            looked_through(rest.as_ref(), wanted, api, request.params).await?
        }
        None => api.call(request.method, request.params).await?,
    };
    if out.is_json() {
        out.value(&result)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(text) = none(&args, &meant, &result, out) {
        say(&text);
        return Ok(ExitCode::SUCCESS);
    }
    let tasks = list_of(&result, "tasks");
    out.texts(&rows(tasks, when, out.look().columns))?;
    let looked_at = result.get("looked_at").and_then(Value::as_u64);
    let line = match looked_at {
        Some(looked_at) => searched(tasks.len(), looked_at, &result),
        None => format!("{} of {}", tasks.len(), member(&result, "total")),
    };
    out.text(&Text::of(Style::Dim, line))?;
    show_next("tasks.list", &meant, &result, out)?;
    Ok(ExitCode::SUCCESS)
}

/// How many matches are shown, and of how many tasks they are: all that the server has of the other filters, or those
/// that were looked at until there were enough.
fn searched(shown: usize, looked_at: u64, result: &Value) -> String {
    let tasks = counted(looked_at, "task", "tasks");
    let (shown, has) = (shown as u64, |name| result.get(name).is_some());
    if !has("more") && !has("next_cursor") {
        return format!(
            "{} among {tasks} searched",
            counted(shown, "match", "matches")
        );
    }
    let matches = counted(shown, "match", "matches");
    let rest = if has("more") {
        "more follow"
    } else {
        "more may follow"
    };
    match has("next_cursor") {
        true => format!("{matches} among the first {tasks} searched; {rest}"),
        // Other tasks have come meanwhile, so that no page can follow.
        false => format!("{matches} among the first {tasks} searched; {rest}: raise --limit"),
    }
}

/// What is said when there is no task to show.
fn none(args: &Args, meant: &Value, result: &Value, out: &Output) -> Option<String> {
    let asked = Params(args.which.asked())
        .maybe("cursor", args.cursor.clone())
        .maybe("offset", args.offset)
        .build();
    let text = nothing("tasks.list", (&asked, meant), result, out)?;
    let of_roots = text.strip_prefix("no task matches ");
    Some(match of_roots {
        Some(asked) if args.which.is_of_roots() => {
            format!("no flow matches {asked}; --all searches the tasks in flows too")
        }
        Some(_) | None => text,
    })
}

/// The children of a task as a table.
pub(super) fn all_of_them(result: &Value, when: &When, columns: Option<usize>) -> Vec<Text> {
    let children = result.get("children").and_then(Value::as_array);
    rows(children.map_or(&[][..], Vec::as_slice), when, columns)
}

/// Tasks as a table.
fn rows(tasks: &[Value], when: &When, columns: Option<usize>) -> Vec<Text> {
    let rows = tasks.iter().map(|task| {
        let status = shown_status(task);
        let progress = task.get("progress").and_then(Value::as_f64).unwrap_or(0.0);
        let is_begun = !matches!(status.as_str(), "pending" | SKIPPED);
        let percent = match is_begun {
            true => format!("{} %", (progress.clamp(0.0, 1.0) * 100.0) as u8),
            false => String::new(),
        };
        let id = member(task, "id");
        vec![
            // Whole where programs read it.
            Text::from(if columns.is_some() { short(&id) } else { id }),
            Text::of(style(&status), format!("{} {status}", mark(&status))),
            Text::from(member(task, "name")),
            Text::from(percent),
            Text::from(took(task, when.now).map_or_else(String::new, span)),
            Text::of(Style::Dim, when.member(task, "started_at")),
            Text::of(Style::Dim, member(task, "user_id")),
        ]
    });
    let rows: Vec<_> = rows.collect();
    let head = [
        "ID", "STATUS", "NAME", "PROGRESS", "TOOK", "STARTED", "USER",
    ];
    grid(&head, &rows, 2, columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::parsed;
    use crate::when::{Times, tests::at_noon};
    use serde_json::json;

    #[test]
    fn nothing_to_show_is_told_with_what_was_asked() {
        let out = Output::to(Box::new(Vec::new()), false, false);
        let said = |line: &str, result: Value| {
            let args: Args = parsed(line.split(' ')).unwrap();
            none(&args, &Value::Null, &result, &out)
        };
        let empty = || json!({"tasks": [], "total": 0});
        assert_eq!(
            said("list --root-only --limit 5", empty()).as_deref(),
            Some("no tasks; `taskledger run FILE` starts a workflow")
        );
        assert_eq!(
            said(
                "list --status failed --since 1h --label a=b --label c=d",
                empty()
            )
            .as_deref(),
            Some(
                "no flow matches --label a=b --label c=d --since 1h --status failed; --all searches the tasks in flows too"
            )
        );
        assert_eq!(
            said("list --all --ended-since 1h --name f*", empty()).as_deref(),
            Some("no task matches --ended-since 1h --name 'f*'")
        );
        assert_eq!(
            said("list --offset 9", empty()).as_deref(),
            Some("no more tasks after this offset")
        );
        assert_eq!(said("list", json!({"tasks": [{"id": "a"}]})), None);
    }

    #[test]
    fn matches_on_a_page_are_not_taken_for_all_of_them() {
        for (result, said) in [
            (json!({}), "1 match among 59 tasks searched"),
            (
                json!({"more": true, "next_cursor": "c"}),
                "1 match among the first 59 tasks searched; more follow",
            ),
            (
                json!({"next_cursor": "c"}),
                "1 match among the first 59 tasks searched; more may follow",
            ),
            (
                json!({"more": true}),
                "1 match among the first 59 tasks searched; more follow: raise --limit",
            ),
        ] {
            assert_eq!(searched(1, 59, &result), said);
        }
    }

    #[test]
    fn the_next_page_is_of_the_same_tasks() {
        let when = at_noon(Times::Utc);
        let next = |line: &str| {
            let args: Args = parsed(line.split(' ')).unwrap();
            let mut params = args.request(&when).unwrap().params;
            if params.get("parent_id").is_some() {
                params["parent_id"] = json!("0f8fad5b-d9cb-469f-a165-70867728950e");
            }
            let meant = args.meant(&params, &when).unwrap();
            let out = Output::to(Box::new(Vec::new()), false, false);
            let result = json!({"tasks": [], "next_cursor": "c"});
            let command = crate::paging::next("tasks.list", &meant, &result, &out).unwrap();
            // What it prints is what it takes.
            let words = command
                .split(' ')
                .skip(2)
                .map(|word| word.trim_matches('\''));
            assert!(parsed::<Args>(words).is_ok(), "{command}");
            (command, none(&args, &meant, &result, &out).unwrap())
        };
        let (command, said) = next(
            "list --all --status failed --since 1h --user ann --order asc --limit 5 --offset 5",
        );
        assert_eq!(
            command,
            "taskledger tasks list --all --since 2026-01-31T11:00:00.000000Z --status failed --user ann --order asc --limit 5 --cursor c"
        );
        assert_eq!(
            said,
            format!("no task in the part that was searched; to search on: {command}")
        );
        let (command, _) = next("list --parent @last --error e* --ended-since 2h");
        assert_eq!(
            command,
            "taskledger tasks list --ended-since 2026-01-31T10:00:00.000000Z --error 'e*' \
             --parent 0f8fad5b-d9cb-469f-a165-70867728950e --cursor c"
        );
    }

    #[test]
    fn flows_are_a_table_with_what_people_ask_first() {
        let task = |id: &str, name: &str, status: &str| {
            json!({"id": id, "name": name, "status": status, "progress": 0.5, "user_id": "ann",
                "started_at": "2026-01-31T11:58:00Z", "completed_at": null})
        };
        let tasks = [
            task(
                "0f8fad5b-d9cb-469f-a165-70867728950e",
                "a report with a very long name",
                "in_progress",
            ),
            json!({"id": "1f8fad5b-d9cb-469f-a165-70867728950e", "name": "日本", "status": "pending", "progress": 0}),
        ];
        let shown = |columns, times| {
            let lines = rows(&tasks, &at_noon(times), columns);
            lines.iter().map(Text::letters).collect::<Vec<_>>()
        };
        assert_eq!(
            shown(Some(80), Times::Age),
            [
                "ID        STATUS         NAME           PROGRESS  TOOK       STARTED        USER",
                "0f8fad5b  ▸ in_progress  a report wit…  50 %      2 min 0 s  2 min 0 s ago  ann",
                "1f8fad5b  · pending      日本",
            ]
        );
        let whole = shown(None, Times::Utc);
        assert!(
            whole[1]
                .starts_with("0f8fad5b-d9cb-469f-a165-70867728950e  ▸ in_progress  a report with")
        );
    }
}
