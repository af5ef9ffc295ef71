//! `taskledger events tail`

use crate::event_stream::{Door, Event, EventStream, JsonEvent, Piece, StreamItem, Wanted};
use crate::following::{Begin, LastCursor, Remarks, given, place_of, say, stopped, types};
use crate::labels::selector;
use crate::output::{Output, list, member};
use crate::watch::lines::Lines;
use crate::when::When;
use crate::{Api, CliError, HttpApi, Remote, clock, ids};
use serde_json::{Value, json};
use std::io;
use std::process::ExitCode;
use taskledger_domain::Timestamp;

/// Print the events of a server, one per line, until it is interrupted
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger events tail
  taskledger events tail --from beginning --types task_failed | jq .error
  taskledger events tail --flow @last --url http://127.0.0.1:8000
  taskledger events tail --since 1h
  taskledger events tail --label team=data --label stage

In a pipe, and with --json, each line is a JSON object with the event's name, its `cursor` and its data. After a lost
connection the command reconnects, and no event is printed twice. Ctrl-C prints how to continue later.")]
pub struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Only this flow, named by its root task
    #[arg(long, value_name = "ID")]
    flow: Option<String>,
    /// Only this task
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Only flows of this user
    #[arg(long)]
    user: Option<String>,
    /// Only these events, separated by commas
    #[arg(long, alias = "events", value_delimiter = ',', value_name = "EVENT", value_parser = types())]
    types: Vec<String>,
    /// Only events of tasks with this label: KEY=VALUE, or KEY for any value; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,
    /// Start with the first event at this time or later: `15m`, `yesterday 14:00`, a date, or RFC 3339
    #[arg(long, value_name = "TIME", conflicts_with_all = ["from", "last_event_id"])]
    since: Option<String>,
    #[command(flatten)]
    begin: Begin,
}

impl Args {
    /// What to ask for: ids as people give them are resolved, and a time is the place of its first event.
    async fn wanted(
        self,
        when: &When,
        place: &LastCursor,
        out: &mut Output,
    ) -> Result<Wanted, CliError> {
        let since = self
            .since
            .as_deref()
            .map(|text| when.parse_past(text))
            .transpose();
        let since = since.map_err(|why| CliError::Usage(format!("--since: {why}")))?;
        // The server chooses; what is no label is told with the name of the option.
        selector(&self.labels)?;
        let target = self.remote.target()?;
        let api = HttpApi::of(target.clone())?;
        let resolve = async |id: &Option<String>| match id {
            Some(id) => ids::resolved(&api, id).await.map(Some),
            None => Ok(None),
        };
        let (flow, task) = (resolve(&self.flow).await?, resolve(&self.task).await?);
        let types = (!self.types.is_empty()).then(|| self.types.join(","));
        out.calls_with(api.options().to_owned());
        let mut chosen = vec![
            ("flow", flow.as_deref()),
            ("task", task.as_deref()),
            ("user", self.user.as_deref()),
            ("types", types.as_deref()),
        ];
        chosen.extend(self.labels.iter().map(|label| ("label", Some(&**label))));
        place.is_of(out.command(&format!("taskledger events tail{}", given(&chosen))));
        let parameters = |from: Option<String>| {
            let parameters = [
                ("flow", flow.clone()),
                ("task", task.clone()),
                ("user", self.user.clone()),
                ("types", types.clone()),
                ("from", from),
            ];
            let given = parameters.into_iter();
            let given = given.filter_map(|(name, value)| value.map(|value| (name, value)));
            let labels = self.labels.iter().map(|label| ("label", label.clone()));
            Door::Events(given.chain(labels).collect())
        };
        let wanted = |from, after| Wanted {
            target: target.clone(),
            door: parameters(from),
            after,
        };
        let Some(since) = since else {
            return Ok(wanted(
                self.begin.from.clone(),
                self.begin.last_event_id.clone(),
            ));
        };
        // Taken before the log is looked through, so that what happens meanwhile is told too.
        let now = place_of(wanted(None, None)).await?;
        Ok(match first_since(&api, since).await? {
            None => wanted(None, Some(now)),
            Some(0 | 1) => wanted(Some("beginning".to_owned()), None),
            Some(position) => wanted(Some((position - 1).to_string()), None),
        })
    }
}

/// The position of the first event at this time or after it, of those that the caller sees.
async fn first_since(api: &dyn Api, since: Timestamp) -> Result<Option<u64>, CliError> {
    let mut params = json!({"since": since.to_string(), "order": "asc", "limit": 1});
    loop {
        let page = api.call("events.query", params.clone()).await?;
        if let Some(event) = list(&page, "events").first() {
            return Ok(event.get("position").and_then(Value::as_u64));
        }
        // A page may be empty although more follows.
        match member(&page, "next_cursor") {
            none if none.is_empty() => return Ok(None),
            cursor => params["cursor"] = cursor.into(),
        }
    }
}

/// Writes events until the stream ends, somebody stops it, or nobody reads any more.
pub async fn tail(args: Args, when: &When, out: &mut Output) -> Result<ExitCode, CliError> {
    let lines = Lines::of(args.types.clone());
    let place = LastCursor::default();
    let mut stream = EventStream::open(args.wanted(when, &place, out).await?, clock())?;
    tokio::select! {
        // First: a signal that comes with the first events must not end the program by itself.
        biased;
        stopped = stopped() => {
            stopped?;
            place.farewell();
        }
        ended = write(&mut stream, &place, lines, out) => ended?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn write(
    stream: &mut EventStream,
    place: &LastCursor,
    mut lines: Lines,
    out: &mut Output,
) -> Result<(), CliError> {
    let mut remarks = Remarks::default();
    while let Some(told) = stream.next().await? {
        if let Some(remark) = remarks.about(&told) {
            say(&remark);
        }
        match told {
            StreamItem::Pieces(pieces) => {
                for piece in &pieces {
                    match piece {
                        Piece::Event(event) => show(event, &mut lines, out)?,
                        Piece::Place(_) => {}
                    }
                }
                if let Some(line) = lines.rest(out) {
                    out.text_of_many(&line)?;
                }
                out.flush()?;
                place.passed(&pieces);
            }
            StreamItem::Opened { again, place: at } => {
                if let (false, Some(at)) = (again, at) {
                    place.set(&at);
                }
            }
            StreamItem::Lost { .. } => {}
        }
    }
    Ok(())
}

/// An event: JSON for programs, and for people the same line as `watch` writes.
fn show(event: &Event, lines: &mut Lines, out: &mut Output) -> io::Result<()> {
    let data = event.json();
    if out.is_json() || !out.is_terminal() || data.get("task_id").is_none() {
        return out.line_of_many(&event.json_line());
    }
    let name = member(&data, "name");
    for line in lines.next(event, &data, &name, out) {
        out.text_of_many(&line)?;
    }
    Ok(())
}
