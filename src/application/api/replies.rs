//! Replies to requests that concern a flow.

use super::runs::FollowedUp;
use super::work::{
    Begun, Ended, HeldBy, HeldLease, MethodFigures, Renewed, Responded, Sibling, Suspended,
};
use super::workflows::RunProgress;
use super::{AwaitedWorkers, Facts, HistoryCursor, KnownExecutors, Origin, Queue, TaskIds};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use taskledger_domain::flow::WillRun;
use taskledger_domain::flow::explain::Explanation;
use taskledger_domain::task::Status;
use taskledger_domain::{FlowId, Payload, Recorded, RunId, TaskId, Version};
use taskledger_projections::{Attempt, RunSummary};

/// The answer to a [`Request`](super::Request) that was carried out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Reply {
    /// Tasks were created.
    Created(Created),
    /// A run was started.
    Started(Started),
    /// A run was cancelled, or a message to it was recorded.
    OfRun(FollowedUp),
    /// A task was changed.
    Updated {
        /// The task as it is now.
        task: TaskId,
        /// How it stands; absent when the rules do not say.
        status: Option<Status>,
    },
    /// Tasks were deleted.
    Deleted,
    /// A task was cancelled.
    Cancelled {
        /// The task that was named.
        task: TaskId,
    },
    /// A task was copied.
    Copied(Copied),
    /// Why a task stands as it does.
    Explained(Box<Explained>),
    /// How far everything below a task has come.
    Progress(Box<RunProgress>),
    /// Events.
    History(Box<HistoryPage>),
    /// Attempts of a worker began; none when there was nothing for it.
    Claimed(Vec<Begun>),
    /// A hint was taken.
    Hinted,
    /// Workers that hold tasks of a node.
    HeldHere(Vec<HeldBy>),
    /// Tasks of a node that a worker holds.
    TasksHeld(Vec<TaskId>),
    /// Tasks of a node that are for workers, by method.
    MethodFigures(Vec<MethodFigures>),
    /// A lease was extended.
    Renewed(Renewed),
    /// An attempt of a worker ended.
    Ended(Ended),
    /// A task waits for a person.
    Suspended(Suspended),
    /// An answer was taken.
    Responded(Box<Responded>),
    /// A task beside one that a worker holds.
    Sibling(Sibling),
    /// The lease by which a worker holds a task, if it does.
    Lease(Option<HeldLease>),
}

/// Tasks that were created.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Created {
    /// The root of the new tasks, or the first of them.
    pub task: TaskId,
    /// The ids of all; absent for a single task.
    pub task_ids: Option<TaskIds>,
}

/// Something in an accepted call that is probably a mistake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// The name of what it is about: a key, a secret.
    pub field: String,
    /// Why it is probably a mistake.
    pub reason: String,
    /// How to mend it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// The command that mends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl From<taskledger_workflows::Fault> for Warning {
    fn from(fault: taskledger_workflows::Fault) -> Self {
        Self {
            field: fault.path,
            reason: fault.reason,
            suggestion: fault.suggestion,
            command: None,
        }
    }
}

/// A run that was started.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Started {
    /// The root of the flow.
    pub root: TaskId,
    /// The stored task that was named; absent when new tasks are run.
    pub task: Option<TaskId>,
    /// Identifies the run that has begun.
    pub run: RunId,
    /// The ids of new tasks.
    pub task_ids: TaskIds,
    /// The tasks that the run starts.
    pub will_run: WillRun,
}

/// A task that was copied.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Copied {
    /// The task that was named.
    pub original: TaskId,
    /// The id of the task's copy, in the target flow.
    pub copy: TaskId,
    /// The id of each copy, by that of its original.
    pub task_ids: Arc<[(TaskId, TaskId)]>,
    /// Dependencies that no copy could keep, because it cannot see the task.
    pub dropped: Arc<[DroppedDependency]>,
}

/// A dependency that was not copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedDependency {
    /// The copy that would have had it.
    pub task: TaskId,
    /// The task that it named.
    pub on: TaskId,
    /// Whether the original needs that task to complete.
    pub required: bool,
}

/// Everything that is known of how a task stands, for a door to put into words.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Explained {
    /// The flow of the task.
    pub flow: FlowId,
    /// The reasons, as the state of the flow gives them.
    pub explanation: Explanation,
    /// Names and outcomes of the tasks in them.
    pub facts: Facts,
    /// The latest attempts, oldest first; at most
    /// [`ATTEMPTS_MAX`](crate::application::explain::ATTEMPTS_MAX).
    pub attempts: Vec<Attempt>,
    /// For a task that no run covers: the last that did.
    pub last_run: Option<RunSummary>,
    /// For a task that only lacks a slot: the line that it stands in.
    pub queue: Option<Queue>,
    /// For a task that only lacks a worker: those that it waits for.
    pub workers: Option<AwaitedWorkers>,
    /// Where the inputs of the latest attempt came from; `None`: all of them are literal, or it was not found.
    pub lineage: Option<Vec<Origin>>,
    /// What the latest attempt worked on, if some of it came from results.
    pub input: Option<Payload>,
    /// Whether nothing begins on the node that owns the flow, until it is said otherwise.
    pub is_draining: bool,
    /// Whether that node starts nothing any more because it is stopping.
    pub is_stopping: bool,
    /// The executors that there are, where a task names one that there is not.
    pub executors: Option<KnownExecutors>,
    /// The pending tasks of it that their run has ended without.
    pub skipped: Vec<TaskId>,
}

/// One page of a history.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HistoryPage {
    /// The task that was asked for.
    pub task: TaskId,
    /// The root of its flow.
    pub root: TaskId,
    /// In the order that was asked for.
    #[serde(with = "recorded")]
    pub events: Vec<Arc<Recorded>>,
    /// Where inputs came from, by the version of the event that says that their attempt began.
    pub lineages: HashMap<Version, Vec<Origin>>,
    /// What attempts worked on whose inputs came from results, likewise.
    pub inputs: HashMap<Version, Payload>,
    /// Where the next page begins, if there is one.
    pub next: Option<HistoryCursor>,
}

/// Events as they travel between nodes: in the form in which they are stored.
mod recorded {
    use serde::de::Error as _;
    use serde::ser::SerializeSeq;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::sync::Arc;
    use taskledger_domain::codec;
    use taskledger_domain::{EventId, FlowId, Metadata, Position, Recorded, Timestamp, Version};

    #[derive(Serialize)]
    struct Sent<'a> {
        position: Position,
        flow: FlowId,
        version: Version,
        id: EventId,
        time: Timestamp,
        recorded_at: Timestamp,
        metadata: &'a Metadata,
        kind: &'a str,
        schema_version: u16,
        data: &'a str,
    }

    #[derive(Deserialize)]
    struct Received {
        position: Position,
        flow: FlowId,
        version: Version,
        id: EventId,
        time: Timestamp,
        recorded_at: Timestamp,
        metadata: Metadata,
        kind: String,
        schema_version: u16,
        data: String,
    }

    pub(super) fn serialize<S: Serializer>(
        events: &[Arc<Recorded>],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(events.len()))?;
        for recorded in events {
            let encoded = codec::encode(&recorded.event);
            list.serialize_element(&Sent {
                position: recorded.position,
                flow: recorded.flow,
                version: recorded.version,
                id: recorded.id,
                time: recorded.time,
                recorded_at: recorded.recorded_at,
                metadata: &recorded.metadata,
                kind: encoded.kind,
                schema_version: encoded.schema_version,
                data: &encoded.data,
            })?;
        }
        list.end()
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Arc<Recorded>>, D::Error> {
        let received = Vec::<Received>::deserialize(deserializer)?;
        let decoded = received.into_iter().map(|it| {
            let event = codec::decode(&it.kind, it.schema_version, &it.data);
            Ok(Arc::new(Recorded {
                position: it.position,
                flow: it.flow,
                version: it.version,
                id: it.id,
                time: it.time,
                recorded_at: it.recorded_at,
                metadata: it.metadata,
                event: Arc::new(event.map_err(D::Error::custom)?),
            }))
        });
        decoded.collect()
    }
}
