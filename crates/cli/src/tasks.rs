//! `taskledger tasks`: the methods of a server, one command each.

mod as_of;
mod bulk;
mod cancel;
mod changes;
mod children;
mod copy;
mod create;
mod delete;
mod dependency;
mod execute;
mod explain;
mod get;
mod history;
mod list;
mod read;
mod retry;
mod searching;
mod selection;
mod tree;
mod update;

pub(super) use changes::add_earlier;
pub(super) use history::{Order, events_table};

use super::nothing::shown_or_said;
use super::output::{Output, Text};
use super::paging::show_next;
use super::request::{Object, Params, Request, json_object};
use super::when::When;
use super::{Api, CliError, HttpApi, Remote, ids, run};
use clap::Subcommand;
use serde_json::Value;
use std::process::ExitCode;

/// Create, read, change and run tasks on a server
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::Args),
    Get(get::Args),
    Tree(tree::Args),
    History(history::Args),
    Explain(explain::Args),
    Children(children::Args),
    Create(create::Args),
    Update(update::Args),
    Cancel(cancel::Args),
    Delete(delete::Args),
    Copy(copy::Args),
    Retry(retry::Args),
    Execute(execute::Args),
}

/// What makes the tables and trees of answers.
type Table = fn(&Value, &When, Option<usize>) -> Vec<Text>;

/// Makes the call and shows the result.
pub async fn tasks(args: Args, when: &When, out: &mut Output) -> Result<ExitCode, CliError> {
    let api = args.remote.api()?;
    out.calls_with(api.options().to_owned());
    let request = match args.command {
        Command::List(args) => return list::list(args, &api, when, out).await,
        Command::Tree(args) => return tree::show(args, &api, when, out).await,
        Command::Children(args) => {
            return tabled(&api, args.request()?, list::all_of_them, when, out).await;
        }
        Command::Cancel(args) if args.is_bulk() => return args.bulk(&api, when, out).await,
        Command::Delete(args) if args.is_bulk() => return args.bulk(&api, when, out).await,
        Command::Retry(args) if args.is_bulk() => return args.bulk(&api, when, out).await,
        Command::Retry(args) if args.waits() => return follow(&api, args.request()?, out).await,
        Command::Execute(args) if args.waits() => return follow(&api, args.request()?, out).await,
        Command::Get(args) => args.request(),
        Command::History(args) => args.request(),
        Command::Explain(args) => args.request(),
        Command::Create(args) if args.is_of_file() => args.request(),
        Command::Create(args) => naming(args.request()?, &api).await,
        Command::Update(args) => {
            let delay = args.delay();
            let request = naming(args.request()?, &api).await?;
            match delay {
                Some(delay) => update::with_delay(request, delay, &api).await,
                None => Ok(request),
            }
        }
        Command::Cancel(args) => args.request(),
        Command::Delete(args) => args.request(),
        Command::Copy(args) => args.request(),
        Command::Retry(args) => args.request(),
        Command::Execute(args) => args.request(),
    }?;
    let (show, method) = (request.show, request.method);
    let (mut result, meant) = answer(&api, request).await?;
    if out.is_json() {
        out.value(&result)?;
    } else {
        match method {
            "tasks.history" => add_earlier(&api, &mut result).await,
            "tasks.explain" => explain::add_below(&api, &mut result).await,
            _ => {}
        }
        show(&result, out)?;
        crate::warnings::report(&result);
        show_next(method, &meant, &result, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A call with its dependencies as stored tasks, however they were named.
async fn naming(mut request: Request, api: &HttpApi) -> Result<Request, CliError> {
    ids::resolve_named(api, &mut request.params).await?;
    Ok(request)
}

/// The result of a call whose ids were given as people give them, and its parameters with whole ids.
async fn answer(api: &HttpApi, mut request: Request) -> Result<(Value, Value), CliError> {
    ids::resolve_in(api, &mut request.params).await?;
    let result = api.call(request.method, request.params.clone()).await?;
    Ok((result, request.params))
}

/// Shows the result of a call by a table, which needs to know what time it is.
async fn tabled(
    api: &HttpApi,
    request: Request,
    table: Table,
    when: &When,
    out: &mut Output,
) -> Result<ExitCode, CliError> {
    let (method, asked) = (request.method, request.params.clone());
    let (result, meant) = answer(api, request).await?;
    let show = |result: &Value, out: &mut Output| {
        let lines = table(result, when, out.look().columns);
        out.texts(&lines)
    };
    shown_or_said(method, (&asked, &meant), &result, show, out)?;
    Ok(ExitCode::SUCCESS)
}

/// Makes a call that begins a run, and follows the run to its end.
async fn follow(
    api: &HttpApi,
    mut request: Request,
    out: &mut Output,
) -> Result<ExitCode, CliError> {
    ids::resolve_in(api, &mut request.params).await?;
    let Value::Object(params) = request.params else {
        unreachable!("parameters are an object");
    };
    let api = api.clone().impatient();
    let end = run::followed(&api, request.method, params, out).await?;
    Ok(ExitCode::from(end.exit_code()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::parsed;
    use crate::when::{Times, tests::at_noon};
    use serde_json::json;

    /// The call that a command line makes.
    fn call(line: &str) -> (&'static str, Value) {
        let args: Args = parsed(std::iter::once("tasks").chain(line.split(' '))).unwrap();
        let request = match args.command {
            Command::List(args) => args.request(&at_noon(Times::Utc)),
            Command::Get(args) => args.request(),
            Command::Tree(args) => args.request(),
            Command::History(args) => args.request(),
            Command::Explain(args) => args.request(),
            Command::Children(args) => args.request(),
            Command::Create(args) => args.request(),
            Command::Update(args) => args.request(),
            Command::Cancel(args) => args.request(),
            Command::Delete(args) => args.request(),
            Command::Copy(args) => args.request(),
            Command::Retry(args) => args.request(),
            Command::Execute(args) => args.request(),
        }
        .unwrap();
        (request.method, request.params)
    }

    #[test]
    fn each_command_makes_the_call_that_it_names() {
        let cases = [
            ("list", "tasks.list", json!({"root_only": true})),
            ("list --all", "tasks.list", json!({})),
            (
                "list --since 1h --until 2026-01-31T11:30:00Z",
                "tasks.list",
                json!({"root_only": true, "created_after": "2026-01-31T11:00:00.000000Z", "created_before": "2026-01-31T11:30:00.000000Z"}),
            ),
            (
                "list --name fetch* --error time",
                "tasks.list",
                json!({"root_only": true}),
            ),
            (
                "list --status failed --limit 5 --offset 10 --user u --root-only --order asc --priority 1",
                "tasks.list",
                json!({"status": "failed", "limit": 5, "offset": 10, "user_id": "u", "root_only": true, "order": "asc", "priority": 1}),
            ),
            ("list --suspended", "tasks.list", json!({"suspended": true})),
            (
                "list --label team=data --label stage --all --ended-since 1h",
                "tasks.list",
                json!({"labels": {"team": "data", "stage": null}}),
            ),
            (
                "list --at 2026-01-31T10:00:00Z",
                "tasks.list",
                json!({"root_only": true, "created_before": "2026-01-31T10:00:00.000001Z"}),
            ),
            (
                "get a --consistency eventual",
                "tasks.get",
                json!({"task_id": "a", "consistency": "eventual"}),
            ),
            ("tree a", "tasks.tree", json!({"task_id": "a"})),
            (
                "get a --as-of 17",
                "tasks.get",
                json!({"task_id": "a", "as_of": 17}),
            ),
            (
                "tree a --as-of 2026-01-31T12:00:00Z",
                "tasks.tree",
                json!({"task_id": "a", "as_of": "2026-01-31T12:00:00Z"}),
            ),
            ("history a", "tasks.history", json!({"task_id": "a"})),
            (
                "history a --flow --limit 5 --types task_failed,run_ended --order desc --cursor d7",
                "tasks.history",
                json!({"task_id": "a", "scope": "flow", "limit": 5, "types": ["task_failed", "run_ended"],
                    "order": "desc", "cursor": "d7"}),
            ),
            ("explain a", "tasks.explain", json!({"task_id": "a"})),
            ("children a", "tasks.children", json!({"parent_id": "a"})),
            (
                "create --name n --method m --inputs {\"a\":1} --parent p --user u --priority 0 --depends-on x:optional --depends-on y",
                "tasks.create",
                json!({"name": "n", "schemas": {"method": "m"}, "inputs": {"a": 1}, "parent_id": "p", "user_id": "u", "priority": 0,
                    "dependencies": [{"id": "x", "required": false}, {"id": "y", "required": true}]}),
            ),
            (
                "create --name n --start-at 2999-01-31T12:00:00Z --delay 2.5 --params {\"retry_count\":1}",
                "tasks.create",
                json!({"name": "n", "start_at": "2999-01-31T12:00:00Z",
                    "params": {"retry_count": 1, "delay_seconds": 2.5}}),
            ),
            (
                "update a --start-at 2999-01-31T12:00:00Z",
                "tasks.update",
                json!({"task_id": "a", "updates": {"start_at": "2999-01-31T12:00:00Z"}}),
            ),
            (
                "update a --start-at=",
                "tasks.update",
                json!({"task_id": "a", "updates": {"start_at": null}}),
            ),
            (
                "update a --name n --priority 3",
                "tasks.update",
                json!({"task_id": "a", "updates": {"name": "n", "priority": 3}}),
            ),
            (
                "create --name n --label team=data --label note=a=b",
                "tasks.create",
                json!({"name": "n", "labels": {"team": "data", "note": "a=b"}}),
            ),
            (
                "update a --label team=ops",
                "tasks.update",
                json!({"task_id": "a", "updates": {"labels": {"team": "ops"}}}),
            ),
            (
                "update a --no-labels",
                "tasks.update",
                json!({"task_id": "a", "updates": {"labels": {}}}),
            ),
            (
                "update a --no-dependencies",
                "tasks.update",
                json!({"task_id": "a", "updates": {"dependencies": []}}),
            ),
            ("cancel a", "tasks.cancel", json!({"task_id": "a"})),
            (
                "cancel a --cascade --reason r",
                "tasks.cancel",
                json!({"task_id": "a", "cascade": true, "reason": "r"}),
            ),
            (
                "delete a --cascade",
                "tasks.delete",
                json!({"task_id": "a", "cascade": true}),
            ),
            (
                "copy a --children --parent p",
                "tasks.copy",
                json!({"task_id": "a", "copy_children": true, "parent_id": "p"}),
            ),
            ("retry a", "tasks.retry", json!({"task_id": "a"})),
            ("execute a", "tasks.execute", json!({"task_id": "a"})),
        ];
        for (line, method, params) in cases {
            assert_eq!(call(line), (method, params), "{line}");
        }
    }
}
