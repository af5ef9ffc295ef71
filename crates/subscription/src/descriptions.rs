//! Names and labels of tasks, for notices: only the event of a creation holds them.
//!
//! A description is that of the event's moment or a later one: what happened before a task was renamed may be told
//! with its new name. Owns: what is known of flows, folded from the log, within bounds.

use crate::notice::{Notice, notices};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taskledger_domain::flow::Event;
use taskledger_domain::task::Labels;
use taskledger_domain::{FlowId, Recorded, TaskId, Version};
use taskledger_log::damage::read_stream_over;
use taskledger_log::{Error, EventStore, PIECE_BYTES_MAX, PIECE_EVENTS_MAX};

/// Bytes of descriptions that are remembered, roughly; those of the flow that was not asked for longest go first.
const BYTES_MAX: usize = 32 * 1024 * 1024;
/// Bytes of descriptions of one flow: enough for 100,000 tasks with usual names. Tasks of a flow with more are not
/// described.
const FLOW_BYTES_MAX: usize = 24 * 1024 * 1024;
/// What a task weighs besides its name.
const TASK_BYTES: usize = 140;
/// What a flow weighs besides its tasks.
const FLOW_BYTES: usize = 300;
/// What a set of labels weighs besides their texts, and each of them.
const LABELS_BYTES: usize = 80;
/// Flows are read by so many at a time, each of them once.
const TURNS: usize = 16;

/// The description of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The name that callers gave the task.
    pub name: Arc<str>,
    /// The task above it.
    pub parent_id: Option<TaskId>,
    /// The labels that subscriptions can filter by.
    pub labels: Labels,
}

/// Remembers how tasks are described.
#[derive(Debug)]
pub struct Descriptions {
    store: Arc<dyn EventStore>,
    known: Mutex<Known>,
    /// Many who ask for the same flow must not read it many times.
    turns: [tokio::sync::Mutex<()>; TURNS],
}

#[derive(Debug, Default)]
struct Known {
    flows: HashMap<FlowId, Flow>,
    /// Those that were not asked for longest come first.
    order: BTreeMap<u64, FlowId>,
    stamp: u64,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Flow {
    /// Of the last event that was taken in.
    version: Version,
    tasks: HashMap<TaskId, Description>,
    /// Each set of labels once: tasks of a flow have mostly the same.
    labels: HashSet<Labels>,
    bytes: usize,
    stamp: u64,
    is_too_large: bool,
}

impl Descriptions {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(store: Arc<dyn EventStore>) -> Self {
        Self {
            store,
            known: Mutex::default(),
            turns: std::array::from_fn(|_| tokio::sync::Mutex::default()),
        }
    }

    /// Takes in the next event of a flow that is known, or the first of one, if `begins`. Events that were
    /// not told are read when somebody asks. Cost: O(1).
    pub fn learn(&self, recorded: &Recorded, begins: bool) {
        let mut known = self.lock();
        let is_next = match known.flows.get(&recorded.flow) {
            Some(flow) => flow.version + 1 == recorded.version,
            None => begins && recorded.version == 1,
        };
        if is_next {
            known.take(recorded.flow, &[recorded]);
        }
    }

    /// The notices of an event, described. Cost: O(1) when its flow is known up to there, else the events of the
    /// flow that are not known are read.
    ///
    /// # Errors
    /// [`Error`]: the log cannot be read.
    pub async fn notices(&self, recorded: &Recorded) -> Result<Vec<Notice>, Error> {
        let mut all: Vec<Notice> = notices(recorded).collect();
        for notice in &mut all {
            self.describe(notice, recorded).await?;
        }
        Ok(all)
    }

    /// Describes the task of a notice of this event. Cost: as [`Self::notices`].
    ///
    /// # Errors
    /// [`Error`]: the log cannot be read.
    pub async fn describe(&self, notice: &mut Notice, recorded: &Recorded) -> Result<(), Error> {
        if notice.is_described() {
            return Ok(());
        }
        self.read(recorded.flow, recorded.version).await?;
        if let Some(Some(description)) = self.find(recorded, notice.task_id) {
            notice.set_description(&description);
        }
        Ok(())
    }

    /// The notices of an event, described; `None`: its flow is not known up to there. Cost: O(1).
    pub(crate) fn known_notices(&self, recorded: &Recorded) -> Option<Vec<Notice>> {
        let mut all: Vec<Notice> = notices(recorded).collect();
        for notice in all.iter_mut().filter(|notice| !notice.is_described()) {
            if let Some(description) = self.find(recorded, notice.task_id)? {
                notice.set_description(&description);
            }
        }
        Some(all)
    }

    /// What is known of a task at an event or later (`None` inside: nothing can be known); `None`: its flow is
    /// not known up to there.
    fn find(&self, recorded: &Recorded, task: TaskId) -> Option<Option<Description>> {
        let mut known = self.lock();
        let flow = known.flows.get(&recorded.flow)?;
        if flow.version < recorded.version {
            return None;
        }
        let found = flow.tasks.get(&task).cloned();
        known.touch(recorded.flow);
        Some(found)
    }

    /// Knows a flow up to this version. Cost: O(events that are not known).
    ///
    /// # Errors
    /// [`Error`]: the log cannot be read.
    pub(crate) async fn read(&self, flow: FlowId, version: Version) -> Result<(), Error> {
        if self.version(flow) >= version {
            return Ok(());
        }
        let turn = flow.0.as_u128() % TURNS as u128;
        let _turn = self.turns[usize::try_from(turn).unwrap_or(0)].lock().await;
        loop {
            let after = self.version(flow);
            if after >= version {
                return Ok(());
            }
            let store = &*self.store;
            let piece =
                read_stream_over(store, flow, after, PIECE_EVENTS_MAX, PIECE_BYTES_MAX).await?;
            if piece.is_empty() {
                return Ok(());
            }
            let events: Vec<&Recorded> = piece.iter().map(|event| &**event).collect();
            self.lock().take(flow, &events);
            if events.last().is_some_and(|event| ends(event)) {
                return Ok(());
            }
        }
    }

    /// Up to where a flow is known; 0: not at all.
    fn version(&self, flow: FlowId) -> Version {
        let known = self.lock();
        known.flows.get(&flow).map_or(0, |flow| flow.version)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Takes in events of a flow, those that come next; of an archived flow nothing is kept.
    fn take(&mut self, id: FlowId, events: &[&Recorded]) {
        if events.last().is_some_and(|event| ends(event)) {
            return self.forget(id);
        }
        let flow = self.flows.entry(id).or_default();
        let before = flow.bytes;
        for event in events {
            // What was dropped from the log is not missed.
            if event.version > flow.version {
                flow.version = event.version;
                let was_described = !flow.is_too_large;
                flow.apply(&event.event);
                if was_described && flow.is_too_large {
                    tracing::warn!(
                        flow.id = %id,
                        "the names and labels of this flow exceed {FLOW_BYTES_MAX} bytes: its notices have none, and \
                         filters by label do not choose them"
                    );
                }
            }
        }
        self.bytes = self.bytes - before + flow.bytes;
        self.touch(id);
        while self.bytes > BYTES_MAX
            && let Some((_, &oldest)) = self.order.first_key_value()
            && oldest != id
        {
            self.forget(oldest);
        }
    }

    fn touch(&mut self, id: FlowId) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        self.order.remove(&flow.stamp);
        self.stamp += 1;
        flow.stamp = self.stamp;
        self.order.insert(flow.stamp, id);
    }

    fn forget(&mut self, id: FlowId) {
        if let Some(flow) = self.flows.remove(&id) {
            self.order.remove(&flow.stamp);
            self.bytes -= flow.bytes;
        }
    }
}

/// Whether the flow was archived with this event, which is its last.
fn ends(recorded: &Recorded) -> bool {
    matches!(*recorded.event, Event::FlowArchived(_))
}

impl Flow {
    fn apply(&mut self, event: &Event) {
        self.bytes = self.bytes.max(FLOW_BYTES);
        if self.is_too_large {
            return;
        }
        if let Event::TaskCreated(e) = event {
            let description = Description {
                name: Arc::from(e.name.as_str()),
                parent_id: e.parent_id,
                labels: self.shared(&e.labels),
            };
            self.bytes += TASK_BYTES + e.name.len();
            self.tasks.insert(e.task_id, description);
        } else if let Event::TaskRenamed(e) = event {
            if let Some(task) = self.tasks.get_mut(&e.task_id) {
                self.bytes = self.bytes + e.name.len() - task.name.len();
                task.name = Arc::from(e.name.as_str());
            }
        } else if let Event::TaskMoved(e) = event {
            if let Some(task) = self.tasks.get_mut(&e.task_id) {
                task.parent_id = Some(e.parent_id);
            }
        } else if let Event::LabelsChanged(e) = event {
            let labels = self.shared(&e.labels);
            if let Some(task) = self.tasks.get_mut(&e.task_id) {
                task.labels = labels;
            }
        }
        if self.bytes > FLOW_BYTES_MAX {
            *self = Self {
                version: self.version,
                stamp: self.stamp,
                bytes: FLOW_BYTES,
                is_too_large: true,
                ..Self::default()
            };
        }
    }

    fn shared(&mut self, labels: &Labels) -> Labels {
        if labels.is_empty() {
            return Labels::default();
        }
        if let Some(known) = self.labels.get(labels) {
            return known.clone();
        }
        self.bytes += labels.bytes() + LABELS_BYTES * (1 + labels.iter().count());
        self.labels.insert(labels.clone());
        labels.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::append_event;
    use taskledger_clock::ManualClock;
    use taskledger_domain::flow::{LabelsChanged, TaskProgressed, TaskRenamed};
    use taskledger_domain::task::Progress;
    use taskledger_domain::testing::{START, given, group, id};
    use taskledger_log::memory::MemoryStore;

    fn store() -> Arc<MemoryStore> {
        Arc::new(MemoryStore::new(Arc::new(ManualClock::at(START))))
    }

    /// A flow of one task called `task`, with these labels.
    fn created(labels: &str) -> Event {
        let mut task = group("task");
        task.labels = serde_json::from_str(labels).expect("labels");
        let history = given(vec![task]).history;
        history.into_iter().next().expect("one task").1
    }

    fn moved() -> Event {
        Event::TaskProgressed(TaskProgressed {
            task_id: id("task"),
            attempt: 1,
            progress: Progress::ZERO,
            message: None,
            remarks: None,
        })
    }

    fn renamed(name: &str) -> Event {
        Event::TaskRenamed(TaskRenamed {
            task_id: id("task"),
            name: name.to_owned(),
        })
    }

    async fn log(store: &MemoryStore) -> Vec<Arc<Recorded>> {
        store.read_all(0, 100).await.expect("readable").events
    }

    async fn appended(events: Vec<Event>) -> (Arc<MemoryStore>, Vec<Arc<Recorded>>) {
        let store = store();
        for (version, event) in events.into_iter().enumerate() {
            append_event(&store, version as u64, event).await;
        }
        let log = log(&store).await;
        (store, log)
    }

    #[tokio::test]
    async fn what_an_event_does_not_say_is_found_in_the_log() {
        let labels = r#"{"team":"data"}"#;
        let (store, log) = appended(vec![created(labels), moved(), renamed("new"), moved()]).await;
        let descriptions = Descriptions::new(store);
        // That of the moment or a later one: the flow is read in pieces.
        for event in [&log[1], &log[3], &log[1]] {
            let told = descriptions.notices(event).await.expect("readable");
            assert_eq!(told[0].name.as_deref(), Some("new"));
            assert_eq!(told[0].labels.get("team"), Some("data"));
        }
        // A creation says what the task was created with.
        let told = descriptions.notices(&log[0]).await.expect("readable");
        assert_eq!(told[0].name.as_deref(), Some("task"));
    }

    #[tokio::test]
    async fn what_was_told_is_not_read_and_what_was_missed_is() {
        let unlabelled = Event::LabelsChanged(LabelsChanged {
            task_id: id("task"),
            labels: Labels::default(),
        });
        let (_, log) = appended(vec![created(r#"{"a":"b"}"#), moved(), unlabelled, moved()]).await;
        let empty = Descriptions::new(store());
        assert!(empty.known_notices(&log[1]).is_none());
        empty.learn(&log[0], false);
        assert!(empty.known_notices(&log[1]).is_none(), "nobody asks for it");
        empty.learn(&log[0], true);
        empty.learn(&log[1], false);
        let told = empty.known_notices(&log[1]).expect("it was told");
        assert_eq!(told[0].labels.get("a"), Some("b"));
        // One was missed.
        empty.learn(&log[3], true);
        assert!(empty.known_notices(&log[3]).is_none());
        empty.learn(&log[2], false);
        empty.learn(&log[3], false);
        let told = empty.known_notices(&log[3]).expect("it was told");
        assert!(told[0].labels.is_empty());
    }

    #[tokio::test]
    async fn memory_is_bounded_by_flow_and_in_all() {
        let mut flow = Flow::default();
        let Event::TaskCreated(mut task) = created("{}") else {
            unreachable!("it is a creation");
        };
        task.name = "x".repeat(200);
        for n in 0..u128::from(u32::MAX) {
            task.task_id.0 = uuid::Uuid::from_u128(n);
            flow.apply(&Event::TaskCreated(task.clone()));
            if flow.is_too_large {
                assert!(n > 60_000, "{n}");
                break;
            }
        }
        assert!(flow.tasks.is_empty() && flow.bytes < 1000);
        let mut known = Known::default();
        let (_, log) = appended(vec![created("{}")]).await;
        for n in 0..200_000 {
            known.take(FlowId(uuid::Uuid::from_u128(n)), &[&log[0]]);
        }
        assert!(known.bytes <= BYTES_MAX);
        assert_eq!(known.flows.len(), known.order.len());
        assert!(
            known
                .flows
                .contains_key(&FlowId(uuid::Uuid::from_u128(199_999)))
        );
    }
}
