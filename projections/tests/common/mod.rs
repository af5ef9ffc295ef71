//! Histories for tests: a small flow engine that only makes sequences that a log could hold, and
//! keeps a naive picture of what reads should show.
#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test file uses a part of it"
)]

mod asking;
mod counting;

pub use counting::count_mut;
use counting::recount;

pub use taskledger_testkit::ground::{Engine, Ground, empty, fed};

use std::collections::BTreeMap;
use std::sync::Arc;
use taskledger_domain::flow::*;
use taskledger_domain::task::{Labels, Priority, Progress, Status};
use taskledger_domain::{
    EventId, FlowId, Metadata, Payload, Position, Recorded, RunId, TaskId, Timestamp,
};
use taskledger_projections::TaskRow;
use uuid::Uuid;

/// A deterministic source of choices.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % n.max(1) as u64) as usize
    }
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> Option<T> {
        (!items.is_empty()).then(|| items[self.below(items.len())])
    }
}

pub fn uuid(n: u64) -> Uuid {
    // Spread, so that the order of ids is not the order of creation.
    let spread = u128::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834);
    uuid::Builder::from_random_bytes(spread.to_be_bytes()).into_uuid()
}

pub fn task(n: u64) -> TaskId {
    TaskId(uuid(n))
}

/// A log with what it means.
pub struct World {
    pub dice: Dice,
    pub log: Vec<Arc<Recorded>>,
    pub live: BTreeMap<Position, TaskRow>,
    pub runs: Vec<(RunId, TaskId, FlowId, bool)>,
    next_id: u64,
    pub now: i64,
}

pub const START: i64 = 1_700_000_000_000_000;

impl World {
    pub fn new(seed: u64) -> Self {
        Self {
            dice: Dice::new(seed),
            log: Vec::new(),
            live: BTreeMap::new(),
            runs: Vec::new(),
            next_id: 1,
            now: START,
        }
    }

    pub fn fresh(&mut self) -> Uuid {
        self.next_id += 1;
        uuid(self.next_id)
    }

    pub fn push(&mut self, flow: FlowId, event: Event) -> Arc<Recorded> {
        let position = self.log.len() as u64 + 1;
        let recorded = Arc::new(Recorded {
            position,
            flow,
            version: position,
            id: EventId(uuid(1_000_000_000 + position)),
            time: Timestamp(self.now),
            recorded_at: Timestamp(self.now),
            metadata: Metadata {
                actor: "test".into(),
                correlation: "test".into(),
                causation: None,
                trace: None,
            },
            event: Arc::new(event),
        });
        if let Some(mut row) = TaskRow::created(&recorded) {
            if !row.is_root() {
                row.owner = self.owner_of(flow);
            }
            self.live.insert(position, row);
        } else {
            let mut gone = None;
            for (key, row) in &mut self.live {
                if row.apply(&recorded) == taskledger_projections::Change::Deleted {
                    gone = Some(*key);
                }
            }
            if let Some(key) = gone {
                self.live.remove(&key);
            }
        }
        recount(&mut self.live);
        self.log.push(Arc::clone(&recorded));
        recorded
    }

    /// The user of the flow's root, now.
    pub fn owner_of(&self, flow: FlowId) -> Option<Arc<str>> {
        let mut rows = self.live.values();
        rows.find(|row| row.id == flow.root())?.user_id.clone()
    }

    /// Appends without keeping the naive picture: for large logs.
    pub fn push_quick(&mut self, flow: FlowId, event: Event) {
        let position = self.log.len() as u64 + 1;
        self.log.push(Arc::new(Recorded {
            position,
            flow,
            version: position,
            id: EventId(uuid(1_000_000_000 + position)),
            time: Timestamp(self.now),
            recorded_at: Timestamp(self.now),
            metadata: Metadata {
                actor: "test".into(),
                correlation: "test".into(),
                causation: None,
                trace: None,
            },
            event: Arc::new(event),
        }));
    }

    pub fn created(
        &mut self,
        parent: Option<&TaskRow>,
        group: bool,
        dependencies: Vec<Dependency>,
    ) -> (FlowId, Event) {
        let id = TaskId(self.fresh());
        let flow = parent.map_or(id.as_flow(), |p| p.flow_id);
        let ordinal = self
            .log
            .iter()
            .filter(|r| r.flow == flow && matches!(*r.event, Event::TaskCreated(_)))
            .count() as u32;
        let user = [None, Some("ann"), Some("bob"), Some("e\0\u{1}ve")][self.dice.below(4)];
        let name = ["fetch", "merge", "re\0port"][self.dice.below(3)];
        let run_id = parent.and_then(|p| {
            let run = p.run_id?;
            self.runs.iter().any(|r| r.0 == run && r.3).then_some(run)
        });
        let priority = Priority::ALL[self.dice.below(4)];
        let event = Event::TaskCreated(TaskCreated {
            task_id: id,
            ordinal,
            parent_id: parent.map(|p| p.id),
            name: name.to_owned(),
            user_id: user.map(str::to_owned),
            priority,
            dependencies,
            specification: self.specification(group),
            copied_from: None,
            labels: self.labels(),
            run_id,
        });
        (flow, event)
    }

    /// None for most.
    pub fn labels(&mut self) -> Labels {
        let mut labels = std::collections::BTreeMap::new();
        if self.dice.below(3) == 0 {
            labels.insert(
                "team".to_owned(),
                ["data", "ops"][self.dice.below(2)].to_owned(),
            );
        }
        if self.dice.below(4) == 0 {
            labels.insert(
                "a/stage".to_owned(),
                ["", "é"][self.dice.below(2)].to_owned(),
            );
        }
        Labels::from(labels)
    }

    pub fn specification(&mut self, group: bool) -> Specification {
        Specification {
            inputs: Payload::parse(&format!(r#"{{"n":{}}}"#, self.dice.below(1000))).unwrap(),
            schemas: (!group).then(|| Payload::parse(r#"{"method":"echo"}"#).unwrap()),
            params: (self.dice.below(3) == 0).then(|| Payload::parse(r#"{"a": [1]}"#).unwrap()),
            method: (!group).then(|| "echo".to_owned()),
            retry: None,
            timeout_ms: None,
            deadline: (self.dice.below(9) == 0).then_some(Timestamp(START * 2)),
            remote: false,
            start_within_ms: None,
            cancel_grace_ms: None,
            start_at: None,
            delay_ms: None,
        }
    }

    pub fn rows(&self, wanted: impl Fn(&TaskRow) -> bool) -> Vec<Position> {
        self.live
            .iter()
            .filter(|(_, row)| wanted(row))
            .map(|(key, _)| *key)
            .collect()
    }

    /// One more random event that could happen now.
    pub fn step(&mut self) {
        self.now += self.dice.below(400_000_000) as i64;
        let all = self.rows(|_| true);
        let chosen = self.dice.pick(&all).map(|key| self.live[&key].clone());
        let Some(row) = chosen.filter(|_| self.dice.below(10) > 0) else {
            let group = self.dice.below(2) == 0;
            let (flow, event) = self.created(None, group, Vec::new());
            self.push(flow, event);
            return;
        };
        let flow = row.flow_id;
        let siblings = self.rows(|r| r.flow_id == flow && r.id != row.id);
        match self.dice.below(14) {
            0..=3 => {
                let group = self.dice.below(3) == 0;
                let dependencies = self
                    .dice
                    .pick(&siblings)
                    .map(|key| Dependency {
                        id: self.live[&key].id,
                        when: When::required(self.dice.below(2) == 0),
                    })
                    .into_iter()
                    .collect();
                let (flow, event) = self.created(Some(&row), group, dependencies);
                self.push(flow, event);
            }
            4 => {
                let event = Event::TaskRenamed(TaskRenamed {
                    task_id: row.id,
                    name: "merge".to_owned(),
                });
                self.push(flow, event);
            }
            5 => {
                let event = match self.dice.below(4) {
                    3 => Event::LabelsChanged(LabelsChanged {
                        task_id: row.id,
                        labels: self.labels(),
                    }),
                    0 => Event::PriorityChanged(PriorityChanged {
                        task_id: row.id,
                        priority: Priority::ALL[self.dice.below(4)],
                    }),
                    1 => Event::UserChanged(UserChanged {
                        task_id: row.id,
                        user_id: Some("zoe".to_owned()),
                    }),
                    _ => Event::UserChanged(UserChanged {
                        task_id: row.id,
                        user_id: None,
                    }),
                };
                self.push(flow, event);
            }
            6 => self.move_or_edit(&row, &siblings),
            7 => {
                let has_children = self.live.values().any(|r| r.parent_id == Some(row.id));
                if row.status == Status::Pending && !has_children {
                    self.push(flow, Event::TaskDeleted(TaskDeleted { task_id: row.id }));
                }
            }
            8..=9 => self.run(&row),
            _ => self.advance(&row),
        }
    }

    fn move_or_edit(&mut self, row: &TaskRow, siblings: &[Position]) {
        let Some(other) = self.dice.pick(siblings).map(|key| self.live[&key].clone()) else {
            return;
        };
        if !row.is_root() && !self.is_below(&other, row.id) && self.dice.below(2) == 0 {
            let event = Event::TaskMoved(TaskMoved {
                task_id: row.id,
                parent_id: other.id,
            });
            self.push(row.flow_id, event);
        } else if self.dice.below(2) == 0 {
            let event = Event::DependenciesChanged(DependenciesChanged {
                task_id: row.id,
                dependencies: vec![Dependency {
                    id: other.id,
                    when: When::Completed,
                }],
            });
            self.push(row.flow_id, event);
        } else if row.status == Status::Pending {
            let group = self.dice.below(2) == 0;
            let specification = self.specification(group);
            let event = Event::TaskRespecified(TaskRespecified {
                task_id: row.id,
                specification,
                absent: Vec::new(),
            });
            self.push(row.flow_id, event);
        }
    }

    pub fn is_below(&self, row: &TaskRow, ancestor: TaskId) -> bool {
        let mut next = Some(row.id);
        while let Some(id) = next {
            if id == ancestor {
                return true;
            }
            next = self
                .live
                .values()
                .find(|r| r.id == id)
                .and_then(|r| r.parent_id);
        }
        false
    }

    /// Starts a run over the subtree of a task, or ends one.
    fn run(&mut self, row: &TaskRow) {
        let flow = row.flow_id;
        let open = self.runs.iter().position(|r| r.2 == flow && r.3);
        if let Some(i) = open {
            let (run_id, task_id, ..) = self.runs[i];
            let mut counts = StatusCounts::default();
            for r in self.live.values().filter(|r| r.run_id == Some(run_id)) {
                *count_mut(&mut counts, r.status) += 1;
            }
            self.runs[i].3 = false;
            let event = Event::RunEnded(RunEnded {
                run_id,
                task_id,
                state: RunState::Failed,
                counts,
                root: taskledger_domain::testing::root_at_end(),
                others: 0,
                rejected: false,
            });
            self.push(flow, event);
            return;
        }
        let mut ordinals: Vec<u32> = self
            .live
            .values()
            .filter(|r| r.flow_id == flow && self.is_below(r, row.id))
            .map(|r| r.ordinal)
            .collect();
        ordinals.sort_unstable();
        let mut covers: Vec<(u32, u32)> = Vec::new();
        for o in ordinals {
            match covers.last_mut() {
                Some(last) if last.1 + 1 == o => last.1 = o,
                _ => covers.push((o, o)),
            }
        }
        let run_id = RunId(self.fresh());
        self.runs.push((run_id, row.id, flow, true));
        let event = Event::RunStarted(RunStarted {
            run_id,
            task_id: row.id,
            kind: RunKind::Execute,
            covers,
            allow_unknown_executors: false,
            executor_wait_ms: 0,
            wait_bounds: Default::default(),
            callback: None,
            origin: None,
        });
        self.push(flow, event);
    }

    /// Moves a task on in its life.
    fn advance(&mut self, row: &TaskRow) {
        let (flow, task_id, attempt) = (row.flow_id, row.id, row.attempt);
        let run = row.run_id;
        let event = match (row.status, self.dice.below(5)) {
            (Status::InProgress, 0) if row.suspension.is_some() => {
                self.push(flow, asking::answered(row));
                let Some(again) = asking::again(row) else {
                    return;
                };
                again
            }
            (Status::InProgress, 1) if row.suspension.is_none() && !row.is_group() => {
                asking::suspended(row, Timestamp(self.now + 5))
            }
            (Status::Pending, 0) => Event::TaskCancelled(TaskCancelled {
                task_id,
                attempt: None,
                error: "stopped".to_owned(),
                reason: CancelReason::Requested,
                progress: Progress::ZERO,
                remarks: None,
            }),
            (Status::Pending, _) => {
                let Some(run_id) = run else { return };
                Event::TaskStarted(TaskStarted {
                    task_id,
                    attempt: attempt + 1,
                    run_id,
                    lease: None,
                })
            }
            (Status::InProgress, 1) => Event::TaskOutputAppended(TaskOutputAppended {
                task_id,
                attempt,
                number: 1 + self.dice.below(3) as u32,
                part: OutputPart::Text("more".to_owned()),
                progress: Progress::ZERO,
            }),
            (Status::InProgress, 0) => Event::TaskProgressed(TaskProgressed {
                task_id,
                attempt,
                progress: Progress::from_millionths(self.dice.below(1_000_001) as u32),
                message: None,
                remarks: None,
            }),
            (Status::InProgress, 2) => Event::TaskCompleted(TaskCompleted {
                task_id,
                attempt,
                result: Payload::parse(r#"{"ok":true}"#).unwrap(),
                remarks: None,
                parts: 0,
            }),
            (Status::InProgress, 3) => {
                let will_retry = self.dice.below(2) == 0;
                let progress = Progress::from_millionths(self.dice.below(1_000_001) as u32);
                self.push(
                    flow,
                    Event::TaskFailed(TaskFailed {
                        task_id,
                        attempt,
                        error: "bro\0ken".to_owned(),
                        reason: FailureReason::Executor,
                        progress,
                        will_retry,
                        remarks: None,
                        breach: None,
                    }),
                );
                if !will_retry {
                    return;
                }
                let Some(run_id) = run else { return };
                Event::TaskRequeued(TaskRequeued {
                    task_id,
                    run_id,
                    reason: RequeueReason::Retry,
                    next_attempt_at: Some(Timestamp(self.now + 5)),
                })
            }
            (Status::InProgress, _) => Event::TaskCancelled(TaskCancelled {
                task_id,
                attempt: Some(attempt),
                error: "stopped".to_owned(),
                reason: CancelReason::Deadline,
                progress: Progress::ZERO,
                remarks: None,
            }),
            (Status::Failed, _) => {
                let Some(run_id) = run else { return };
                Event::TaskRequeued(TaskRequeued {
                    task_id,
                    run_id,
                    reason: RequeueReason::Rerun,
                    next_attempt_at: None,
                })
            }
            (Status::Completed | Status::Cancelled, _) => return,
        };
        self.push(flow, event);
    }
}
