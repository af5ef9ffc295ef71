//! What the hash chain costs: appends to SQLite, and beside them the hashing of the same events alone.
//! `cargo run -p taskledger-log --example chain_cost`; the first argument is the number of events.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};
use taskledger_clock::{SharedClock, SystemClock};
use taskledger_domain::flow::{Event, TaskRenamed};
use taskledger_domain::{EventId, FlowId, Metadata, TaskId};
use taskledger_log::chain::{Hash, Step};
use taskledger_log::sqlite::export::Export;
use taskledger_log::sqlite::{LEDGER_FILE, Options, SqliteStore};
use taskledger_log::transfer::{Line, Source};
use taskledger_log::{Append, EventStore, NewEvent, Outcome};

/// Appends that wait for the committer at a time.
const WAITING: usize = 64;
/// Events of one append.
const EVENTS: usize = 4;
/// Payload bytes of one event, roughly those of a task with small inputs.
const NAME_BYTES: usize = 400;

fn append(clock: &SharedClock) -> Append {
    let event = || {
        let metadata = Metadata {
            actor: Arc::from("ada"),
            correlation: Arc::from("0f8fad5b-d9cb-469f-a165-708677289501"),
            causation: None,
            trace: None,
        };
        let renamed = Event::TaskRenamed(TaskRenamed {
            task_id: TaskId(clock.uuid()),
            name: "n".repeat(NAME_BYTES),
        });
        NewEvent::new(EventId(clock.uuid()), clock.now(), metadata, renamed)
    };
    Append {
        stream: FlowId(clock.uuid()),
        expected: 0,
        events: (0..EVENTS).map(|_| event()).collect(),
        claims: Vec::new(),
        fence: None,
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let events = std::env::args().nth(1).map_or(Ok(100_000), |n| n.parse())?;
    let clock: SharedClock = Arc::new(SystemClock::default());
    let folder = tempfile::tempdir()?;
    let store = SqliteStore::open(Options::new(folder.path(), clock.clone()))?;
    let (mut appended, mut appending) = (0, Duration::ZERO);
    while appended < events {
        let appends: Vec<_> = (0..WAITING).map(|_| append(&clock)).collect();
        let begun = Instant::now();
        let outcomes =
            futures_util::future::join_all(appends.into_iter().map(|a| store.append(a))).await;
        appending += begun.elapsed();
        for outcome in outcomes {
            let Outcome::Appended(written) = outcome? else {
                return Err("an append to a new flow was refused".into());
            };
            appended += written.len();
        }
    }
    let head = store.chain_head().await?;
    store.close().await;

    let mut export = Export::open(&folder.path().join(LEDGER_FILE), 0)?;
    let (mut hash, mut hashing) = (Hash::BEFORE_FIRST, Duration::ZERO);
    loop {
        let page = export.events().await?;
        if page.is_empty() {
            break;
        }
        let begun = Instant::now();
        for line in &page {
            if let Line::Event(event) = line
                && let Step::Event { remains, .. } = event.step()
            {
                hash = hash.link(remains.position, remains.recorded_at, remains.content);
            }
        }
        hashing += begun.elapsed();
    }
    if head.map(|mark| mark.hash) != Some(hash) {
        return Err("the hashes differ".into());
    }
    let each = |time: Duration| time.as_secs_f64() * 1e6 / appended as f64;
    let (with, alone) = (each(appending), each(hashing));
    println!(
        "{appended} events: {with:.2} us each to append, of which {alone:.2} us for the hash; without it \
         {:.2} us ({:.1} % more with it)",
        with - alone,
        100.0 * alone / (with - alone)
    );
    Ok(())
}
