//! A flow, a server, a clock and the model, moved together.

#[path = "world/asking.rs"]
mod asking;

#[path = "world/equal.rs"]
mod equal;

#[path = "world/leasing.rs"]
mod leasing;

use super::model::{Model, REMOTE};
use super::outside::KeptOutside;
use super::steps::{Draft, Step};
use hashbrown::HashSet;
use std::collections::BTreeMap;
use taskledger_domain::codec::{self, snapshot};
use taskledger_domain::contract::OutputFault;
use taskledger_domain::flow::{
    Append, CancelRun, Capacity, Claimable, Command, Dependency, Done, Event, Execute,
    FailureReason, Flow, Handover, Include, OutputPart, RunKind, Update, When,
};
use taskledger_domain::task::Status::InProgress;
use taskledger_domain::task::call::NewTask;
use taskledger_domain::task::spec::{Params, Schemas, Updates};
use taskledger_domain::task::{Labels, Priority, Progress};
use taskledger_domain::testing::{START, Server, group, id, run};
use taskledger_domain::{LeaseId, Payload, TaskId, Timestamp, schedule};

pub(crate) struct World {
    flow: Flow,
    /// The same, built from events alone.
    replica: Flow,
    model: Model,
    server: Server,
    slots: usize,
    now: Timestamp,
    history: Vec<(Timestamp, Event)>,
    created: usize,
    runs: usize,
    claims: usize,
    questions: usize,
    outside: KeptOutside,
}

impl Default for World {
    fn default() -> Self {
        Self {
            flow: Flow::default(),
            replica: Flow::default(),
            model: Model::default(),
            server: Server {
                remote: [REMOTE.to_owned()].into_iter().collect(),
                ..Server::default()
            },
            slots: 3,
            now: START,
            history: Vec::new(),
            created: 0,
            runs: 0,
            claims: 0,
            questions: 0,
            outside: KeptOutside::default(),
        }
    }
}

/// Tasks of a flow at most, so that the naive model stays fast.
const TASKS_MAX: usize = 24;

impl World {
    pub(crate) fn take(&mut self, step: &Step) {
        if let Step::Slots(n) = step {
            self.slots = usize::from(*n);
        } else if let Step::Ghost(true) = step {
            self.server.executors.insert("ghost".to_owned(), true);
        } else if let Step::Ghost(false) = step {
            self.server.executors.remove("ghost");
        } else if let Step::Wait(ms) = step {
            self.now = self.now.plus_ms(u64::from(*ms) * 100);
            self.give(&Command::Wake);
        } else if let Some(command) = self.command(step) {
            self.give(&command);
        }
    }

    /// One of all tasks that ever were.
    fn any(&self, pick: u8) -> Option<TaskId> {
        let n = self.model.order.len();
        self.model.order.get(usize::from(pick) % n.max(1)).copied()
    }

    fn running(&self) -> Vec<(TaskId, u32)> {
        let all = self.model.tasks.iter();
        all.filter(|(_, t)| t.status == InProgress && t.method.is_some() && t.asks.is_none())
            .map(|(i, t)| (*i, t.attempt))
            .collect()
    }

    /// A running attempt, or a wrong one.
    fn attempt(&self, pick: u8, stale: bool) -> Option<(TaskId, u32)> {
        let running = self.running();
        if stale {
            let task = self.any(pick)?;
            return Some((task, u32::from(pick % 5)));
        }
        running
            .get(usize::from(pick) % running.len().max(1))
            .copied()
    }

    fn command(&mut self, step: &Step) -> Option<Command> {
        Some(match step {
            Step::Create(drafts) => Command::Create(self.drafted(drafts)?),
            Step::Execute {
                task,
                unknown,
                wait,
                retry,
            } => {
                self.runs += 1;
                Command::Execute(Execute {
                    create: Vec::new(),
                    task: self.any(*task)?,
                    kind: if *retry {
                        RunKind::Retry
                    } else {
                        RunKind::Execute
                    },
                    include: Include::Needed,
                    run_id: run(&format!("run {}", self.runs)),
                    allow_unknown_executors: *unknown,
                    executor_wait_ms: u64::from(*wait) * 100,
                    wait_bounds: Default::default(),
                    callback: None,
                    origin: None,
                })
            }
            Step::Rename(t) => self.update(*t, |u| u.updates.name = Some("new".to_owned()))?,
            Step::Relabel(t, n) => {
                let labels = (0..*n).map(|i| (format!("k{i}"), n.to_string()));
                let labels = Labels::from(labels.collect::<BTreeMap<_, _>>());
                self.update(*t, |u| u.updates.labels = Some(labels))?
            }
            Step::Reprioritize(t, p) => {
                self.update(*t, |u| u.updates.priority = Priority::new(*p))?
            }
            Step::Rewire(t, d) => {
                let list = self.dependencies(d, &[]);
                self.update(*t, |u| u.dependencies = Some(list))?
            }
            Step::Move(t, p) => {
                let parent = self.any(*p);
                self.update(*t, |u| u.parent = Some(parent))?
            }
            Step::ChangeUser(t, n) => {
                let user = (n % 3 > 0).then(|| format!("user {n}"));
                self.update(*t, |u| {
                    u.updates.user_id = Some(user);
                    u.handover = match n {
                        0..3 => Handover::WhilePending,
                        _ => Handover::WhileIdle,
                    };
                })?
            }
            Step::ChangeKind(t, kind) => {
                let schemas = method(*kind).map(|m| Schemas {
                    raw: Payload::parse(&format!(r#"{{"method":"{m}"}}"#)).expect("JSON"),
                    method: m.to_owned(),
                    remote: false,
                });
                self.update(*t, |u| u.updates.schemas = Some(schemas))?
            }
            Step::ChangeDeadline(t, d) => {
                let params = Params {
                    raw: Payload::empty(),
                    retry: None,
                    timeout_ms: d.filter(|n| n % 3 == 0).map(|n| u64::from(n) * 50),
                    deadline: d.map(|n| START.plus_ms(u64::from(n) * 100)),
                    start_within_ms: None,
                    cancel_grace_ms: None,
                    delay_ms: None,
                };
                self.update(*t, |u| u.updates.params = Some(Some(params)))?
            }
            Step::ChangeTimer(t, n) => {
                let (start_at, delay_ms) = timer(*n);
                let params = Params {
                    raw: Payload::empty(),
                    delay_ms,
                    retry: None,
                    timeout_ms: None,
                    deadline: None,
                    start_within_ms: None,
                    cancel_grace_ms: None,
                };
                self.update(*t, |u| {
                    u.updates.start_at = Some(start_at);
                    u.updates.params = Some(Some(params));
                })?
            }
            Step::Delete(t, cascade) => Command::Delete {
                task: self.any(*t)?,
                cascade: *cascade,
            },
            Step::Cancel(t, cascade) => Command::Cancel {
                task: self.any(*t)?,
                cascade: *cascade,
                reason: None,
            },
            Step::Complete(t, stale) => {
                let (task, attempt) = self.attempt(*t, *stale)?;
                Command::Complete {
                    task,
                    attempt,
                    result: Payload::empty(),
                    lease: self.lease(task),
                }
            }
            Step::Fail(t, stale, reason) => {
                let (task, attempt) = self.attempt(*t, *stale)?;
                let reasons = [
                    FailureReason::Executor,
                    FailureReason::Timeout,
                    FailureReason::InvalidInputs,
                    FailureReason::InvalidResult,
                ];
                let reason = reasons[usize::from(*reason) % reasons.len()];
                let error = String::new();
                Command::Fail {
                    task,
                    attempt,
                    error,
                    reason,
                    progress: Progress::ZERO,
                    lease: self.lease(task),
                    retry_after_ms: 0,
                }
            }
            Step::Report(t, stale, p) => {
                let (task, attempt) = self.attempt(*t, *stale)?;
                let progress = Progress::from_millionths(u32::from(*p) * 4000);
                Command::Report {
                    task,
                    attempt,
                    progress,
                    message: None,
                    lease: self.lease(task),
                }
            }
            Step::Append(t, stale, n) => {
                let (task, attempt) = self.attempt(*t, *stale)?;
                Command::Append(Append {
                    task,
                    attempt,
                    lease: self.lease(task),
                    number: 1 + u32::from(*n),
                    part: OutputPart::Text("more".to_owned()),
                })
            }
            Step::Reject(t, stale, k) => {
                let (task, attempt) = self.attempt(*t, *stale)?;
                Command::RejectCompletion {
                    task,
                    attempt,
                    lease: self.lease(task)?,
                    fault: OutputFault {
                        missing: vec![format!("key {k}")],
                        mismatches: Vec::new(),
                        too_large: None,
                    },
                    phase_name: None,
                }
            }
            Step::Ask(t, stale, kind) => {
                let attempt = self.attempt(*t, *stale)?;
                self.ask(attempt, *kind)
            }
            Step::Answer(t, wrong, then) => self.answer_one(*t, *wrong, *then)?,
            Step::Say(t, wrong, then) => self.say(*t, *wrong, *then)?,
            Step::CancelRun(t) => Command::CancelRun(CancelRun {
                run: self.run_of(self.any(*t)?),
                reason: None,
            }),
            Step::Claim(_, Some(many)) => {
                let method = REMOTE.to_owned();
                let next = Claimable::Next {
                    method,
                    until: None,
                };
                self.claim(next, usize::from(*many))
            }
            Step::Claim(t, None) => {
                let ready = self.claimable();
                let one = ready.get(usize::from(*t) % ready.len().max(1)).copied();
                // Also what cannot be claimed.
                let task = one.filter(|_| t % 8 > 0).or_else(|| self.any(*t))?;
                self.claim(Claimable::Task(task), 1)
            }
            Step::Release(t, wrong) => {
                let (task, attempt) = self.attempt(*t, false)?;
                let lease = self.lease(task).filter(|_| !wrong);
                let lease = lease.unwrap_or(LeaseId(id("wrong").0));
                Command::Release {
                    task,
                    attempt,
                    lease,
                }
            }
            Step::EndLease(t, wrong) => {
                let (task, attempt) = self.attempt(*t, false)?;
                let lease = self.lease(task).filter(|_| !wrong);
                Command::EndLease {
                    task,
                    attempt,
                    lease: lease.unwrap_or(LeaseId(id("wrong").0)),
                    // Its worker may have said another time than it was claimed for; some come too soon.
                    expired_at: self.now.plus_ms(u64::from(t % 4 == 3)),
                }
            }
            Step::Recover(mask) => {
                let running = self.running().into_iter().enumerate();
                let alive = running
                    .filter(|(i, _)| mask >> (i % 8) & 1 == 1)
                    .map(|(_, a)| a);
                Command::Recover {
                    alive: alive.collect::<HashSet<_>>(),
                }
            }
            Step::Wait(_) | Step::Slots(_) | Step::Ghost(_) => return None,
        })
    }

    fn update(&self, pick: u8, change: impl FnOnce(&mut Update)) -> Option<Command> {
        let task = self.any(pick)?;
        let known = self.model.tasks.get(&task);
        let mut update = Update {
            task,
            updates: Updates::default(),
            dependencies: None,
            parent: None,
            current: known.map(|t| (t.spec_at, t.specification.clone())),
            looked: None,
            handover: Handover::default(),
        };
        change(&mut update);
        Some(Command::Update(update))
    }

    fn dependencies(&self, picks: &[(u8, bool)], new: &[TaskId]) -> Vec<Dependency> {
        let all: Vec<TaskId> = self.model.tasks.keys().chain(new).copied().collect();
        let mut list: Vec<Dependency> = Vec::new();
        for (pick, required) in picks.iter().filter(|_| !all.is_empty()) {
            let id = all[usize::from(*pick) % all.len()];
            if list.iter().all(|d| d.id != id) {
                list.push(Dependency {
                    id,
                    when: match (*required, *pick) {
                        // Of seven, one.
                        (_, 218..) => When::Always,
                        (required, _) => When::required(required),
                    },
                });
            }
        }
        list
    }

    fn drafted(&mut self, drafts: &[Draft]) -> Option<Vec<NewTask>> {
        let room = TASKS_MAX.saturating_sub(self.model.order.len());
        let drafts = &drafts[..drafts.len().min(room)];
        let names: Vec<String> = (0..drafts.len())
            .map(|k| format!("t{}", self.created + k))
            .collect();
        let ids: Vec<TaskId> = names.iter().map(|n| id(n)).collect();
        self.created += drafts.len();
        let live: Vec<TaskId> = self.model.tasks.keys().copied().collect();
        let mut tasks = Vec::new();
        for (k, draft) in drafts.iter().enumerate() {
            let parents: Vec<TaskId> = live.iter().chain(&ids[..k]).copied().collect();
            let mut task = group(&names[k]);
            if !self.model.order.is_empty() || k > 0 {
                task.parent = Some(*parents.get(usize::from(draft.parent) % parents.len().max(1))?);
            }
            if let Some(m) = method(draft.kind) {
                task = task.method(m);
            }
            if let Some(n) = draft.deadline {
                task = task.deadline_ms(u64::from(n) * 100);
            }
            let timer = timer(draft.timer);
            (task.specification.start_at, task.specification.delay_ms) = timer;
            if draft.attempts > 1 {
                task = task.attempts(u32::from(draft.attempts), u64::from(draft.attempts) * 150);
            }
            task.dependencies = self.dependencies(&draft.dependencies, &ids);
            // Mostly backwards, so that most calls have no cycle.
            if draft.parent % 4 != 0 {
                task.dependencies.retain(|d| !ids[k..].contains(&d.id));
            }
            if draft.parent % 5 == 0 {
                let label = ("k".to_owned(), draft.parent.to_string());
                task.labels = Labels::from(BTreeMap::from([label]));
            }
            tasks.push(task.priority(draft.priority));
        }
        (!tasks.is_empty()).then_some(tasks)
    }

    fn give(&mut self, command: &Command) {
        self.server.slots = self.slots.saturating_sub(self.running().len());
        let before = self.flow.clone();
        let answer = self.flow.handle(command, self.now, &mut self.server);
        let (server, now) = (&self.server, self.now);
        let known = |m: &str| server.knows(m);
        match answer {
            Err(refusal) => {
                assert_eq!(before, self.flow, "{refusal:?} changed the state");
            }
            Ok((events, done)) => {
                let kept = self.kept_by(command);
                for event in &events {
                    self.model.take(event, now, &known);
                    self.replica.apply(event, now);
                    let stored = codec::encode(event);
                    let read = codec::decode(stored.kind, stored.schema_version, &stored.data);
                    assert_eq!(&read.expect("an event can be read again"), event);
                }
                if let Some((task, lease)) = kept {
                    assert_eq!(self.lease(task), lease, "a lease ended too soon");
                }
                self.replica.settle_indexes();
                self.history.extend(events.into_iter().map(|e| (now, e)));
                self.model.check_rest(now, self.server.slots, &known);
                self.check_equal();
                let (flow, server) = (&mut self.flow, &self.server);
                self.outside.check(flow, self.now, server);
                if done == Done::ClaimRefused {
                    self.refuse(command);
                }
            }
        }
    }
}

fn method(kind: u8) -> Option<&'static str> {
    match kind {
        0..=3 => None,
        4..=8 => Some("echo"),
        9 => Some("once"),
        10 => Some("ghost"),
        _ => Some(REMOTE),
    }
}

/// `start_at` and a delay.
fn timer(n: Option<u8>) -> (Option<Timestamp>, Option<u64>) {
    let ms = n.map(|n| u64::from(n) * 100);
    let start_at = ms
        .filter(|ms| ms / 100 % 3 != 1)
        .map(|ms| START.plus_ms(ms));
    let delay_ms = ms.filter(|ms| ms / 100 % 3 != 0 && *ms > 0);
    (start_at, delay_ms)
}
