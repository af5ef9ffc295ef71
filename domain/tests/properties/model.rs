//! The rules told a second time, naively: from events alone, with plain loops over all tasks.

// Written out, because the fuzz targets include this file from elsewhere.
#[path = "model/asking.rs"]
mod asking;
#[path = "model/checks.rs"]
mod checks;
#[path = "model/timers.rs"]
mod timers;
#[path = "model/waiting.rs"]
mod waiting;

use asking::{Asks, Follows};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use taskledger_domain::flow::{
    Event, FailureReason, Lease, RequeueReason, RunState, Specification, When,
};
use taskledger_domain::task::Status::{self, Cancelled, Completed, Failed, InProgress, Pending};
use taskledger_domain::{RunId, TaskId, Timestamp};
use timers::Timing;

/// The method whose tasks workers claim.
pub(crate) const REMOTE: &str = "far";

#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) parent: Option<TaskId>,
    pub(crate) dependencies: Vec<(TaskId, When)>,
    pub(crate) status: Status,
    pub(crate) method: Option<String>,
    pub(crate) attempt: u32,
    pub(crate) run: Option<RunId>,
    pub(crate) not_before: Timestamp,
    /// What its timers have come to in its run.
    timing: Timing,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) specification: Specification,
    pub(crate) spec_at: u64,
    /// 0 for no labels.
    pub(crate) labels_at: u64,
    /// The lease of the attempt that is under way outside the server, and when it times out.
    pub(crate) lease: Option<(Lease, Option<Timestamp>)>,
    /// What it waits for a person to answer.
    pub(crate) asks: Option<Asks>,
    /// Whether a worker had the attempt that was interrupted.
    pub(crate) is_lost: bool,
    /// An attempt, and the parts of its output.
    output: (u32, u32),
}

#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) root: TaskId,
    /// Everything that it covers, also what another run held when it began.
    pub(crate) members: BTreeSet<TaskId>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) version: u64,
    /// All ids in order of creation, deleted ones included.
    pub(crate) order: Vec<TaskId>,
    /// Live tasks.
    pub(crate) tasks: BTreeMap<TaskId, Task>,
    pub(crate) runs: HashMap<RunId, Run>,
    /// Last attempt number of every task that ever was.
    attempts: HashMap<TaskId, u32>,
    /// What active runs were told, and those that have ended.
    heard: BTreeSet<(RunId, String)>,
    /// The task whose question the event before has ended, and what follows.
    answered: Option<(TaskId, Follows)>,
}

impl Model {
    pub(crate) fn is_group(&self, id: TaskId) -> bool {
        self.tasks[&id].method.is_none()
    }

    pub(crate) fn children(&self, id: TaskId) -> Vec<TaskId> {
        let all = self.tasks.iter();
        all.filter(|(_, t)| t.parent == Some(id))
            .map(|(i, _)| *i)
            .collect()
    }

    fn ancestors(&self, id: TaskId) -> Vec<TaskId> {
        let mut list = Vec::new();
        let mut at = self.tasks[&id].parent;
        while let Some(parent) = at {
            assert!(list.len() < 60, "the tree has a cycle or is too deep");
            list.push(parent);
            at = self.tasks[&parent].parent;
        }
        list
    }

    pub(crate) fn descendants(&self, id: TaskId) -> Vec<TaskId> {
        let all = self.tasks.keys().copied();
        all.filter(|t| self.ancestors(*t).contains(&id)).collect()
    }

    fn is_satisfied(&self, (target, when): (TaskId, When)) -> bool {
        match self.tasks[&target].status {
            Completed => true,
            Failed | Cancelled => when != When::Completed,
            Pending => when == When::Always && self.is_blocked(target),
            InProgress => false,
        }
    }

    /// Pending behind something that will not do what it waits for.
    fn is_blocked(&self, id: TaskId) -> bool {
        let task = &self.tasks[&id];
        let never = |(target, when): &(TaskId, When)| match (self.tasks[target].status, when) {
            (Failed | Cancelled, When::Completed) => true,
            (Pending, When::Completed | When::Ended) => self.is_blocked(*target),
            (Failed | Cancelled, When::Ended | When::Always)
            | (Pending, When::Always)
            | (InProgress | Completed, When::Completed | When::Ended | When::Always) => false,
        };
        task.status == Pending && task.dependencies.iter().any(never)
    }

    pub(crate) fn is_ready(&self, id: TaskId) -> bool {
        let task = &self.tasks[&id];
        let run = task.run.is_some();
        run && task.status == Pending && task.dependencies.iter().all(|d| self.is_satisfied(*d))
    }

    fn deadline(&self, id: TaskId) -> Option<Timestamp> {
        let around = self.ancestors(id).into_iter().chain([id]);
        around.filter_map(|t| self.tasks[&t].deadline).min()
    }

    fn move_to(&mut self, id: TaskId, status: Status) {
        let legal = [
            (Pending, InProgress),
            (Pending, Cancelled),
            (InProgress, Completed),
            (InProgress, Failed),
            (InProgress, Cancelled),
            (Failed, Pending),
        ];
        let was = self.tasks[&id].status;
        let answered = (was, status) == (InProgress, Pending) && self.is_answered(id);
        assert!(
            answered || legal.contains(&(was, status)),
            "{id}: {was} -> {status}"
        );
        let task = self.tasks.get_mut(&id).expect("a live task");
        task.status = status;
        if status != InProgress {
            task.lease = None;
            task.asks = None;
        }
    }

    fn respecify(&mut self, id: TaskId, s: &Specification) {
        let version = self.version;
        let task = self.tasks.get_mut(&id).expect("a live task");
        (task.method, task.deadline) = (s.method.clone(), s.deadline);
        (task.specification, task.spec_at) = (s.clone(), version);
    }

    /// Takes the next event, which must be allowed.
    pub(crate) fn take(&mut self, event: &Event, now: Timestamp, known: &dyn Fn(&str) -> bool) {
        self.version += 1;
        self.check_what_follows(event);
        let mut answered = None;
        match event {
            Event::TaskCreated(e) => {
                assert_eq!(e.ordinal as usize, self.order.len());
                assert!(
                    !self.order.contains(&e.task_id),
                    "ids are never given twice"
                );
                assert_eq!(e.parent_id.is_none(), self.order.is_empty(), "one root");
                let parent_run = e.parent_id.and_then(|p| self.tasks[&p].run);
                assert_eq!(e.run_id, parent_run, "it joins the run of its parent");
                self.order.push(e.task_id);
                self.attempts.insert(e.task_id, 0);
                if let Some(run) = e.run_id {
                    let run = self.runs.get_mut(&run).expect("an active run");
                    run.members.insert(e.task_id);
                }
                self.tasks.insert(
                    e.task_id,
                    Task {
                        parent: e.parent_id,
                        dependencies: e.dependencies.iter().map(|d| (d.id, d.when)).collect(),
                        status: Pending,
                        method: e.specification.method.clone(),
                        attempt: 0,
                        run: e.run_id,
                        not_before: now,
                        timing: Timing::default(),
                        output: (0, 0),
                        deadline: e.specification.deadline,
                        specification: e.specification.clone(),
                        spec_at: self.version,
                        labels_at: if e.labels.is_empty() { 0 } else { self.version },
                        lease: None,
                        asks: None,
                        is_lost: false,
                    },
                );
            }
            Event::TaskRenamed(_) | Event::PriorityChanged(_) => {}
            Event::LabelsChanged(e) => {
                let version = self.version;
                let task = self.tasks.get_mut(&e.task_id).expect("a live task");
                let before = std::mem::take(&mut task.labels_at);
                if e.labels.is_empty() {
                    assert_ne!(before, 0, "there were none");
                } else {
                    task.labels_at = version;
                }
            }
            Event::UserChanged(e) => {
                let task = &self.tasks[&e.task_id];
                let is_under_way = |task: &Task| task.status == InProgress && task.method.is_some();
                let is_idle = || !self.tasks.values().any(is_under_way);
                assert!(task.status == Pending || (task.parent.is_none() && is_idle()));
            }
            Event::TaskMoved(e) => {
                let task = &self.tasks[&e.task_id];
                assert_eq!((task.status, task.run), (Pending, None));
                let inside = self.descendants(e.task_id);
                assert!(e.parent_id != e.task_id && !inside.contains(&e.parent_id));
                let task = self.tasks.get_mut(&e.task_id).expect("a live task");
                task.parent = Some(e.parent_id);
            }
            Event::DependenciesChanged(e) => {
                let before = &self.tasks[&e.task_id];
                assert!(matches!(before.status, Pending | Failed));
                for d in &e.dependencies {
                    let old = before.dependencies.iter().any(|(t, _)| *t == d.id);
                    let target = &self.tasks[&d.id];
                    let fine = before.run.is_none() || target.run == before.run;
                    assert!(old || fine || target.status == Completed);
                }
                let task = self.tasks.get_mut(&e.task_id).expect("a live task");
                task.dependencies = e.dependencies.iter().map(|d| (d.id, d.when)).collect();
            }
            Event::TaskRespecified(e) => {
                let task = &self.tasks[&e.task_id];
                assert!(matches!(task.status, Pending | Failed));
                let same = task.method.is_none() == e.specification.method.is_none();
                assert!(
                    task.run.is_none() || same,
                    "no change between group and method in a run"
                );
                self.change_timers(e.task_id, &e.specification, now);
                self.respecify(e.task_id, &e.specification);
            }
            Event::TaskDeleted(e) => {
                assert_eq!(self.tasks[&e.task_id].status, Pending);
                assert!(self.children(e.task_id).is_empty());
                self.tasks.remove(&e.task_id);
            }
            Event::RunStarted(e) => {
                let ordinals = e.covers.iter().flat_map(|(from, to)| *from..=*to);
                let members: BTreeSet<_> = ordinals.map(|i| self.order[i as usize]).collect();
                assert!(members.contains(&e.task_id));
                self.check_members(e.task_id, e.kind, &members);
                for id in &members {
                    let task = self.tasks.get_mut(id).expect("only live tasks are covered");
                    assert!(
                        task.run.is_none() || task.status == Completed,
                        "one run a task"
                    );
                    if task.run.is_none() {
                        task.run = Some(e.run_id);
                        task.not_before = now;
                        task.timing = Timing::default();
                    }
                }
                self.runs.insert(
                    e.run_id,
                    Run {
                        root: e.task_id,
                        members,
                    },
                );
            }
            Event::TaskStarted(e) => {
                assert!(
                    self.is_ready(e.task_id),
                    "started before its dependencies were done"
                );
                let task = &self.tasks[&e.task_id];
                assert_eq!(task.run, Some(e.run_id));
                assert!(self.starts_at(e.task_id) <= now, "started before its time");
                let last = self.attempts.insert(e.task_id, e.attempt);
                assert_eq!(
                    last,
                    Some(e.attempt - 1),
                    "attempt numbers rise by one, for ever"
                );
                let method = self.tasks[&e.task_id].method.as_deref();
                // What nobody has may be claimed, and fails by a start of its own.
                let nobodys = method.is_some_and(|method| !known(method));
                assert!(
                    nobodys || e.lease.is_some() == (method == Some(REMOTE)),
                    "workers begin what workers claim"
                );
                self.move_to(e.task_id, InProgress);
                let task = self.tasks.get_mut(&e.task_id).expect("a live task");
                task.attempt = e.attempt;
                task.timing.charged += 1;
                let lease = e.lease.clone();
                task.lease = lease.map(|l| (l.clone(), l.timeout_ms.map(|ms| now.plus_ms(ms))));
            }
            Event::TaskProgressed(e) => {
                let task = &self.tasks[&e.task_id];
                assert_eq!((task.status, task.attempt), (InProgress, e.attempt));
            }
            Event::TaskOutputAppended(e) => {
                let task = self.tasks.get_mut(&e.task_id).expect("a live task");
                assert_eq!((task.status, task.attempt), (InProgress, e.attempt));
                let (of, parts) = task.output;
                let before = if of == e.attempt { parts } else { 0 };
                assert_eq!(e.number, before + 1, "parts follow each other");
                task.output = (e.attempt, e.number);
            }
            Event::TaskClaimRejected(e) => {
                assert_eq!(self.tasks[&e.task_id].status, Pending);
            }
            Event::TaskCompletionRejected(e) => {
                let task = &self.tasks[&e.task_id];
                assert_eq!((task.status, task.attempt), (InProgress, e.attempt));
                assert!(
                    task.lease.is_some(),
                    "only what is said under a lease is refused"
                );
            }
            Event::TaskSuspended(_)
            | Event::TaskReminded(_)
            | Event::TaskAnswered(_)
            | Event::TaskSuspensionExpired(_) => answered = self.asks_or_is_answered(event, now),
            Event::TaskCompleted(e) => {
                assert_eq!(self.tasks[&e.task_id].attempt, e.attempt);
                let (of, parts) = self.tasks[&e.task_id].output;
                let parts = if of == e.attempt { parts } else { 0 };
                assert_eq!(e.parts, parts, "a result says how much came before it");
                if self.is_group(e.task_id) {
                    let [open, completed, failed, cancelled] = self.tally(e.task_id);
                    assert_eq!(
                        (self.awaited(e.task_id), open),
                        (0, 0),
                        "a group completes when everything below it has ended"
                    );
                    assert!(!self.is_harmed(e.task_id));
                    let result = serde_json::to_value(e.result.to_map()).expect("JSON");
                    let counts = if self.children(e.task_id).is_empty() {
                        serde_json::json!({})
                    } else {
                        serde_json::json!({"completed": completed, "failed": failed, "cancelled": cancelled})
                    };
                    assert_eq!(result, counts);
                }
                self.move_to(e.task_id, Completed);
            }
            Event::TaskFailed(e) => {
                assert!(!e.error.is_empty());
                assert_eq!(self.tasks[&e.task_id].attempt, e.attempt);
                match e.reason {
                    FailureReason::Group => {
                        let run = self.tasks[&e.task_id].run.expect("in a run");
                        let ended = self.awaited(e.task_id) == 0;
                        let bad = self.is_harmed(e.task_id) || self.tally(e.task_id)[0] > 0;
                        assert!(
                            ended && bad || self.is_still(run),
                            "a group fails too early"
                        );
                    }
                    FailureReason::ExecutorNotFound => {
                        let method = self.tasks[&e.task_id].method.as_deref();
                        assert!(!known(method.expect("a task with a method")));
                    }
                    FailureReason::Deadline => assert!(self.deadline(e.task_id) <= Some(now)),
                    FailureReason::Interrupted => {
                        let lease = self.tasks[&e.task_id].lease.as_ref();
                        let is_lost = lease.is_some();
                        let task = self.tasks.get_mut(&e.task_id).expect("a live task");
                        task.is_lost = is_lost;
                    }
                    FailureReason::NotRetryable => {
                        assert!(!e.will_retry && self.tasks[&e.task_id].lease.is_some());
                    }
                    FailureReason::Rejected => assert!(!e.will_retry),
                    FailureReason::NotStarted => {
                        assert!(!e.will_retry && self.tasks[&e.task_id].lease.is_none());
                    }
                    FailureReason::Unanswered | FailureReason::Declined => {
                        assert!(!e.will_retry && self.is_answered(e.task_id));
                    }
                    FailureReason::Released => {
                        assert!(e.will_retry && self.tasks[&e.task_id].lease.is_some());
                    }
                    FailureReason::Executor
                    | FailureReason::Timeout
                    | FailureReason::InvalidInputs
                    | FailureReason::InvalidResult => {}
                }
                self.move_to(e.task_id, Failed);
            }
            Event::TaskRequeued(e) => {
                assert_eq!(self.tasks[&e.task_id].run, Some(e.run_id));
                let rests = match e.reason {
                    RequeueReason::Retry => true,
                    RequeueReason::Interrupted => self.tasks[&e.task_id].is_lost,
                    RequeueReason::Released | RequeueReason::Rerun | RequeueReason::Answered => {
                        false
                    }
                };
                assert_eq!(e.next_attempt_at.is_some(), rests);
                if self.tasks[&e.task_id].status == Completed {
                    assert_eq!(e.reason, RequeueReason::Rerun);
                    assert!(self.may_run_again(e.task_id), "only steps that clean up");
                    let task = self.tasks.get_mut(&e.task_id).expect("a live task");
                    task.status = Failed;
                }
                self.move_to(e.task_id, Pending);
                let task = self.tasks.get_mut(&e.task_id).expect("a live task");
                task.not_before = e.next_attempt_at.unwrap_or(now);
                task.timing.requeued(e.reason);
            }
            Event::TaskDeferred(e) => self.defer(e, now),
            Event::TaskCancelled(e) => {
                assert!(!e.error.is_empty());
                let task = &self.tasks[&e.task_id];
                let attempt = (task.status == InProgress).then_some(task.attempt);
                assert_eq!(e.attempt, attempt);
                self.move_to(e.task_id, Cancelled);
            }
            Event::RunEnded(e) => {
                assert!(
                    self.is_still(e.run_id),
                    "a run ends while something may move"
                );
                let held = self.held(e.run_id);
                let open = held.iter().any(|t| self.tasks[t].status == InProgress);
                assert!(!open, "a run ends with open groups");
                let run = self.runs.remove(&e.run_id).expect("an active run");
                assert_eq!(run.root, e.task_id);
                self.check_verdict(&run, e.state, &held);
                let count = |s| {
                    let live = run.members.iter().filter_map(|m| self.tasks.get(m));
                    let runs = live.filter(|t| t.method.is_some());
                    runs.filter(|t| t.status == s).count() as u32
                };
                let c = e.counts;
                let counted = [c.pending, c.in_progress, c.completed, c.failed, c.cancelled];
                assert_eq!(counted, Status::ALL.map(count));
                for id in held {
                    self.tasks.get_mut(&id).expect("a live task").run = None;
                }
            }
            Event::MessageReceived(e) => {
                assert!(
                    self.runs.contains_key(&e.run_id),
                    "it is said to a run that is on"
                );
                assert!(
                    self.heard.insert((e.run_id, e.body_hash.clone())),
                    "said once"
                );
                let waits = |t: &Task| t.asks.as_ref().map(|asks| asks.suspension);
                assert!(
                    self.tasks
                        .values()
                        .any(|t| t.run == Some(e.run_id) && waits(t) == e.suspension_id),
                    "a task of the run waits for it"
                );
            }
            Event::FlowArchived(_) => panic!("nobody archives here"),
        }
        self.answered = answered;
    }
}
