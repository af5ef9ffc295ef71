//! Brings a flow into memory: the newest snapshot, then the events after it.

use super::entering::Entered;
use super::error::{Error, Failure};
use super::flows::Flows;
use super::mailbox::{Order, Resident};
use super::stream_reader::StreamReader;
use crate::runtime::maybe_block_in_place;
use crate::store::{EventStore, Fence};
use std::collections::HashSet;
use std::panic::catch_unwind;
use std::sync::Arc;
use taskledger_domain::codec::snapshot;
use taskledger_domain::flow::{Command, Event, Flow};
use taskledger_domain::schedule::{self, Effect};
use taskledger_domain::{FlowId, Position, Timestamp, Version};
use tokio::time::Instant;

/// Bytes of a snapshot for each task, roughly.
const SNAPSHOT_TASK_BYTES: usize = 88;

/// Flows of other nodes that are loaded at once to be looked at: each may hold a state of 100,000
/// tasks, and nobody keeps it.
pub(super) const FOREIGN_LOADS_MAX: usize = 2;

/// Events after which a flow of so many tasks gets a new snapshot.
pub(super) fn snapshot_interval(tasks: usize) -> Version {
    (tasks as Version / 4).max(500)
}

/// A flow as it is stored.
pub(super) struct Stored {
    pub(super) flow: Flow,
    /// Version of the snapshot that it was made from; 0 without one.
    pub(super) snapshot: Version,
    /// Position of the last event after the snapshot; 0 when there is none.
    pub(super) position: Position,
}

/// The state of a flow, empty if it does not exist; and, when a run is active, the order that ends
/// attempts which nobody runs any more.
pub(super) async fn load(
    flows: &Flows,
    id: FlowId,
    fence: Option<Fence>,
) -> Result<(Resident, Option<Order>), Error> {
    let begun = Instant::now();
    let Stored {
        flow,
        snapshot,
        position,
    } = stored(&*flows.store, id).await?;
    flows.adopt_leases(id, &flow).await?;
    flows.figures.load.observe_time(begun.elapsed());
    flows.loaded(id, flow.version(), position);
    let recovery = if flow.has_active_run() {
        recovery(flows, id, &flow)
    } else {
        None
    };
    Ok((
        Resident {
            durable: flow.version(),
            owner: flow.owner().map(Arc::from),
            fence,
            flow,
            snapshot,
            position,
            settled_at: Timestamp::default(),
            asked: 0,
            entered: Entered::default(),
        },
        recovery,
    ))
}

/// The state of a flow as the log has it, empty if it does not exist.
pub(super) async fn stored(store: &dyn EventStore, id: FlowId) -> Result<Stored, Error> {
    let mut flow = Flow::default();
    let mut snapshot_version = 0;
    if let Some(stored) = store.load_snapshot(id, snapshot::FORMAT).await? {
        // Bytes that were damaged without anybody noticing may still be read, as a state that breaks
        // its own invariants. The log has the truth, so that must not stop the flow.
        let tasks = stored.bytes.len() / SNAPSHOT_TASK_BYTES;
        let decode = || catch_unwind(|| snapshot::decode(&stored.bytes));
        match maybe_block_in_place(tasks, decode) {
            Ok(Ok(state)) if state.version() == stored.version => {
                flow = state;
                snapshot_version = stored.version;
            }
            Ok(Ok(_)) => {
                tracing::warn!(flow.id = %id, "a snapshot names another version than it holds; ignored")
            }
            Ok(Err(error)) => {
                tracing::warn!(flow.id = %id, error = %error, "a snapshot cannot be read; ignored")
            }
            Err(_) => tracing::warn!(flow.id = %id, "a snapshot holds no valid state; ignored"),
        }
    }
    let mut position = 0;
    let reader = StreamReader::of(store, id);
    loop {
        let page = reader.after(flow.version()).await?;
        let Some(last) = page.last() else { break };
        position = last.position;
        // Of an archived flow only the end is certain to be there.
        let is_archived = matches!(*last.event, Event::FlowArchived(_));
        if !is_archived
            && !page
                .iter()
                .zip(flow.version() + 1..)
                .all(|(e, version)| e.version == version)
        {
            return Err(Failure::Broken(format!(
                "the history of flow {id} has a gap after {}",
                flow.version()
            ))
            .into());
        }
        let end = page.len() - 1;
        let told = if is_archived { &page[end..] } else { &page[..] };
        // Replaying a long history is work for the processor: let others run in between.
        flow.replay(told.iter().map(|e| &**e));
        tokio::task::yield_now().await;
    }
    Ok(Stored {
        flow,
        snapshot: snapshot_version,
        position,
    })
}

/// The order that ends attempts which should be running and are not, if there are such.
fn recovery(flows: &Flows, id: FlowId, flow: &Flow) -> Option<Order> {
    let alive: HashSet<_> = flows.attempts().alive(id).into_iter().collect();
    let runs_nowhere = |effect| match effect {
        Effect::Launch(launch) => !alive.contains(&(launch.task, launch.attempt)),
        Effect::Hold(_) | Effect::Stop { .. } | Effect::GiveUp { .. } => false,
    };
    let lost = schedule::resume(flow).into_iter().any(runs_nowhere);
    lost.then(|| {
        let alive = alive.into_iter().collect();
        flows.engine_order(Command::Recover { alive })
    })
}
