//! Executors and attempts that do what the test says.

use crate::application::world::soon;
use serde_json::json;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock, Weak};
use taskledger::application::ports::{Attempts, ExecutorSnapshot, Executors, Started, Undurable};
use taskledger::application::{Flows, Partitions};
use taskledger::clock::ManualClock;
use taskledger_domain::flow::{Command, Event, FailureReason};
use taskledger_domain::task::Progress;
use taskledger_domain::task::inputs::CompiledSchema;
use taskledger_domain::testing::id;
use taskledger_domain::{FlowId, Payload, TaskId};
use taskledger_workers::MethodKey;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// One executor of the script.
#[derive(Debug, Clone)]
struct Kindred {
    canonical: &'static str,
    slots: usize,
    idempotent: bool,
    remote: bool,
}

/// The method that starts programs on the machine of the server.
pub(crate) const PROGRAM: &str = "program";

/// A directory of executors that a test fills and changes.
#[derive(Debug)]
pub(crate) struct TestExecutors {
    newest: RwLock<Arc<TestSnapshot>>,
    number: watch::Sender<u64>,
}

#[derive(Debug, Clone, Default)]
struct TestSnapshot {
    number: u64,
    kindred: BTreeMap<String, Kindred>,
}

impl Default for TestExecutors {
    fn default() -> Self {
        Self {
            newest: RwLock::default(),
            number: watch::Sender::new(0),
        }
    }
}

impl TestExecutors {
    /// Publishes a snapshot with one more executor, or another one in place of that of this name.
    pub(crate) fn add(&self, name: &str, canonical: &'static str, slots: usize, idempotent: bool) {
        self.put(
            name,
            Kindred {
                canonical,
                slots,
                idempotent,
                remote: false,
            },
        );
    }

    /// Publishes a snapshot with a method that workers claim.
    pub(crate) fn add_remote(&self, name: &'static str, slots: usize) {
        self.put(
            name,
            Kindred {
                canonical: name,
                slots,
                idempotent: false,
                remote: true,
            },
        );
    }

    fn put(&self, name: &str, kindred: Kindred) {
        self.change(|all| _ = all.insert(name.to_owned(), kindred));
    }

    /// Publishes a snapshot without this executor.
    pub(crate) fn remove(&self, name: &str) {
        self.change(|all| _ = all.remove(name));
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, Kindred>)) {
        let mut newest = self.newest.write().unwrap();
        let mut next = TestSnapshot::clone(&newest);
        next.number += 1;
        change(&mut next.kindred);
        let number = next.number;
        *newest = Arc::new(next);
        drop(newest);
        self.number.send_replace(number);
    }
}

impl Executors for TestExecutors {
    fn snapshot(&self) -> Arc<dyn ExecutorSnapshot> {
        self.newest.read().unwrap().clone()
    }
    fn changes(&self) -> watch::Receiver<u64> {
        self.number.subscribe()
    }
}

impl ExecutorSnapshot for TestSnapshot {
    fn number(&self) -> u64 {
        self.number
    }
    fn knows(&self, method: &str) -> bool {
        self.kindred.contains_key(method)
    }
    fn is_remote(&self, method: &str) -> bool {
        self.kindred.get(method).is_some_and(|k| k.remote)
    }
    fn starts_programs(&self, method: &str) -> bool {
        method == PROGRAM
    }
    fn is_idempotent(&self, method: &str) -> bool {
        self.kindred.get(method).is_some_and(|k| k.idempotent)
    }
    fn canonical_name<'a>(&'a self, method: &'a str) -> &'a str {
        self.kindred.get(method).map_or(method, |k| k.canonical)
    }
    fn slot_limit(&self, method: &str) -> usize {
        self.kindred.get(method).map_or(0, |k| k.slots)
    }
    fn claim_limits(&self) -> HashMap<MethodKey, usize> {
        let remote = self.kindred.iter().filter(|(_, k)| k.remote);
        let limits = remote.map(|(name, k)| (MethodKey::shared(Arc::from(name.as_str())), k.slots));
        limits.collect()
    }
    fn input_schema(&self, _: &str) -> Option<Arc<CompiledSchema>> {
        None
    }
}

/// Attempts that end when the test says so.
#[derive(Debug)]
pub(crate) struct Script {
    flows: Weak<Flows>,
    launched: Mutex<Vec<Started>>,
    stopped: Mutex<Vec<(TaskId, u32)>>,
    forsaken: Mutex<Vec<(TaskId, u32)>>,
    alive: Mutex<HashSet<(FlowId, TaskId, u32)>>,
    count: watch::Sender<usize>,
    /// Attempts whose executors run, and how many of a lane did at most.
    under_way: Mutex<HashMap<(TaskId, u32), String>>,
    most: Mutex<HashMap<String, usize>>,
    /// Attempts that were ended in the turn that started them.
    ended_at_once: Mutex<Vec<(TaskId, u32)>>,
    /// Attempts that may still be.
    at_once_left: AtomicUsize,
    /// Set going forward at each of them, by ten seconds.
    clock: Mutex<Option<Arc<ManualClock>>>,
}

/// The executor whose attempts end in the turn that starts them; their results are the inputs, `null` when
/// those are durable.
pub(crate) const SWIFT: &str = "swift";

impl Attempts for Script {
    fn end_at_once(
        &self,
        started: &Started,
        undurable: Undurable<'_>,
        _: &mut usize,
    ) -> Option<Command> {
        let launch = &started.launch;
        if launch.method != SWIFT {
            return None;
        }
        let less = |left: usize| left.checked_sub(1);
        self.at_once_left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .ok()?;
        if let Some(clock) = &*self.clock.lock().unwrap() {
            clock.advance_ms(10_000);
        }
        let (task, attempt) = (launch.task, launch.attempt);
        self.ended_at_once.lock().unwrap().push((task, attempt));
        let inputs = undurable(launch.spec_at).map(|event| match &*event {
            Event::TaskCreated(created) => created.specification.inputs.to_map(),
            Event::TaskRespecified(e) => e.specification.inputs.to_map(),
            other => panic!("{other:?} has no inputs"),
        });
        Some(Command::Complete {
            task,
            attempt,
            result: Payload::parse(&json!({"inputs": inputs}).to_string()).unwrap(),
            lease: None,
        })
    }
    fn launch(&self, started: Started) {
        self.alive.lock().unwrap().insert((
            started.flow,
            started.launch.task,
            started.launch.attempt,
        ));
        let mut under_way = self.under_way.lock().unwrap();
        let method = started.launch.method.clone();
        under_way.insert(
            (started.launch.task, started.launch.attempt),
            method.clone(),
        );
        let now = under_way.values().filter(|m| **m == method).count();
        drop(under_way);
        let mut most = self.most.lock().unwrap();
        let most = most.entry(method).or_default();
        *most = now.max(*most);
        self.launched.lock().unwrap().push(started);
        self.count.send_modify(|n| *n += 1);
    }
    fn stop(&self, flow: FlowId, task: TaskId, attempt: u32) {
        self.stopped.lock().unwrap().push((task, attempt));
        self.alive.lock().unwrap().remove(&(flow, task, attempt));
    }
    fn forsake(&self, partitions: &Partitions) {
        self.give_up(|flow| partitions.contain(flow));
    }
    fn forsake_flow(&self, flow: FlowId) {
        self.give_up(|other| other == flow);
    }
    fn partitions(&self) -> Partitions {
        let alive = self.alive.lock().unwrap();
        let mut partitions = Partitions::default();
        alive
            .iter()
            .for_each(|a| partitions.extend(&Partitions::of(a.0)));
        partitions
    }
    fn alive(&self, flow: FlowId) -> Vec<(TaskId, u32)> {
        self.alive
            .lock()
            .unwrap()
            .iter()
            .filter(|a| a.0 == flow)
            .map(|a| (a.1, a.2))
            .collect()
    }
}

impl Script {
    fn give_up(&self, leaves: impl Fn(FlowId) -> bool) {
        let mut alive = self.alive.lock().unwrap();
        let gone: Vec<_> = alive.iter().filter(|a| leaves(a.0)).copied().collect();
        for attempt in gone {
            alive.remove(&attempt);
            self.forsaken.lock().unwrap().push((attempt.1, attempt.2));
        }
    }

    pub(crate) fn of(flows: &Arc<Flows>) -> Arc<Self> {
        Arc::new(Self {
            flows: Arc::downgrade(flows),
            launched: Mutex::default(),
            stopped: Mutex::default(),
            forsaken: Mutex::default(),
            alive: Mutex::default(),
            count: watch::channel(0).0,
            under_way: Mutex::default(),
            most: Mutex::default(),
            ended_at_once: Mutex::default(),
            at_once_left: AtomicUsize::new(usize::MAX),
            clock: Mutex::default(),
        })
    }

    /// Each attempt that ends at once takes ten seconds of this clock.
    pub(crate) fn take_time_of(&self, clock: Arc<ManualClock>) {
        *self.clock.lock().unwrap() = Some(clock);
    }

    /// So many attempts more are ended in their turns; the others are launched.
    pub(crate) fn end_at_once_only(&self, attempts: usize) {
        self.at_once_left.store(attempts, Ordering::Relaxed);
    }

    /// Attempts that were ended in their turns, in order, those of turns that came to nothing included.
    pub(crate) fn ended_at_once(&self) -> Vec<(TaskId, u32)> {
        self.ended_at_once.lock().unwrap().clone()
    }

    /// Waits until so many attempts were launched in all.
    pub(crate) async fn launched(&self, count: usize) {
        let mut seen = self.count.subscribe();
        soon(seen.wait_for(|n| *n >= count))
            .await
            .expect("the script lives as long as the test");
    }

    /// How many attempts were launched.
    pub(crate) fn count(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    /// Tasks and attempts in the order in which they were launched.
    pub(crate) fn launches(&self) -> Vec<(TaskId, u32)> {
        self.launched
            .lock()
            .unwrap()
            .iter()
            .map(|s| (s.launch.task, s.launch.attempt))
            .collect()
    }

    pub(crate) fn stops(&self) -> Vec<(TaskId, u32)> {
        self.stopped.lock().unwrap().clone()
    }

    /// Attempts that were given up with their flows.
    pub(crate) fn forsaken(&self) -> Vec<(TaskId, u32)> {
        self.forsaken.lock().unwrap().clone()
    }

    /// The latest attempt of a task.
    pub(crate) fn started(&self, task: TaskId) -> Started {
        let launched = self.launched.lock().unwrap();
        launched
            .iter()
            .rfind(|s| s.launch.task == task)
            .expect("the task was launched")
            .clone()
    }

    /// How many attempts of a method ran at once, at most.
    pub(crate) fn most(&self, method: &str) -> usize {
        self.most.lock().unwrap().get(method).copied().unwrap_or(0)
    }

    /// Forgets that attempts run, as a restart does.
    pub(crate) fn forget_all(&self) {
        self.alive.lock().unwrap().clear();
    }

    pub(crate) async fn complete(&self, name: &str) {
        self.end(id(name), |task, attempt| Command::Complete {
            task,
            attempt,
            result: Payload::empty(),
            lease: None,
        })
        .await;
    }

    pub(crate) async fn fail(&self, name: &str) {
        let (error, reason) = ("boom".to_owned(), FailureReason::Executor);
        let fail = |task, attempt| Command::Fail {
            task,
            attempt,
            error,
            reason,
            progress: Progress::ZERO,
            lease: None,
            retry_after_ms: 0,
        };
        self.end(id(name), fail).await;
    }

    pub(crate) async fn end(&self, task: TaskId, command: impl FnOnce(TaskId, u32) -> Command) {
        let attempt = self.started(task).launch.attempt;
        self.end_attempt(task, attempt, command).await;
    }

    pub(crate) async fn end_attempt(
        &self,
        task: TaskId,
        attempt: u32,
        command: impl FnOnce(TaskId, u32) -> Command,
    ) {
        let flows = self
            .flows
            .upgrade()
            .expect("the flows live as long as the test");
        let of_attempt = |s: &&Started| (s.launch.task, s.launch.attempt) == (task, attempt);
        let started = self
            .launched
            .lock()
            .unwrap()
            .iter()
            .find(of_attempt)
            .expect("it was launched")
            .clone();
        self.under_way.lock().unwrap().remove(&(task, attempt));
        let slot = flows.slots().held(&started.launch.method, task, attempt);
        let (command, never) = (command(task, attempt), CancellationToken::new());
        soon(flows.report_end(&started, command, slot, &never)).await;
        self.alive
            .lock()
            .unwrap()
            .remove(&(started.flow, task, attempt));
    }
}
