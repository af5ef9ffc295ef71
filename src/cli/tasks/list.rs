//! `taskledger tasks list`

use super::{CliError, HttpApi, Output, Params, Read, Request};
use crate::cli::Api;
use crate::cli::output::{Style, Text, grid, member, next_page, short, style};
use crate::cli::tree::{mark, shown_status, took};
use crate::cli::when::{When, span};
use clap::ValueEnum;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Tasks that are looked at for a filter that the server does not have.
const LOOKED_AT_MAX: usize = 10_000;
/// Tasks of a page that is looked through.
const PAGE: u32 = 1000;
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
  taskledger tasks list --suspended
  taskledger tasks list --json | jq '.tasks[].id'

A name with `*` and the text of an error are looked for here, in the newest 10,000 tasks that the other filters
leave. Times are spans before now (`15m`, `1h`, `7d`), `today`, `yesterday 14:00`, dates, or RFC 3339.")]
pub(super) struct Args {
    /// Only tasks in this status: pending, in_progress, completed, failed, cancelled
    #[arg(long)]
    status: Option<String>,
    /// Only tasks of this user
    #[arg(long)]
    user: Option<String>,
    /// Tasks at every level, not the roots of flows alone
    #[arg(long)]
    all: bool,
    /// Only tasks without a parent, which is the default
    #[arg(long, conflicts_with_all = ["parent", "all"])]
    root_only: bool,
    /// Only tasks that wait for a person, at every level
    #[arg(long)]
    suspended: bool,
    /// Only children of this task
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// Only tasks with this name; `*` stands for any letters
    #[arg(long)]
    name: Option<String>,
    /// Only tasks with this priority
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=3))]
    priority: Option<u8>,
    /// Only tasks whose error holds this text, whatever its case
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
    /// Only tasks created at this time or later
    #[arg(long, visible_alias = "created-after", value_name = "TIME")]
    since: Option<String>,
    /// Only tasks created before this time
    #[arg(long, visible_alias = "created-before", value_name = "TIME")]
    until: Option<String>,
    /// Tasks to show, 1 to 1000
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: Option<u32>,
    /// Tasks to leave out first
    #[arg(long, conflicts_with = "cursor")]
    offset: Option<u64>,
    /// Where the page before ended
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
        let time = |name: &str, text: &Option<String>| {
            let parsed = text.as_ref().map(|text| when.parse(text)).transpose();
            let parsed = parsed.map_err(|why| CliError::Usage(format!("{name}: {why}")))?;
            Ok::<_, CliError>(parsed.map(|time| time.to_string()))
        };
        let roots = self.root_only || !(self.all || self.suspended || self.parent.is_some());
        let name = self.name.clone().filter(|name| !name.contains('*'));
        let params = Params::default()
            .maybe("status", self.status.clone())
            .maybe("user_id", self.user.clone())
            .flag("root_only", roots)
            .flag("suspended", self.suspended)
            .maybe("parent_id", self.parent.clone())
            .maybe("name", name)
            .maybe("priority", self.priority)
            .maybe("created_after", time("--since", &self.since)?)
            .maybe("created_before", time("--until", &self.until)?)
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

    /// Whether something is asked for that the server does not filter.
    fn looks_itself(&self) -> bool {
        self.error.is_some() || self.name.as_ref().is_some_and(|name| name.contains('*'))
    }

    fn wants(&self, task: &Value) -> bool {
        let text = |name: &str| task.get(name).and_then(Value::as_str).unwrap_or_default();
        let named = self
            .name
            .as_ref()
            .is_none_or(|name| fits(name, text("name")));
        let error = self.error.as_ref().map(|error| error.to_lowercase());
        named && error.is_none_or(|error| text("error").to_lowercase().contains(&error))
    }
}

/// Whether `text` is as `pattern` says, in which `*` stands for any letters. Cost: O(pattern x text).
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in between {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Asks, looks through what was answered, and shows it.
pub(super) async fn list(
    args: Args,
    api: &HttpApi,
    when: &When,
    out: &mut Output,
) -> Result<ExitCode, CliError> {
    let mut request = args.request(when)?;
    crate::cli::ids::resolve_in(api, &mut request.params).await?;
    let result = match args.looks_itself() {
        true => looked_through(&args, api, request.params).await?,
        false => api.call(request.method, request.params).await?,
    };
    if out.is_json() {
        out.value(&result)?;
        return Ok(ExitCode::SUCCESS);
    }
    let tasks = result.get("tasks").and_then(Value::as_array);
    let tasks = tasks.map_or(&[][..], Vec::as_slice);
    out.texts(&rows(tasks, when, out.look().columns))?;
    let looked_at = result.get("looked_at").and_then(Value::as_u64);
    let counted = match looked_at {
        Some(looked_at) => format!("{} found among {looked_at} looked at", tasks.len()),
        None => format!("{} of {}", tasks.len(), member(&result, "total")),
    };
    out.text(&Text::of(Style::Dim, counted))?;
    next_page(&result, out)?;
    Ok(ExitCode::SUCCESS)
}

/// Looks through pages until there are enough tasks, or enough was looked at; the cursor goes on from there.
async fn looked_through(args: &Args, api: &dyn Api, mut params: Value) -> Result<Value, CliError> {
    let wanted = args.limit.map_or(LIMIT_DEFAULT, |limit| limit as usize);
    let (mut found, mut looked_at) = (Vec::new(), 0);
    params["limit"] = PAGE.into();
    loop {
        let page = api.call("tasks.list", params.clone()).await?;
        let tasks = page["tasks"].as_array().map_or(&[][..], Vec::as_slice);
        looked_at += tasks.len();
        found.extend(tasks.iter().filter(|task| args.wants(task)).cloned());
        let cursor = member(&page, "next_cursor");
        let is_enough = found.len() >= wanted || looked_at >= LOOKED_AT_MAX;
        if cursor.is_empty() || is_enough {
            let is_more = found.len() > wanted;
            found.truncate(wanted);
            let mut result = json!({"tasks": found, "looked_at": looked_at});
            if is_more {
                // No cursor lies within a page.
                result["more"] = true.into();
            } else if !cursor.is_empty() {
                result["next_cursor"] = cursor.into();
            }
            return Ok(result);
        }
        if let Some(params) = params.as_object_mut() {
            params.remove("offset");
        }
        params["cursor"] = cursor.into();
    }
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
        let percent = format!("{} %", (progress.clamp(0.0, 1.0) * 100.0) as u8);
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
    let head = ["ID", "STATUS", "NAME", "PROGRESS", "TOOK", "STARTED", "BY"];
    grid(&head, &rows, 2, columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::when::{Times, tests::at_noon};

    #[test]
    fn a_star_stands_for_any_letters() {
        for (pattern, text) in [
            ("a", "a"),
            ("*", ""),
            ("fetch*", "fetch all"),
            ("*all", "fetch all"),
            ("f*h*l", "fetch all"),
            ("a*a", "aa"),
        ] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("a", "ab"),
            ("a*a", "a"),
            ("*b", "ba"),
            ("f*x*l", "fetch all"),
        ] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
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
                "ID        STATUS         NAME            PROGRESS  TOOK       STARTED        BY",
                "0f8fad5b  ▸ in_progress  a report with…  50 %      2 min 0 s  2 min 0 s ago  ann",
                "1f8fad5b  · pending      日本            0 %",
            ]
        );
        let whole = shown(None, Times::Utc);
        assert!(
            whole[1]
                .starts_with("0f8fad5b-d9cb-469f-a165-70867728950e  ▸ in_progress  a report with")
        );
    }
}
