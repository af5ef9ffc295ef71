//! `taskledger watch`: what happens on a server, as it happens.
//!
//! Owns: which stream is asked for, and how its events are shown: a tree or a list of flows on a
//! terminal, lines or JSON elsewhere. Knows a server by its answers only.

pub(super) mod flows;
mod known;
pub(super) mod lines;
mod tree;
mod view;
pub(super) mod waits;

use super::event_stream::{Door, EventStream, JsonEvent, Piece, StreamItem, Wanted};
use super::following::{Begin, LastCursor, Remarks, given, place_of, say, stopped, types};
use super::output::{Output, list, member};
use super::run::end::End;
use super::target::Target;
use super::{Api, CliError, HttpApi, Remote, clock};
use clap::ValueEnum;
use known::{Known, Scope};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use view::View;
use waits::{News, QUIET, Waits};

/// Between two drawings: ten in a second are more than an eye can follow.
const DRAW_EVERY: Duration = Duration::from_millis(100);
/// The exit code of a watch that somebody broke off: how it ends is not known. As shells say it.
const BROKEN_OFF: u8 = 130;

/// Watch a flow until it stops running, or all events of a server
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger watch
  taskledger watch 0f8fad5b-d9cb-469f-a165-70867728950e && echo completed
  taskledger watch --output json --types task_failed --from beginning | jq .error

On a terminal, a flow is shown as a tree that is updated in place, and a server as one line per flow, newest
first. In a pipe each event is one line. After a lost connection the command reconnects, and no event is
printed twice. Ctrl-C prints how to continue later. When no task of a flow runs, standard error says what
its tasks wait for.
A flow that was never executed is refused, unless --follow is given.
Exit codes with an ID: those of `run`, and 130 after an interrupt")]
pub struct Args {
    #[command(flatten)]
    remote: Remote,
    /// A flow, named by its root, or a task and what is below it
    #[arg(value_name = "FLOW|TASK")]
    id: Option<String>,
    /// Only flows of this user
    #[arg(long, conflicts_with = "id")]
    user: Option<String>,
    /// Only these events, separated by commas
    #[arg(long, alias = "events", value_delimiter = ',', value_name = "EVENT", value_parser = types())]
    types: Vec<String>,
    #[command(flatten)]
    begin: Begin,
    /// Keep watching after it stops running
    #[arg(long, requires = "id")]
    follow: bool,
    /// How events are written, also on a terminal
    #[arg(long, value_enum)]
    output: Option<Form>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// A line of text for each event.
    Lines,
    /// A line of JSON for each event.
    Json,
}

/// Watches until the end, or until somebody stops it.
pub async fn watch(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    let place = LastCursor::default();
    let has_end = args.id.is_some() && !args.follow;
    tokio::select! {
        // First: a signal that comes with the first events must not end the program by itself.
        biased;
        stopped = stopped() => {
            stopped?;
            place.farewell();
            Ok(if has_end { ExitCode::from(BROKEN_OFF) } else { ExitCode::SUCCESS })
        }
        ended = follow(args, &place, out) => ended,
    }
}

async fn follow(args: Args, place: &LastCursor, out: &mut Output) -> Result<ExitCode, CliError> {
    let target = args.remote.target()?;
    let api = HttpApi::of(target.clone())?;
    out.calls_with(api.options().to_owned());
    let scope = match &args.id {
        None => Scope::Server,
        Some(id) => scope(&api, id).await?,
    };
    place.is_of(out.command(&again(&args, &scope)));
    let is_new = args.begin.from.is_none() && args.begin.last_event_id.is_none();
    if is_new && !args.follow {
        is_covered(&api, &scope, out).await?;
    }
    let stream = EventStream::open(wanted(&args, target, &scope).await?, clock())?;
    let form = args.output.or(out.is_json().then_some(Form::Json));
    let view = match (form, &scope) {
        (Some(Form::Json), _) => View::Json,
        (Some(Form::Lines), _) => View::Lines(lines::Lines::of(args.types.clone())),
        (None, _) if !out.is_terminal() => View::Lines(lines::Lines::of(args.types.clone())),
        (None, Scope::Server) => View::flows(),
        (None, Scope::Flow { .. } | Scope::Below { .. }) => View::tree(),
    };
    Watching {
        known: Known::new(&api, scope),
        types: args.types,
        view,
        place,
        last: None,
        out,
    }
    .run(stream)
    .await
}

/// The command that watches the same.
fn again(args: &Args, scope: &Scope) -> String {
    let id = match scope {
        Scope::Server => String::new(),
        Scope::Flow { root: id } | Scope::Below { top: id, .. } => format!(" {id}"),
    };
    let types = (!args.types.is_empty()).then(|| args.types.join(","));
    let form = args.output.map(|form| match form {
        Form::Lines => "lines",
        Form::Json => "json",
    });
    let options = [
        ("user", args.user.as_deref()),
        ("types", types.as_deref()),
        ("output", form),
    ];
    let follow = if args.follow { " --follow" } else { "" };
    format!("taskledger watch{id}{}{follow}", given(&options))
}

/// What is watched when somebody names `id`.
async fn scope(api: &dyn Api, id: &str) -> Result<Scope, CliError> {
    let id = super::ids::resolved(api, id).await?;
    let task = api.call("tasks.get", json!({ "task_id": id })).await?;
    let (top, root) = (member(&task, "id"), member(&task, "root_task_id"));
    Ok(if top == root {
        Scope::Flow { root }
    } else {
        Scope::Below { root, top }
    })
}

/// Says so if nothing of what is watched was ever run: there would be nothing to see, and no end.
async fn is_covered(api: &dyn Api, scope: &Scope, out: &Output) -> Result<(), CliError> {
    let id = match scope {
        Scope::Server => return Ok(()),
        Scope::Flow { root } => root,
        Scope::Below { top, .. } => top,
    };
    let runs = json!({"task_id": id, "scope": "flow", "types": ["run_started"], "limit": 1});
    // Whoever may not read histories sees what the stream tells.
    let (Ok(runs), Ok(task)) = (
        api.call("tasks.history", runs).await,
        api.call("tasks.get", json!({ "task_id": id })).await,
    ) else {
        return Ok(());
    };
    // A page may be empty although more follows.
    let was_run = !list(&runs, "events").is_empty() || !member(&runs, "next_cursor").is_empty();
    if was_run || member(&task, "status") != "pending" {
        return Ok(());
    }
    let execute = out.command(&format!("taskledger tasks execute {id}"));
    Err(CliError::Usage(format!(
        "`{}` was never executed; `{execute}` runs it, and --follow waits until somebody does",
        member(&task, "name")
    )))
}

/// The stream to ask for.
async fn wanted(args: &Args, target: Target, scope: &Scope) -> Result<Wanted, CliError> {
    let from = args.begin.from.clone();
    let after = args.begin.last_event_id.clone();
    let root = match scope {
        Scope::Server => {
            let types = (!args.types.is_empty()).then(|| args.types.join(","));
            let given = [
                ("user", args.user.clone()),
                ("types", types),
                ("from", from),
            ];
            return Ok(Wanted {
                target,
                door: Door::Events(parameters(given)),
                after,
            });
        }
        Scope::Flow { root } | Scope::Below { root, .. } => root,
    };
    // Types are chosen here, because the end of a run must come in any case.
    let of_flow = |from| Wanted {
        target: target.clone(),
        door: Door::Events(parameters([("flow", Some(root.clone())), ("from", from)])),
        after: after.clone(),
    };
    if args.follow {
        return Ok(of_flow(from));
    }
    // Subscriptions go on behind a cursor, so a place in other words becomes one first.
    let after = match from {
        Some(from) if from != "now" => Some(place_of(of_flow(Some(from))).await?),
        Some(_) | None => after,
    };
    Ok(Wanted {
        target: target.clone(),
        door: Door::Task(root.clone()),
        after,
    })
}

fn parameters<const N: usize>(
    given: [(&'static str, Option<String>); N],
) -> Vec<(&'static str, String)> {
    let given = given.into_iter();
    given
        .filter_map(|(name, value)| value.map(|value| (name, value)))
        .collect()
}

/// Whether the end of a run says that it has left tasks out.
fn leaves_out(end: &Value) -> bool {
    let skipped = end.pointer("/run/skipped").and_then(Value::as_u64);
    skipped.is_some_and(|skipped| skipped > 0)
}

/// Whether something has happened.
fn has_events(told: &StreamItem) -> bool {
    match told {
        StreamItem::Pieces(pieces) => pieces.iter().any(|piece| matches!(piece, Piece::Event(_))),
        StreamItem::Opened { .. } | StreamItem::Lost { .. } => false,
    }
}

struct Watching<'a> {
    known: Known<'a>,
    /// All when there are none.
    types: Vec<String>,
    view: View,
    place: &'a LastCursor,
    /// The last end of a run.
    last: Option<Value>,
    out: &'a mut Output,
}

impl Watching<'_> {
    async fn run(mut self, mut stream: EventStream) -> Result<ExitCode, CliError> {
        let mut remarks = Remarks::default();
        let mut pace = interval(DRAW_EVERY);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut waits = Waits::default();
        let mut pause = std::pin::pin!(sleep(QUIET));
        let mut is_told = false;
        loop {
            tokio::select! {
                told = stream.next() => {
                    let Some(told) = told? else { break };
                    if let Some(remark) = remarks.about(&told) {
                        self.view.leave();
                        say(&remark);
                    }
                    if has_events(&told) {
                        pause.as_mut().reset(Instant::now() + QUIET);
                        is_told = false;
                    }
                    self.take(told).await?;
                }
                () = &mut pause, if !is_told => {
                    let news = self.waits(&mut waits).await;
                    is_told = news.is_complete;
                    pause.as_mut().reset(Instant::now() + QUIET);
                    for text in news.sentences {
                        self.view.leave();
                        say(&text);
                    }
                }
                _ = pace.tick(), if self.view.is_drawn() => {
                    self.view.draw(&mut self.known, self.out).await?;
                }
            }
        }
        self.view.finish(&mut self.known, self.out).await?;
        self.verdict().await
    }

    /// What the tasks are waiting for, as far as it was not told.
    async fn waits(&mut self, waits: &mut Waits) -> News {
        let root = match self.known.scope() {
            Scope::Server => {
                return News {
                    is_complete: true,
                    ..News::default()
                };
            }
            Scope::Flow { root } | Scope::Below { root, .. } => root.clone(),
        };
        let api = self.known.api();
        waits.look(api, self.known.tree(&root), self.out).await
    }

    async fn take(&mut self, told: StreamItem) -> Result<(), CliError> {
        match told {
            StreamItem::Opened {
                again: false,
                place,
            } => {
                if let Some(place) = place {
                    self.place.set(&place);
                }
                self.view.begin(&mut self.known).await?;
            }
            StreamItem::Pieces(pieces) => {
                let mut shown = Vec::new();
                for piece in &pieces {
                    let Piece::Event(event) = piece else { continue };
                    let data = event.json();
                    if data.get("final").and_then(Value::as_bool) == Some(true) {
                        self.last = Some(data.clone());
                    }
                    let chosen = self.types.is_empty() || self.types.contains(&event.name);
                    let about = data.get("task_id").is_some();
                    let name = if !about {
                        String::new()
                    } else if !chosen {
                        continue;
                    } else if self.view.needs_names() || !self.known.takes_all() {
                        let task = self.known.task(&data).await;
                        if !task.inside {
                            continue;
                        }
                        task.name
                    } else {
                        String::new()
                    };
                    if self.types.is_empty() && self.view.needs_names() && leaves_out(&data) {
                        self.view.take(&shown, self.out)?;
                        shown.clear();
                        self.skip(&data).await?;
                    }
                    shown.push((event, data, name));
                }
                self.view.take(&shown, self.out)?;
                self.view.rest(self.out)?;
                self.place.passed(&pieces);
            }
            StreamItem::Opened { again: true, .. } | StreamItem::Lost { .. } => {}
        }
        Ok(())
    }

    /// Tells of the tasks that a run has left out, as its end says.
    async fn skip(&mut self, end: &Value) -> Result<(), CliError> {
        // Without an answer the end of the run tells how many they were.
        let Ok(tree) = self.known.tree(&member(end, "root_task_id")).await else {
            return Ok(());
        };
        let run = member(end.get("run").unwrap_or(&Value::Null), "id");
        Ok(self.view.skip((&run, &tree), end, self.out)?)
    }

    /// The exit code of a watch that has come to its end.
    async fn verdict(&mut self) -> Result<ExitCode, CliError> {
        let last = self.last.take().unwrap_or_default();
        let of_run = last.get("run").map(|run| member(run, "state"));
        let of_run = of_run.filter(|state| !state.is_empty());
        let mut state = of_run.unwrap_or_else(|| member(&last, "status"));
        let asked = match self.known.scope().clone() {
            // A task that the run did not reach ended as the run did.
            Scope::Below { root, top } => Some((root, top)),
            // Who goes on behind the end is not told of it again.
            Scope::Flow { root } if state.is_empty() => Some((root.clone(), root)),
            Scope::Flow { .. } | Scope::Server => None,
        };
        if let Some((root, top)) = asked {
            let tree = self.known.tree(&root).await?;
            let status = known::tasks(&tree).find(|task| task["id"] == top.as_str());
            let status = status
                .map(|task| member(task, "status"))
                .unwrap_or_default();
            if End::parse(&status).is_some() {
                state = status;
            }
        }
        Ok(match End::parse(&state) {
            Some(end) => ExitCode::from(end.exit_code()),
            None => ExitCode::SUCCESS,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::parsed;

    #[test]
    fn who_has_stopped_is_given_the_command_that_watches_the_same() {
        let top = "0f8fad5b-d9cb-469f-a165-70867728950e".to_owned();
        let below = Scope::Below {
            root: "r".to_owned(),
            top,
        };
        for (line, scope, expected) in [
            ("watch", Scope::Server, "taskledger watch"),
            (
                "watch --user ann --types task_failed,task_cancelled --output json --from 7",
                Scope::Server,
                "taskledger watch --user ann --types task_failed,task_cancelled --output json",
            ),
            (
                "watch @last --follow",
                below,
                "taskledger watch 0f8fad5b-d9cb-469f-a165-70867728950e --follow",
            ),
        ] {
            let args: Args = parsed(line.split(' ')).unwrap();
            assert_eq!(again(&args, &scope), expected);
        }
    }
}
