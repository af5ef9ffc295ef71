//! A log in memory, and a stream that tells nothing of what happens in it.

use crate::live::{Live, Reads};
use crate::notice::Kind;
use crate::stream::{Filter, From, Notices, Reader, Until};
use futures_util::future::{self, BoxFuture, FutureExt};
use std::sync::Arc;
use taskledger_domain::flow::{Event, TaskProgressed};
use taskledger_domain::task::Progress;
use taskledger_domain::testing::{START, id};
use taskledger_domain::{EventId, FlowId, Metadata, Position};
use taskledger_log::memory::MemoryStore;
use taskledger_log::{Append, EventStore, NewEvent};
use tokio_util::sync::CancellationToken;

/// Reads that show what the log has.
#[derive(Debug)]
pub struct Immediate;

impl Reads for Immediate {
    fn show(&self, _: FlowId, _: Position) -> BoxFuture<'_, ()> {
        future::ready(()).boxed()
    }
}

/// Appends progress, behind so many events.
pub async fn append(store: &MemoryStore, version: u64) {
    let event = Event::TaskProgressed(TaskProgressed {
        task_id: id("task"),
        attempt: 1,
        progress: Progress::ZERO,
        message: None,
        remarks: None,
    });
    append_event(store, version, event).await;
}

/// Appends an event of the one flow, behind so many.
pub async fn append_event(store: &MemoryStore, version: u64, event: Event) {
    let metadata = Metadata {
        actor: Arc::from("test"),
        correlation: Arc::from("test"),
        causation: None,
        trace: None,
    };
    let event_id = EventId(id(&format!("event {version}")).0);
    let append = Append {
        stream: id("task").as_flow(),
        expected: version,
        events: vec![NewEvent::new(event_id, START, metadata, event)],
        claims: Vec::new(),
        fence: None,
    };
    store
        .append(append)
        .await
        .expect("the log in memory takes it");
}

/// What fails from now on, of a log that is followed until `ending`.
pub async fn of_failures(store: &Arc<MemoryStore>, ending: &CancellationToken) -> Notices {
    let (service, live) = Live::new(store.clone(), Arc::new(Immediate));
    tokio::spawn(service.run(ending.clone()));
    let filter = Filter {
        kinds: Some(vec![Kind::Failed]),
        ..Filter::default()
    };
    let begun = Reader::begin(live, filter, From::Now, Until::Forever).await;
    begun.expect("the log in memory can be read").0.into()
}
