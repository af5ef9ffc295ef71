//! A server without doors over a log that misbehaves on command.

use crate::application::counted::{Calls, Counted};
use crate::application::script::{Script, TestExecutors};
use crate::application::shown::Shown;
use serde_json::{Value, json};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use taskledger::application::api::Reply;
use taskledger::application::context::{Context, Idempotency};
use taskledger::application::leases::MemoryRenewals;
use taskledger::application::limits::{self, Limits, QuotaOptions, RateOptions};
use taskledger::application::ownership::{Ownership, Sole};
use taskledger::application::watching::ConfirmedReads;
use taskledger::application::{
    App, Directory, Error, ExecuteOptions, Flows, Positions, Readings, RowCache, Target,
    Validation, flows, rows,
};
use taskledger::clock::{ManualClock, SharedClock};
use taskledger::store::faulty::{Faults, FaultyStore};
use taskledger::store::memory::MemoryStore;
use taskledger::store::{Append, EventStore, Fence, NewEvent, Outcome};
use taskledger::subscription::live::Live;
use taskledger::subscription::rebuild::Rebuilds;
use taskledger::subscription::runner;
use taskledger::transport::jsonrpc::replies;
use taskledger_auth::{Caller, Name, Scopes};
use taskledger_domain::flow::WaitBounds;
use taskledger_domain::flow::{Event, Kind, TaskRenamed};
use taskledger_domain::task::Status;
use taskledger_domain::task::call::{parse_create, parse_tasks};
use taskledger_domain::testing::{START, id};
use taskledger_domain::{EventId, FlowId, Metadata, Recorded};
use taskledger_projections::{Options as ReadOptions, ReadModels};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Real time after which a test that waits has failed.
const PATIENCE: Duration = Duration::from_secs(30);
/// Turns given to all tasks of a single-threaded test, more than any chain of them needs.
const TURNS: usize = 300;

/// Waits for something that must happen.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what)
        .await
        .expect("it happens soon")
}

/// Lets everything that can run without a further event run (single-threaded tests only).
pub(crate) async fn quiet() {
    for _ in 0..TURNS {
        tokio::task::yield_now().await;
    }
}

/// What a world is made of.
pub(crate) struct Make {
    pub(crate) idle_bytes_max: usize,
    /// Whether appends carry a fence.
    pub(crate) fenced: bool,
    /// Who decides; this server alone when nobody says.
    pub(crate) ownership: Option<Arc<dyn Ownership>>,
    /// What a server before has kept of renewed leases.
    pub(crate) renewals: Arc<MemoryRenewals>,
    /// How much users may add.
    pub(crate) quotas: QuotaOptions,
    /// How fast callers may call.
    pub(crate) rates: RateOptions,
    /// Where calls of the log are counted, if they are.
    pub(crate) calls: Option<Calls>,
}

impl Default for Make {
    fn default() -> Self {
        Self {
            idle_bytes_max: flows::IDLE_BYTES_MAX,
            fenced: false,
            ownership: None,
            renewals: Arc::default(),
            quotas: QuotaOptions::default(),
            rates: RateOptions::default(),
            calls: None,
        }
    }
}

/// An application over a log that can fail, with a clock that tests move.
pub(crate) struct World {
    pub(crate) app: Arc<App>,
    pub(crate) log: Arc<FaultyStore<MemoryStore>>,
    pub(crate) faults: Faults,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) script: Arc<Script>,
    pub(crate) executors: Arc<TestExecutors>,
    pub(crate) renewals: Arc<MemoryRenewals>,
    pub(crate) stop: CancellationToken,
    pub(crate) service: Option<runner::Service>,
    memory: Arc<MemoryStore>,
    cancel: CancellationToken,
    woken: Option<tokio::sync::mpsc::UnboundedReceiver<FlowId>>,
    _folder: TempDir,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::made(Make::default()).await
    }

    pub(crate) async fn made(make: Make) -> Self {
        let clock = Arc::new(ManualClock::at(START));
        let memory = Arc::new(MemoryStore::new(clock.clone()));
        Self::over(memory, clock, make).await
    }

    /// Another server over the same log, with a clock of its own.
    pub(crate) async fn beside(&self, make: Make) -> Self {
        let clock = Arc::new(ManualClock::at(START));
        Self::over(self.memory.clone(), clock, make).await
    }

    /// The next server over the same log: nothing but the log, and what lies beside it, is left of this
    /// one.
    pub(crate) async fn restarted(self) -> Self {
        let make = Make {
            renewals: self.renewals.clone(),
            ..Make::default()
        };
        Self::over(self.memory.clone(), self.clock.clone(), make).await
    }

    async fn over(memory: Arc<MemoryStore>, clock: Arc<ManualClock>, make: Make) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = Arc::new(FaultyStore::new(memory.clone()));
        let store: Arc<dyn EventStore> = match make.calls {
            None => log.clone(),
            Some(calls) => Arc::new(Counted::new(log.clone(), calls)),
        };
        let fence = if make.fenced {
            Some(Fence {
                name: Arc::from("writer"),
                token: store.raise_fence("writer").await.unwrap(),
            })
        } else {
            None
        };
        let (queries, _) = ReadModels::open(&ReadOptions::new(folder.path().join("read.db")))
            .await
            .unwrap();
        let queries = Arc::new(queries);
        let options = runner::Options::default();
        let (service, projections) = runner::Service::new(store.clone(), queries.clone(), options)
            .await
            .unwrap();
        let executors = Arc::new(TestExecutors::default());
        executors.add("work", "work", 100, true);
        let (rows, positions) = (
            Arc::new(RowCache::new(rows::BYTES_MAX)),
            Arc::new(Positions::after(*store.watch().borrow())),
        );
        let stop = CancellationToken::new();
        let shared: SharedClock = clock.clone();
        let (flows, woken) = Flows::new(flows::Parts {
            store: store.clone(),
            clock: shared.clone(),
            executors: executors.clone(),
            renewals: make.renewals.clone(),
            tickets: None,
            rows: rows.clone(),
            positions: positions.clone(),
            ownership: make.ownership.unwrap_or_else(|| Arc::new(Sole(fence))),
            idle_bytes_max: make.idle_bytes_max,
            stop: stop.clone(),
        });
        let options = limits::Options {
            rates: make.rates,
            quotas: make.quotas,
        };
        let limits = Limits::new(&options, queries.clone(), shared.clone());
        let limits = Arc::new(limits);
        let script = Script::of(&flows);
        flows.set_attempts(script.clone());
        let rebuilds = Rebuilds::new(store.clone(), queries.clone());
        let reads = ConfirmedReads {
            positions: positions.clone(),
            ownership: flows.ownership().clone(),
        };
        let (following, live) = Live::new(store.clone(), Arc::new(reads));
        tokio::spawn(following.run(stop.child_token()));
        let app = App {
            directory: Arc::new(Directory::new(store.clone(), shared.clone(), rows.clone())),
            store,
            clock: shared,
            flows,
            projections,
            readings: Readings::of(queries.readers()),
            queries,
            rebuilds,
            validation: Arc::new(Validation::new(executors.clone())),
            rows,
            positions,
            live,
            limits,
            wait_bounds: WaitBounds::default(),
        };
        Self {
            app: Arc::new(app),
            faults: log.faults(),
            log,
            clock,
            script,
            executors,
            renewals: make.renewals,
            stop,
            service: Some(service),
            memory,
            cancel: CancellationToken::new(),
            woken: Some(woken),
            _folder: folder,
        }
    }

    /// Lets timers fire and free slots wake flows.
    pub(crate) fn run_flows(&mut self) {
        let woken = self.woken.take().expect("flows run once");
        tokio::spawn(self.app.flows.clone().run(woken, self.cancel.clone()));
    }

    /// Takes away the wake-ups that free slots have asked for so far.
    pub(crate) fn lose_wake_ups(&mut self) {
        let woken = self.woken.as_mut().expect("the flows do not run yet");
        while woken.try_recv().is_ok() {}
    }

    /// Lets the read models follow the log.
    pub(crate) fn run_read_models(&mut self) {
        let service = self.service.take().expect("read models run once");
        tokio::spawn(service.run(self.cancel.clone()));
    }

    /// `tasks.create` with these parameters, on its way.
    pub(crate) fn create(
        &self,
        caller: Context,
        params: Value,
    ) -> JoinHandle<Result<Value, Error>> {
        let app = self.app.clone();
        let list = parse_create(params.as_object().expect("an object")).expect("valid tasks");
        tokio::spawn(async move { app.create(&caller, list).await.map(|reply| shown(&reply)) })
    }

    /// `tasks.execute` of new tasks, on its way.
    pub(crate) fn execute(
        &self,
        caller: Context,
        tasks: Value,
    ) -> JoinHandle<Result<Value, Error>> {
        let app = self.app.clone();
        let target = Target::New(parse_tasks(&tasks).expect("valid tasks"));
        let options = ExecuteOptions::default();
        tokio::spawn(async move {
            app.execute(&caller, target, options)
                .await
                .map(|reply| shown(&reply))
        })
    }

    /// Any other call, on its way.
    pub(crate) fn call<F, T>(
        &self,
        call: impl FnOnce(Arc<App>) -> F + Send + 'static,
    ) -> JoinHandle<Result<Value, Error>>
    where
        F: Future<Output = Result<T, Error>> + Send,
        T: Shown,
    {
        let app = self.app.clone();
        tokio::spawn(async move { Ok(call(app).await?.shown().await) })
    }

    /// Creates a flow with a root of this name, and groups below it.
    pub(crate) async fn given_flow(&self, root: &str, below: &[&str]) -> FlowId {
        let children: Vec<_> = below
            .iter()
            .map(|name| json!({"id": id(name), "name": name}))
            .collect();
        let params = json!({"id": id(root), "name": root, "children": children});
        soon(self.create(caller(), params))
            .await
            .unwrap()
            .expect("the flow is new");
        id(root).as_flow()
    }

    pub(crate) fn rename(&self, name: &str, to: &str) -> JoinHandle<Result<Value, Error>> {
        let (task, updates) = (id(name), updates(json!({"name": to})));
        self.call(move |app| async move { app.update(&caller(), task, updates).await })
    }

    /// Another server appends to the flow, past all faults.
    pub(crate) async fn foreign_write(&self, stream: FlowId, events: Vec<NewEvent>) {
        let expected = self.history(stream).await.len() as u64;
        let append = Append {
            stream,
            expected,
            events,
            claims: Vec::new(),
            fence: None,
        };
        let outcome = self.log.inner().append(append).await.unwrap();
        assert!(matches!(outcome, Outcome::Appended(_)), "{outcome:?}");
    }

    /// Slots taken, of all executors.
    pub(crate) fn taken(&self) -> usize {
        self.app
            .flows
            .slots()
            .usage()
            .iter()
            .map(|(_, taken, _)| taken)
            .sum()
    }

    pub(crate) async fn status(&self, name: &str) -> Option<Status> {
        let (task, flow) = (
            id(name),
            self.app.directory.flow_of(id(name)).await.unwrap()?,
        );
        let look = self.app.flows.look(flow, metadata("look"), move |f| {
            f.task(task).map(|t| t.status)
        });
        soon(look).await.expect("the flow can be looked at")
    }

    /// What the log holds of a flow.
    pub(crate) async fn history(&self, flow: FlowId) -> Vec<Arc<Recorded>> {
        self.log
            .inner()
            .read_stream(flow, 0, usize::MAX, usize::MAX)
            .await
            .unwrap()
    }

    pub(crate) async fn whole_log(&self) -> Vec<Arc<Recorded>> {
        self.log
            .inner()
            .read_all(0, usize::MAX)
            .await
            .unwrap()
            .events
    }

    /// The names of the events of a flow.
    pub(crate) async fn kinds(&self, flow: FlowId) -> Vec<&'static str> {
        self.history(flow)
            .await
            .iter()
            .map(|r| taskledger_domain::codec::kind(&r.event))
            .collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

fn shown(reply: &Reply) -> Value {
    let text = replies::reply(reply);
    serde_json::from_str(text.get()).expect("answers are JSON")
}

/// A user who may do everything, with the flows of all users.
pub(crate) fn user_named(name: &str) -> Arc<Caller> {
    let name = Name::new(name).expect("a name");
    Arc::new(Caller::user(&name, Scopes::all()))
}

pub(crate) fn caller() -> Context {
    Context::anonymous(Arc::from("request"))
}

/// A caller with an idempotency key; `body` stands for what it sends.
pub(crate) fn with_key(key: &str, body: &str) -> Context {
    let idempotency = Some(Idempotency::of(Arc::from(key), Arc::from(body)));
    Context {
        idempotency,
        ..caller()
    }
}

pub(crate) fn metadata(correlation: &str) -> Metadata {
    Metadata {
        actor: Arc::from("test"),
        correlation: Arc::from(correlation),
        causation: None,
        trace: None,
    }
}

pub(crate) fn updates(members: Value) -> taskledger_domain::task::spec::Updates {
    taskledger_domain::task::spec::updates(members.as_object().expect("an object"))
        .expect("valid updates")
}

/// A task that runs `method`.
pub(crate) fn task(name: &str, method: &str) -> Value {
    json!({"id": id(name), "name": name, "schemas": {"method": method}})
}

/// A rename by another server.
pub(crate) fn foreign_rename(name: &str) -> NewEvent {
    let event = Event::TaskRenamed(TaskRenamed {
        task_id: id(name),
        name: "by another".to_owned(),
    });
    NewEvent::new(
        EventId(id(&format!("event of {name}")).0),
        START,
        metadata("foreign"),
        event,
    )
}

/// An event that no state can take in, as only damage can leave it.
pub(crate) fn impossible_event() -> NewEvent {
    foreign_rename("a task that never was")
}

pub(crate) fn refused(result: Result<Value, Error>) -> Kind {
    match result {
        Err(Error::Refused(refused)) => refused.refusal.kind(),
        other @ (Ok(_)
        | Err(
            Error::Outdated(_)
            | Error::Busy { .. }
            | Error::RateLimited { .. }
            | Error::QuotaExceeded { .. }
            | Error::Elsewhere(_)
            | Error::OutcomeUnknown
            | Error::Unanswered { .. }
            | Error::OutOfTime { .. }
            | Error::Forbidden { .. }
            | Error::UnknownWebhook { .. }
            | Error::LeaseNotHeld { .. }
            | Error::ContractBroken { .. }
            | Error::Failed(_),
        )) => {
            panic!("expected a refusal, got {other:?}")
        }
    }
}

pub(crate) fn is_busy<T>(result: &Result<T, Error>) -> bool {
    matches!(
        result,
        Err(Error::Busy {
            retry_after_ms: 1..,
            ..
        })
    )
}
