//! given / when / then: tests of the rules that read like the specification.
//!
//! Tasks are named by short texts; [`id`] turns a text into the task id that it stands for.

pub mod hostile;

use crate::flow::{
    Capacity, Command, Dependency, Done, Event, Execute, FailureReason, Flow, Include, Kind,
    Outdated, Rejection, RootAtEnd, RunKind, SlotRequest, Specification, When,
};
use crate::task::call::NewTask;
use crate::task::{Labels, Priority, Progress, RetryPolicy, Status};
use crate::{Payload, RunId, TaskId, Timestamp};
use hashbrown::{HashMap, HashSet};
use uuid::Builder;

/// When every scenario begins.
pub const START: Timestamp = Timestamp(1_700_000_000_000_000);

/// The id that a short text stands for: always the same UUID v4.
#[must_use]
pub fn id(name: &str) -> TaskId {
    let mut bytes = [0_u8; 16];
    // FNV-1a, twice with different seeds: enough to keep the few names of a test apart.
    for (half, seed) in [(0, 0xcbf2_9ce4_8422_2325_u64), (8, 0x9e37_79b9_7f4a_7c15)] {
        let hash = name.bytes().fold(seed, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
        });
        bytes[half..half + 8].copy_from_slice(&hash.to_be_bytes());
    }
    TaskId(Builder::from_random_bytes(bytes).into_uuid())
}

/// The run with this name.
#[must_use]
pub fn run(name: &str) -> RunId {
    RunId(id(name).0)
}

/// The state of a root that has completed in its run.
#[must_use]
pub const fn root_at_end() -> RootAtEnd {
    RootAtEnd {
        status: Status::Completed,
        progress: Progress::DONE,
    }
}

/// A group with this name, without a parent.
#[must_use]
pub fn group(name: &str) -> NewTask {
    NewTask {
        id: id(name),
        parent: None,
        name: name.to_owned(),
        user_id: None,
        priority: Priority::NORMAL,
        dependencies: Vec::new(),
        specification: Specification {
            inputs: Payload::empty(),
            schemas: None,
            params: None,
            method: None,
            retry: None,
            timeout_ms: None,
            deadline: None,
            remote: false,
            start_within_ms: None,
            cancel_grace_ms: None,
            start_at: None,
            delay_ms: None,
        },
        copied_from: None,
        labels: Labels::default(),
    }
}

/// A task with this name that runs the executor `echo`, without a parent.
#[must_use]
pub fn task(name: &str) -> NewTask {
    group(name).method("echo")
}

impl NewTask {
    /// Below this task.
    #[must_use]
    pub fn under(mut self, parent: &str) -> Self {
        self.parent = Some(id(parent));
        self
    }

    /// Run by this executor.
    #[must_use]
    pub fn method(mut self, method: &str) -> Self {
        let schemas = serde_json::json!({ "method": method });
        self.specification.schemas = schemas.as_object().map(Payload::from_map);
        self.specification.method = Some(method.to_owned());
        self
    }

    /// Waits for these tasks to complete.
    #[must_use]
    pub fn after(mut self, names: &[&str]) -> Self {
        self.dependencies.extend(names.iter().map(|n| Dependency {
            id: id(n),
            when: When::Completed,
        }));
        self
    }

    /// Waits for these tasks to end in any way.
    #[must_use]
    pub fn after_any(mut self, names: &[&str]) -> Self {
        self.dependencies.extend(names.iter().map(|n| Dependency {
            id: id(n),
            when: When::Ended,
        }));
        self
    }

    /// Waits until these tasks have ended or can no longer run.
    #[must_use]
    pub fn after_always(mut self, names: &[&str]) -> Self {
        self.dependencies.extend(names.iter().map(|n| Dependency {
            id: id(n),
            when: When::Always,
        }));
        self
    }

    /// With this urgency, 0 to 3.
    #[must_use]
    pub fn priority(mut self, priority: u8) -> Self {
        self.priority = Priority::new(priority).expect("0 to 3");
        self
    }

    /// With this user.
    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        self.user_id = Some(user.to_owned());
        self
    }

    /// To end within so many milliseconds of [`START`].
    #[must_use]
    pub fn deadline_ms(mut self, ms: u64) -> Self {
        self.specification.deadline = Some(START.plus_ms(ms));
        self
    }

    /// Carried out by workers only.
    #[must_use]
    pub fn by_workers(mut self) -> Self {
        self.specification.remote = true;
        self
    }

    /// Started not before so many milliseconds after [`START`].
    #[must_use]
    pub fn start_at_ms(mut self, ms: u64) -> Self {
        self.specification.start_at = Some(START.plus_ms(ms));
        self
    }

    /// Started so long after it is ready.
    #[must_use]
    pub fn delay_ms(mut self, ms: u64) -> Self {
        self.specification.delay_ms = Some(ms);
        self
    }

    /// Started within this time once it is ready.
    #[must_use]
    pub fn starts_within_ms(mut self, ms: u64) -> Self {
        self.specification.start_within_ms = Some(ms);
        self
    }

    /// An attempt takes no longer.
    #[must_use]
    pub fn timeout_ms(mut self, ms: u64) -> Self {
        self.specification.timeout_ms = Some(ms);
        self
    }

    /// With so many attempts, `delay_ms` apart.
    #[must_use]
    pub fn attempts(mut self, max_attempts: u32, delay_ms: u64) -> Self {
        self.specification.retry = Some(RetryPolicy {
            max_attempts,
            initial_delay_ms: delay_ms,
            multiplier: 1.0,
            max_delay_ms: delay_ms,
            jitter: 0.0,
            max_elapsed_ms: None,
        });
        self
    }
}

/// A server with the executors `echo` (idempotent) and `once` (not), and a number of slots.
#[derive(Debug, Clone)]
pub struct Server {
    /// Executors and whether they are idempotent.
    pub executors: HashMap<String, bool>,
    /// The executor behind each alias.
    pub aliases: HashMap<String, String>,
    /// Methods whose tasks workers claim.
    pub remote: HashSet<String>,
    /// Free slots.
    pub slots: usize,
    /// Starts that were granted, in order.
    pub granted: Vec<TaskId>,
}

impl Default for Server {
    fn default() -> Self {
        let executors = [("echo".to_owned(), true), ("once".to_owned(), false)]
            .into_iter()
            .collect();
        Self {
            executors,
            aliases: HashMap::new(),
            remote: HashSet::new(),
            slots: usize::MAX,
            granted: Vec::new(),
        }
    }
}

impl Capacity for Server {
    fn knows(&self, method: &str) -> bool {
        self.executors.contains_key(method) || self.is_remote(method)
    }
    fn is_remote(&self, method: &str) -> bool {
        self.remote.contains(method)
    }
    fn is_idempotent(&self, method: &str) -> bool {
        self.executors.get(method).copied().unwrap_or(false)
    }
    fn canonical_name<'a>(&'a self, method: &'a str) -> &'a str {
        self.aliases.get(method).map_or(method, String::as_str)
    }
    fn take_slot(&mut self, attempt: &SlotRequest<'_>) -> bool {
        if self.slots == 0 {
            return false;
        }
        self.slots -= 1;
        self.granted.push(attempt.task);
        true
    }
}

/// A flow, a server and a time that only moves when told to.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The flow as it is.
    pub flow: Flow,
    /// The server whose executors and limits the rules are asked about.
    pub server: Server,
    /// The time.
    pub now: Timestamp,
    /// All events so far, with their times.
    pub history: Vec<(Timestamp, Event)>,
    /// What the latest command gave.
    pub last: Result<(Vec<Event>, Done), Rejection>,
}

/// A scenario in which these tasks were created.
///
/// # Panics
/// When they cannot be created.
#[must_use]
pub fn given(tasks: Vec<NewTask>) -> Scenario {
    let scenario = Scenario {
        flow: Flow::default(),
        server: Server::default(),
        now: START,
        history: Vec::new(),
        last: Ok((Vec::new(), Done::Ok)),
    };
    if tasks.is_empty() {
        scenario
    } else {
        scenario.when(Command::Create(tasks)).accepted()
    }
}

/// The command that executes a stored task, as the run `run`.
#[must_use]
pub fn execute(name: &str) -> Command {
    start(name, RunKind::Execute, "run")
}

/// The command that retries a failed task, as the run `retry`.
#[must_use]
pub fn retry(name: &str) -> Command {
    start(name, RunKind::Retry, "retry")
}

/// The same command with all failed tasks included.
///
/// # Panics
/// On another command than one that begins a run.
#[must_use]
pub fn with_failed(command: Command) -> Command {
    let Command::Execute(execute) = command else {
        panic!("{command:?} begins no run");
    };
    Command::Execute(Execute {
        include: Include::Failed,
        ..execute
    })
}

/// The command that begins a run with a name of its own.
#[must_use]
pub fn start(name: &str, kind: RunKind, run_name: &str) -> Command {
    Command::Execute(Execute {
        create: Vec::new(),
        task: id(name),
        kind,
        include: Include::Needed,
        run_id: run(run_name),
        allow_unknown_executors: false,
        executor_wait_ms: crate::limits::EXECUTOR_WAIT_MS_DEFAULT,
        wait_bounds: Default::default(),
        callback: None,
        origin: None,
    })
}

impl Scenario {
    /// Gives a command; a granted slot is freed again by the outcome commands below.
    #[must_use]
    pub fn when(mut self, command: Command) -> Self {
        self.last = self.flow.handle(&command, self.now, &mut self.server);
        if let Ok((events, _)) = &self.last {
            self.history
                .extend(events.iter().map(|e| (self.now, e.clone())));
        }
        self
    }

    /// The latest attempt of the task ends with `{}`.
    #[must_use]
    pub fn completes(mut self, name: &str) -> Self {
        self.server.slots = self.server.slots.saturating_add(1);
        let attempt = self.attempt(name);
        self.when(Command::Complete {
            task: id(name),
            attempt,
            result: Payload::empty(),
            lease: None,
        })
        .accepted()
    }

    /// The latest attempt of the task ends with an error of its executor.
    #[must_use]
    pub fn fails(mut self, name: &str) -> Self {
        self.server.slots = self.server.slots.saturating_add(1);
        let attempt = self.attempt(name);
        let (error, reason) = ("boom".to_owned(), FailureReason::Executor);
        self.when(Command::Fail {
            task: id(name),
            attempt,
            error,
            reason,
            progress: Progress::ZERO,
            lease: None,
            retry_after_ms: 0,
        })
        .accepted()
    }

    /// The server restarts: no attempt runs any more.
    #[must_use]
    pub fn restarts(self) -> Self {
        self.when(Command::Recover {
            alive: HashSet::new(),
        })
        .accepted()
    }

    /// Time passes, and the flow looks what is due.
    #[must_use]
    pub fn after_ms(mut self, ms: u64) -> Self {
        self.now = self.now.plus_ms(ms);
        self.when(Command::Wake).accepted()
    }

    /// The latest command was accepted.
    ///
    /// # Panics
    /// When it was refused.
    #[must_use]
    pub fn accepted(self) -> Self {
        assert!(self.last.is_ok(), "refused: {:?}", self.last);
        self
    }

    /// The latest command was refused like this, and nothing changed.
    ///
    /// # Panics
    /// When it was not.
    #[must_use]
    pub fn rejects(self, kind: Kind) -> Self {
        let refused = match &self.last {
            Err(Rejection::Refused(refusals)) => Some(refusals.first.kind()),
            Err(Rejection::Outdated(_)) | Ok(_) => None,
        };
        assert_eq!(refused, Some(kind), "{:?}", self.last);
        self
    }

    /// The latest command rested on what has changed since, and nothing changed.
    ///
    /// # Panics
    /// When it did not.
    #[must_use]
    pub fn is_outdated(self, what: Outdated) -> Self {
        assert_eq!(self.last, Err(Rejection::Outdated(what)));
        self
    }

    /// The tasks have these states now.
    ///
    /// # Panics
    /// When one has another.
    #[must_use]
    pub fn then(self, expected: &[(&str, Status)]) -> Self {
        for (name, status) in expected {
            assert_eq!(self.status(name), Some(*status), "status of `{name}`");
        }
        self
    }

    /// Whether a run is active.
    ///
    /// # Panics
    /// When it is not as said.
    #[must_use]
    pub fn runs(self, active: bool) -> Self {
        assert_eq!(self.flow.has_active_run(), active, "a run is active");
        self
    }

    /// Status of a task; `None` when it was deleted.
    #[must_use]
    pub fn status(&self, name: &str) -> Option<Status> {
        self.flow.task(id(name)).map(|t| t.status)
    }

    /// Number of the task's latest attempt.
    ///
    /// # Panics
    /// When the task does not exist.
    #[must_use]
    pub fn attempt(&self, name: &str) -> u32 {
        self.flow.task(id(name)).expect("the task exists").attempt
    }

    /// The flow rebuilt from its history.
    #[must_use]
    pub fn replayed(&self) -> Flow {
        let mut flow = Flow::default();
        for (time, event) in &self.history {
            flow.apply(event, *time);
        }
        flow.settle_indexes();
        flow
    }
}

impl Flow {
    /// The ids of all tasks that ever were, in order of creation.
    #[must_use]
    pub fn task_ids(&self) -> Vec<TaskId> {
        self.tasks.iter().map(|t| t.id).collect()
    }
}
