//! What the hash chain of the log costs: durable appends to SQLite, and beside them the hashing of the same events
//! alone.
//!
//! There is no log without the chain to compare with, so the time that hashing takes by itself is taken off. On
//! Postgres the database links the hashes, in the statement that writes them: there it is not measured.

use crate::args::Args;
use crate::place::Place;
use crate::report::{Figures, Report};
use futures_util::future::join_all;
use std::path::Path;
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
const WAITING: [usize; 2] = [1, 64];
/// Events of one append.
const EVENTS: usize = 4;
/// Text of one event: with it, an event has about the size of that of the measured task.
const NAME_BYTES: usize = 400;

/// The scenario.
pub(crate) async fn hash_chain(args: &Args, report: &mut Report) -> Result<(), String> {
    if args.database_url.is_some() {
        eprintln!("hash-chain: measured on SQLite only");
        return Ok(());
    }
    for waiting in WAITING {
        let mut figures = Figures::default();
        for _ in 0..args.rounds() {
            let place = Place::fresh(args, "hash-chain").await?;
            let limit = Duration::from_secs_f64(args.seconds());
            let appended = appended(place.folder(), waiting, limit).await?;
            let hashing = hashing(place.folder(), appended.head).await?;
            place.remove().await?;
            let each = |time: Duration| time.as_secs_f64() * 1e6 / appended.events as f64;
            let without = appended.took.saturating_sub(hashing);
            figures.add("append, per event", "us", each(appended.took));
            figures.add("hashing, per event", "us", each(hashing));
            let ratio = appended.took.as_secs_f64() / without.as_secs_f64();
            figures.add("append, of the same without", "", ratio);
        }
        report.figures(&format!("hash chain, {waiting} in flight"), figures);
    }
    Ok(())
}

/// What was appended.
struct Appended {
    events: usize,
    took: Duration,
    /// The hash of the last one.
    head: Hash,
}

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

/// Appends to a fresh log for so long.
async fn appended(folder: &Path, waiting: usize, limit: Duration) -> Result<Appended, String> {
    let clock: SharedClock = Arc::new(SystemClock::default());
    let store = SqliteStore::open(Options::new(folder, clock.clone()));
    let store = store.map_err(|e| e.to_string())?;
    let (mut events, mut took) = (0, Duration::ZERO);
    while took < limit {
        let appends: Vec<_> = (0..waiting).map(|_| append(&clock)).collect();
        let began = Instant::now();
        let outcomes = join_all(appends.into_iter().map(|append| store.append(append))).await;
        took += began.elapsed();
        for outcome in outcomes {
            let outcome = outcome.map_err(|e| e.to_string())?;
            let Outcome::Appended(written) = outcome else {
                return Err(format!("an append to a new flow was refused: {outcome:?}"));
            };
            events += written.len();
        }
    }
    let head = store.chain_head().await.map_err(|e| e.to_string())?;
    store.close().await;
    let head = head.ok_or("the log has no hash")?.hash;
    Ok(Appended { events, took, head })
}

/// How long hashing all events of a log takes. They must come to the same hash.
async fn hashing(folder: &Path, head: Hash) -> Result<Duration, String> {
    let export = Export::open(&folder.join(LEDGER_FILE), 0);
    let mut export = export.map_err(|e| e.to_string())?;
    let (mut hash, mut took) = (Hash::BEFORE_FIRST, Duration::ZERO);
    loop {
        let page = export.events().await.map_err(|e| e.to_string())?;
        if page.is_empty() {
            break;
        }
        let began = Instant::now();
        for line in &page {
            if let Line::Event(event) = line
                && let Step::Event { remains, .. } = event.step()
            {
                hash = hash.link(remains.position, remains.recorded_at, remains.content());
            }
        }
        took += began.elapsed();
    }
    match hash == head {
        true => Ok(took),
        false => Err("the events come to another hash".to_owned()),
    }
}
