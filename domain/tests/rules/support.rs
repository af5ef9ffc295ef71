//! Short words for commands, calls and facts.

use serde_json::Value;
use taskledger_domain::flow::{
    Command, Dependency, Event, Execute, FailureReason, Handover, Include, Kind, Refusal,
    Rejection, RunKind, RunState, Specification, Update, When,
};
use taskledger_domain::task::call::{
    NewTask, ResolvedTasks, Unresolved, parse_create, parse_tasks,
};
use taskledger_domain::task::spec::{self, Params, Schemas, Updates};
use taskledger_domain::task::{Priority, Progress, Status};
use taskledger_domain::testing::{Scenario, id, run};
use taskledger_domain::{Payload, TaskId, Timestamp, Violation, codec};

pub(crate) fn create(tasks: Vec<NewTask>) -> Command {
    Command::Create(tasks)
}

pub(crate) fn cancel(name: &str) -> Command {
    Command::Cancel {
        task: id(name),
        cascade: false,
        reason: None,
    }
}

pub(crate) fn cancel_all(name: &str) -> Command {
    Command::Cancel {
        task: id(name),
        cascade: true,
        reason: None,
    }
}

pub(crate) fn delete(name: &str) -> Command {
    Command::Delete {
        task: id(name),
        cascade: false,
    }
}

pub(crate) fn delete_all(name: &str) -> Command {
    Command::Delete {
        task: id(name),
        cascade: true,
    }
}

pub(crate) fn complete(name: &str, attempt: u32) -> Command {
    Command::Complete {
        task: id(name),
        attempt,
        result: payload(r#"{"n":1}"#),
        lease: None,
    }
}

pub(crate) fn fail(name: &str, attempt: u32, reason: FailureReason) -> Command {
    Command::Fail {
        task: id(name),
        attempt,
        error: "boom".to_owned(),
        reason,
        progress: Progress::ZERO,
        lease: None,
        retry_after_ms: 0,
    }
}

pub(crate) fn report(name: &str, attempt: u32, fraction: f64) -> Command {
    Command::Report {
        task: id(name),
        attempt,
        progress: Progress::from(fraction),
        message: None,
        lease: None,
    }
}

/// A run with a name of its own that lets tasks wait for executors that do not exist.
pub(crate) fn execute_unknown(name: &str, run_name: &str, wait_ms: u64) -> Command {
    Command::Execute(Execute {
        create: Vec::new(),
        task: id(name),
        kind: RunKind::Execute,
        include: Include::Needed,
        run_id: run(run_name),
        allow_unknown_executors: true,
        executor_wait_ms: wait_ms,
        wait_bounds: Default::default(),
        callback: None,
        origin: None,
    })
}

/// Creates tasks and runs the first.
pub(crate) fn create_and_execute(tasks: Vec<NewTask>) -> Command {
    Command::Execute(Execute {
        task: tasks[0].id,
        create: tasks,
        kind: RunKind::Execute,
        include: Include::Needed,
        run_id: run("run"),
        allow_unknown_executors: false,
        executor_wait_ms: 0,
        wait_bounds: Default::default(),
        callback: None,
        origin: None,
    })
}

pub(crate) fn payload(text: &str) -> Payload {
    Payload::parse(text).expect("a JSON object")
}

pub(crate) fn required(names: &[&str]) -> Vec<Dependency> {
    let edge = |n: &&str| Dependency {
        id: id(n),
        when: When::Completed,
    };
    names.iter().map(edge).collect()
}

/// An update of one task, member by member.
pub(crate) struct Change(Update);

pub(crate) fn change(name: &str) -> Change {
    Change(Update {
        task: id(name),
        updates: Updates::default(),
        dependencies: None,
        parent: None,
        current: None,
        looked: None,
        handover: Handover::default(),
    })
}

impl Change {
    pub(crate) fn status(mut self, status: Status) -> Self {
        self.0.updates.status = Some(status);
        self
    }

    pub(crate) fn name(mut self, name: &str) -> Self {
        self.0.updates.name = Some(name.to_owned());
        self
    }
    pub(crate) fn priority(mut self, priority: u8) -> Self {
        self.0.updates.priority = Priority::new(priority);
        self
    }
    pub(crate) fn labels(mut self, labels: &str) -> Self {
        self.0.updates.labels = Some(serde_json::from_str(labels).expect("labels"));
        self
    }
    pub(crate) fn user(mut self, user: Option<&str>) -> Self {
        self.0.updates.user_id = Some(user.map(str::to_owned));
        self
    }
    /// Sent by somebody who may give away whatever is idle.
    pub(crate) fn while_idle(mut self) -> Self {
        self.0.handover = Handover::WhileIdle;
        self
    }
    pub(crate) fn parent(mut self, parent: Option<&str>) -> Self {
        self.0.parent = Some(parent.map(id));
        self
    }
    pub(crate) fn dependencies(mut self, names: &[&str]) -> Self {
        self.0.dependencies = Some(required(names));
        self
    }
    /// Waits for one task alone.
    pub(crate) fn dependency(mut self, name: &str, when: When) -> Self {
        let id = id(name);
        self.0.dependencies = Some(vec![Dependency { id, when }]);
        self
    }
    pub(crate) fn inputs(mut self, text: &str) -> Self {
        self.0.updates.inputs = Some(payload(text));
        self
    }
    pub(crate) fn method(mut self, method: Option<&str>) -> Self {
        self.0.updates.schemas = Some(method.map(|m| Schemas {
            raw: payload(&format!(r#"{{"method":"{m}"}}"#)),
            method: m.to_owned(),
            remote: false,
        }));
        self
    }
    pub(crate) fn deadline(mut self, deadline: Option<Timestamp>) -> Self {
        self.0.updates.params = Some(Some(Params {
            raw: Payload::empty(),
            retry: None,
            timeout_ms: None,
            deadline,
            start_within_ms: None,
            cancel_grace_ms: None,
            delay_ms: None,
        }));
        self
    }
    /// `start_at` and a delay, and nothing else in `params`.
    pub(crate) fn timers(mut self, start_at: Option<Timestamp>, delay_ms: Option<u64>) -> Self {
        self = self.deadline(None);
        if let Some(Some(params)) = &mut self.0.updates.params {
            params.delay_ms = delay_ms;
        }
        self.0.updates.start_at = Some(start_at);
        self
    }
    /// The specification as the caller read it from the flow's history.
    pub(crate) fn seen(mut self, s: &Scenario) -> Command {
        self.0.current = specification(s, self.0.task);
        Command::Update(self.0)
    }
    /// Without having read the specification.
    pub(crate) fn unseen(self) -> Command {
        Command::Update(self.0)
    }
}

fn specification(s: &Scenario, task: TaskId) -> Option<(u64, Specification)> {
    let at = s.flow.task(task)?.spec_at;
    let specification = match &s.history[at as usize - 1].1 {
        Event::TaskCreated(e) => e.specification.clone(),
        Event::TaskRespecified(e) => e.specification.clone(),
        other => panic!("{other:?} holds no specification"),
    };
    Some((at, specification))
}

/// Applies an update with the specification read just before.
pub(crate) fn updating(s: Scenario, change: Change) -> Scenario {
    let command = change.seen(&s);
    s.when(command)
}

/// Kinds of the events of the latest command, with the names of their tasks among `names`.
pub(crate) fn facts<'a>(s: &Scenario, names: &[&'a str]) -> Vec<(&'static str, &'a str)> {
    let (events, _) = s.last.as_ref().expect("accepted");
    let name = |e: &Event| {
        let task = e.task_id()?;
        names.iter().copied().find(|n| id(n) == task)
    };
    events
        .iter()
        .filter_map(|e| Some((codec::kind(e), name(e)?)))
        .collect()
}

/// Tasks that the latest command started, in order.
pub(crate) fn starts<'a>(s: &Scenario, names: &[&'a str]) -> Vec<&'a str> {
    let all = facts(s, names).into_iter();
    all.filter(|(kind, _)| *kind == "TaskStarted")
        .map(|(_, name)| name)
        .collect()
}

/// The text of `error` of the task's latest failure or cancellation.
pub(crate) fn error_of(s: &Scenario, name: &str) -> String {
    let found = s.history.iter().rev().find_map(|(_, e)| match e {
        Event::TaskFailed(e) if e.task_id == id(name) => Some(e.error.clone()),
        Event::TaskCancelled(e) if e.task_id == id(name) => Some(e.error.clone()),
        _ => None,
    });
    found.expect("the task failed or was cancelled")
}

/// The result of the task's latest completion.
pub(crate) fn result_of(s: &Scenario, name: &str) -> Value {
    let found = s.history.iter().rev().find_map(|(_, e)| match e {
        Event::TaskCompleted(e) if e.task_id == id(name) => Some(e.result.as_str().to_owned()),
        _ => None,
    });
    serde_json::from_str(&found.expect("the task completed")).expect("JSON")
}

/// The verdict of the latest run that ended.
pub(crate) fn verdict(s: &Scenario) -> RunState {
    let found = s.history.iter().rev().find_map(|(_, e)| match e {
        Event::RunEnded(e) => Some(e.state),
        _ => None,
    });
    found.expect("a run ended")
}

/// Why the latest command was refused.
pub(crate) fn refusal(s: &Scenario) -> &Refusal {
    match s.last.as_ref().expect_err("refused") {
        Rejection::Refused(refusals) => &refusals.first,
        Rejection::Outdated(what) => panic!("outdated: {what:?}"),
    }
}

/// The family of the refusal of the latest command; `None` when it was accepted.
pub(crate) fn refused_kind(s: &Scenario) -> Option<Kind> {
    s.last.is_err().then(|| refusal(s).kind())
}

/// The cycle that a refusal tells.
pub(crate) fn cycle(refusal: &Refusal) -> &[TaskId] {
    match refusal {
        Refusal::CircularDependency { cycle, .. } => cycle,
        other => panic!("no cycle: {other:?}"),
    }
}

/// The n-th id that [`resolved`] mints.
pub(crate) fn minted(n: usize) -> TaskId {
    id(&format!("minted {n}"))
}

fn resolve(list: taskledger_domain::task::call::TaskList) -> Result<ResolvedTasks, Refusal> {
    let mut n = 0;
    let resolved = list.resolve(|_| {
        n += 1;
        minted(n - 1)
    });
    resolved.map_err(Unresolved::first)
}

/// `tasks.create` with these parameters; its own faults must be none.
pub(crate) fn resolved(params: Value) -> Result<ResolvedTasks, Refusal> {
    resolve(parse_create(params.as_object().expect("an object")).expect("each task is valid"))
}

/// The member `tasks` of `tasks.execute`; its own faults must be none.
pub(crate) fn resolved_tasks(tasks: Value) -> Result<ResolvedTasks, Refusal> {
    resolve(parse_tasks(&tasks).expect("each task is valid"))
}

/// Faults of the parameters of `tasks.create`.
pub(crate) fn faults(params: Value) -> Vec<Violation> {
    parse_create(params.as_object().expect("an object"))
        .err()
        .unwrap_or_default()
}

/// Faults of `updates`.
pub(crate) fn update_faults(updates: Value) -> Vec<Violation> {
    spec::updates(updates.as_object().expect("an object"))
        .err()
        .unwrap_or_default()
}

/// Fields of faults, in order.
pub(crate) fn fields(faults: &[Violation]) -> Vec<&str> {
    faults.iter().map(|f| f.field.as_str()).collect()
}

/// A path as text: `tasks/1/name`.
pub(crate) fn path(fault: &Violation) -> String {
    let steps = serde_json::to_value(&fault.path).expect("JSON");
    let steps = steps.as_array().expect("a list").iter();
    let texts: Vec<_> = steps
        .map(|s| s.as_str().map_or_else(|| s.to_string(), str::to_owned))
        .collect();
    texts.join("/")
}
