//! `taskledger events tail`

use crate::cli::event_stream::{Door, EventStream, JsonEvent, Piece, Told, Wanted};
use crate::cli::following::{Begin, Place, Remarks, say, stopped, types};
use crate::cli::output::Output;
use crate::cli::{CliError, Remote, storage};
use std::process::ExitCode;

/// Write what happens on a server as lines of JSON, until it is stopped
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger events tail
  taskledger events tail --from beginning --types task_failed | jq .error
  taskledger events tail --flow 0f8fad5b-d9cb-469f-a165-70867728950e --url http://127.0.0.1:8000

A line holds the name of the event, the place behind it (`cursor`), and its data. When the connection is
lost it is made again, and each event is written once. Ctrl-C says how to go on later.")]
pub(super) struct Args {
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
    /// Only these events, with commas
    #[arg(long, value_delimiter = ',', value_name = "EVENT", value_parser = types())]
    types: Vec<String>,
    #[command(flatten)]
    begin: Begin,
}

impl Args {
    fn wanted(self) -> Result<Wanted, CliError> {
        let types = (!self.types.is_empty()).then(|| self.types.join(","));
        let parameters = [
            ("flow", self.flow),
            ("task", self.task),
            ("user", self.user),
            ("types", types),
            ("from", self.begin.from),
        ];
        let given = parameters.into_iter();
        let given = given.filter_map(|(name, value)| value.map(|value| (name, value)));
        Ok(Wanted {
            target: self.remote.target()?,
            door: Door::Events(given.collect()),
            after: self.begin.last_event_id,
        })
    }
}

/// Writes events until the stream ends, somebody stops it, or nobody reads any more.
pub(super) async fn tail(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    let mut stream = EventStream::open(args.wanted()?, storage::clock())?;
    let place = Place::default();
    tokio::select! {
        // First: a signal that comes with the first events must not end the program by itself.
        biased;
        stopped = stopped() => {
            stopped?;
            place.farewell();
        }
        ended = write(&mut stream, &place, out) => ended?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn write(stream: &mut EventStream, place: &Place, out: &mut Output) -> Result<(), CliError> {
    let mut remarks = Remarks::default();
    while let Some(told) = stream.next().await? {
        if let Some(remark) = remarks.about(&told) {
            say(&remark);
        }
        match told {
            Told::Pieces(pieces) => {
                for piece in &pieces {
                    match piece {
                        Piece::Event(event) => out.line_of_many(&event.json_line())?,
                        Piece::Place(_) => {}
                    }
                }
                out.flush()?;
                place.passed(&pieces);
            }
            Told::Opened { again, place: at } => {
                if let (false, Some(at)) = (again, at) {
                    place.set(&at);
                }
            }
            Told::Lost { .. } => {}
        }
    }
    Ok(())
}
