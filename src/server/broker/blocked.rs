//! Which published tasks cannot run any more, because what they wait for failed, was cancelled, or is left out by the end of
//! their run: their requesters are told at once. Owns which events ask for a look, and the look: the flow is made again from
//! the log as it was then, so every server finds the same.

use super::Stopped;
use crate::store::{EventStore, PIECE_BYTES_MAX, PIECE_EVENTS_MAX};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::panic::catch_unwind;
use std::sync::Arc;
use taskledger_broker::{Blocked, BrokerStore, publishes};
use taskledger_domain::codec::snapshot;
use taskledger_domain::flow::{Event, Flow};
use taskledger_domain::{FlowId, Position, Recorded, RunId, TaskId, Timestamp, Version};

/// The published and other tasks that are blocked by what these events say, by position. Cost: nothing where no event ends
/// a task without success or a run with tasks left; else a query, and of each such flow in which tasks were published below
/// others the events behind its snapshot.
pub(super) async fn blocked(
    log: &dyn EventStore,
    store: &BrokerStore,
    events: &[Arc<Recorded>],
) -> Result<Vec<Blocked>, Stopped> {
    let mut looks: BTreeMap<FlowId, Vec<&Arc<Recorded>>> = BTreeMap::new();
    for recorded in events.iter().filter(|it| asks(&it.event)) {
        looks.entry(recorded.flow).or_default().push(recorded);
    }
    if looks.is_empty() {
        return Ok(Vec::new());
    }
    let flows: Vec<FlowId> = looks.keys().copied().collect();
    let mut concerned: HashSet<FlowId> = HashSet::new();
    concerned.extend(store.flows_with_dependents(&flows).await?);
    concerned.extend(events.iter().filter_map(dependent_in));
    let mut found = Vec::new();
    for (flow, looks) in looks {
        if concerned.contains(&flow) {
            found.extend(look(log, flow, &looks).await?);
        }
    }
    found.sort_by_key(|it| it.told.0);
    Ok(found)
}

/// Whether tasks may be blocked by an event, or be found so because of it.
fn asks(event: &Event) -> bool {
    if let Event::TaskCreated(e) = event {
        return e.run_id.is_some() && !e.dependencies.is_empty() && publishes(e);
    }
    if let Event::TaskFailed(e) = event {
        return !e.will_retry;
    }
    if let Event::RunEnded(e) = event {
        return e.counts.pending > 0;
    }
    matches!(
        event,
        Event::TaskCancelled(_) | Event::DependenciesChanged(_)
    )
}

/// The flow in which an event publishes a task below another one.
fn dependent_in(recorded: &Arc<Recorded>) -> Option<FlowId> {
    let Event::TaskCreated(created) = recorded.event.as_ref() else {
        return None;
    };
    (created.parent_id.is_some() && publishes(created)).then_some(recorded.flow)
}

/// What was found out about a flow.
#[derive(Default)]
struct Found {
    /// The version of the event because of which a task is blocked, and what told.
    causes: BTreeMap<(TaskId, Version), (Position, Timestamp)>,
    /// Events that were read on the way.
    read: HashMap<Version, Arc<Recorded>>,
}

impl Found {
    fn note(&mut self, blocked: impl IntoIterator<Item = (TaskId, Version)>, told: &Recorded) {
        for cause in blocked {
            self.causes
                .entry(cause)
                .or_insert((told.position, told.time));
        }
    }

    /// A run ends with these tasks left, of which some are `blocked`.
    fn left(&mut self, left: Vec<TaskId>, blocked: Vec<(TaskId, Version)>, told: &Recorded) {
        let blocked: HashMap<TaskId, Version> = blocked.into_iter().collect();
        let cause = |task: &TaskId| blocked.get(task).copied().unwrap_or(told.version);
        let causes: Vec<_> = left.iter().map(|task| (*task, cause(task))).collect();
        self.note(causes, told);
    }
}

/// Looks at a flow as it was at these events.
async fn look(
    log: &dyn EventStore,
    id: FlowId,
    looks: &[&Arc<Recorded>],
) -> Result<Vec<Blocked>, Stopped> {
    let (Some(first), Some(last)) = (looks.first(), looks.last()) else {
        return Ok(Vec::new());
    };
    let ends: HashMap<Version, RunId> = looks.iter().filter_map(|it| run_end(it)).collect();
    let mut flow = before(log, id, first.version).await?;
    let mut found = Found::default();
    while flow.version() < last.version {
        let page = log
            .read_stream(id, flow.version(), PIECE_EVENTS_MAX, PIECE_BYTES_MAX)
            .await?;
        // Archived meanwhile: what it has published is forgotten.
        if page
            .first()
            .is_none_or(|it| it.version != flow.version() + 1)
        {
            return Ok(Vec::new());
        }
        let upto = page.partition_point(|it| it.version <= last.version);
        let causes = page[..upto].iter().filter(|it| asks(&it.event));
        found.read.extend(causes.map(|it| (it.version, it.clone())));
        // A piece for each run that ends: its tasks are looked at before that.
        for piece in page[..upto].chunk_by(|_, next| !ends.contains_key(&next.version)) {
            if let Some(run) = ends.get(&piece[0].version) {
                found.left(flow.pending_in(*run), flow.blocked(), &piece[0]);
            }
            flow.replay(piece.iter().map(|it| it.as_ref()));
        }
        if flow.archived().is_some() {
            return Ok(Vec::new());
        }
        tokio::task::yield_now().await;
    }
    found.note(flow.blocked(), last);
    told(log, id, found).await
}

/// The run that ends with an event.
fn run_end(recorded: &Arc<Recorded>) -> Option<(Version, RunId)> {
    let Event::RunEnded(end) = recorded.event.as_ref() else {
        return None;
    };
    Some((recorded.version, end.run_id))
}

/// A state of the flow before an event: its snapshot, if that is not later.
async fn before(log: &dyn EventStore, id: FlowId, version: Version) -> Result<Flow, Stopped> {
    let kept = log.load_snapshot(id, snapshot::FORMAT).await?;
    let Some(kept) = kept.filter(|it| it.version < version) else {
        return Ok(Flow::default());
    };
    // One that is damaged is as good as none.
    let decoded = catch_unwind(|| snapshot::decode(&kept.bytes));
    Ok(match decoded {
        Ok(Ok(flow)) if flow.version() == kept.version => flow,
        Ok(Ok(_) | Err(_)) | Err(_) => Flow::default(),
    })
}

/// With the events themselves.
async fn told(log: &dyn EventStore, id: FlowId, mut found: Found) -> Result<Vec<Blocked>, Stopped> {
    let versions = found.causes.keys().map(|(_, version)| *version);
    let mut missing: Vec<Version> = versions
        .filter(|version| !found.read.contains_key(version))
        .collect();
    missing.sort_unstable();
    missing.dedup();
    if !missing.is_empty() {
        let events = log.read_versions(id, &missing).await?;
        found
            .read
            .extend(events.into_iter().map(|it| (it.version, it)));
    }
    let blocked = found
        .causes
        .into_iter()
        .filter_map(|((task, version), told)| {
            let cause = found.read.get(&version)?.clone();
            Some(Blocked { task, cause, told })
        });
    Ok(blocked.collect())
}
