//! Finds published tasks that cannot run any more, because a task they wait for failed, was cancelled, or was left out
//! when its run ended; their requesters are told at once. Owns which events ask for a look, and the look: at the flow
//! as it was then, so every server finds the same. Flows that were looked at last are kept as they were, and go on with
//! what came since; others are made again from the log.

use super::Stopped;
use crate::store::{self, EventStore, PIECE_BYTES_MAX, PIECE_EVENTS_MAX};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::panic::catch_unwind;
use std::sync::Arc;
use taskledger_broker::{Blocked, BrokerStore, publishes};
use taskledger_domain::codec::snapshot;
use taskledger_domain::flow::{Event, Flow};
use taskledger_domain::{FlowId, Position, Recorded, RunId, TaskId, Timestamp, Version};

/// Flows that are kept, and bytes of them, roughly; those that were looked at last stay. One that is larger is made
/// again for each look.
const KEPT_MAX: usize = 64;
const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Flows that were looked at, as they were then: the latest look last.
#[derive(Default)]
pub(super) struct Looks {
    kept: VecDeque<(FlowId, Flow)>,
}

impl Looks {
    /// The published and other tasks that are blocked by what these events say, by position. Cost: nothing where no
    /// event ends a task without success or a run with tasks left; else a query, and of each such flow in which tasks
    /// were published below others O(tasks), and the events since it was looked at before, or behind its snapshot.
    pub(super) async fn blocked(
        &mut self,
        log: &dyn EventStore,
        broker: &BrokerStore,
        events: &[Arc<Recorded>],
    ) -> Result<Vec<Blocked>, Stopped> {
        let asking: HashSet<FlowId> = events
            .iter()
            .filter(|it| asks(&it.event))
            .map(|it| it.flow)
            .collect();
        if asking.is_empty() {
            return Ok(Vec::new());
        }
        let flows: Vec<FlowId> = asking.iter().copied().collect();
        let mut concerned: HashSet<FlowId> = HashSet::new();
        concerned.extend(broker.flows_with_dependents(&flows).await?);
        concerned.extend(events.iter().filter_map(dependent_in));
        concerned.retain(|flow| asking.contains(flow));
        let mut of_flows: BTreeMap<FlowId, Vec<Arc<Recorded>>> = BTreeMap::new();
        for recorded in events.iter().filter(|it| concerned.contains(&it.flow)) {
            let of_flow = of_flows.entry(recorded.flow).or_default();
            of_flow.push(recorded.clone());
        }
        let mut found = Vec::new();
        for (flow, events) in of_flows {
            match self.look(log, flow, &events).await {
                // Its state cannot be known, which the store has named; other flows go on.
                Err(Stopped::Log(store::Error::Corrupt { .. })) => {}
                look => found.extend(look?),
            }
        }
        found.sort_by_key(|it| it.told.0);
        Ok(found)
    }

    /// Looks at a flow as it was at those of these events that ask for it.
    async fn look(
        &mut self,
        log: &dyn EventStore,
        id: FlowId,
        events: &[Arc<Recorded>],
    ) -> Result<Vec<Blocked>, Stopped> {
        let looks: Vec<&Arc<Recorded>> = events.iter().filter(|it| asks(&it.event)).collect();
        let (Some(first), Some(last)) = (looks.first(), looks.last()) else {
            return Ok(Vec::new());
        };
        let mut flow = match self.take(id, first.version) {
            Some(kept) => kept,
            None => before(log, id, first.version).await?,
        };
        let found = found(log, &mut flow, (id, events), (&looks, last)).await?;
        let Some(found) = found else {
            return Ok(Vec::new());
        };
        self.keep(id, flow);
        told(log, id, found).await
    }

    /// A flow as it was kept, if it is not later than `version`.
    fn take(&mut self, id: FlowId, version: Version) -> Option<Flow> {
        let place = self.kept.iter().position(|(kept, _)| *kept == id)?;
        let (_, flow) = self.kept.remove(place)?;
        (flow.version() < version).then_some(flow)
    }

    fn keep(&mut self, id: FlowId, flow: Flow) {
        self.kept.push_back((id, flow));
        let mut bytes: usize = self.kept.iter().map(|(_, it)| it.weight_bytes()).sum();
        while self.kept.len() > KEPT_MAX || bytes > KEPT_BYTES_MAX {
            let Some((_, oldest)) = self.kept.pop_front() else {
                break;
            };
            bytes -= oldest.weight_bytes();
        }
    }
}

/// Whether tasks may be blocked by an event, or be found so because of it.
pub(super) fn asks(event: &Event) -> bool {
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

/// What is found out about a flow that goes on up to the last look, with the events of it that are at hand and those of
/// the log; `None`: it was archived meanwhile, and what it has published is forgotten.
async fn found(
    log: &dyn EventStore,
    flow: &mut Flow,
    (id, events): (FlowId, &[Arc<Recorded>]),
    (looks, last): (&[&Arc<Recorded>], &Recorded),
) -> Result<Option<Found>, Stopped> {
    let ends: HashMap<Version, RunId> = looks.iter().filter_map(|it| run_end(it)).collect();
    let mut found = Found::default();
    while flow.version() < last.version {
        let next = flow.version() + 1;
        let at_hand = events.partition_point(|it| it.version < next);
        let at_hand = &events[at_hand..];
        let read = match at_hand.first().is_some_and(|it| it.version == next) {
            true => None,
            false => {
                let after = flow.version();
                let read = log.read_stream(id, after, PIECE_EVENTS_MAX, PIECE_BYTES_MAX);
                Some(read.await?)
            }
        };
        let page = read.as_deref().unwrap_or(at_hand);
        if page.first().is_none_or(|it| it.version != next) {
            return Ok(None);
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
            return Ok(None);
        }
        tokio::task::yield_now().await;
    }
    found.note(flow.blocked(), last);
    Ok(Some(found))
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
