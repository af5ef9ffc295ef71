//! The service over a world, as workers meet it: they claim, keep and end attempts.

use crate::application::world::{World, caller, quiet, soon};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use taskledger::application::api::work::{
    Claim, Claimed, Claims, Complete, Connection, Ended, Fail, LeaseLoss, Output, Release, Renew,
    Renewed, Wanted,
};
use taskledger::application::api::{Reply, Request};
use taskledger::application::limits::{Limits, Options};
use taskledger::application::routing::Forward;
use taskledger::application::{Context, Error, Service, service};
use taskledger::clock::SharedClock;
use taskledger::egress::{self, Egress, Policy, SystemLookup};
use taskledger::engine::executor::Registry;
use taskledger::engine::{ExecutorDirectory, WorkerRegistry};
use taskledger::sealing::Keyring;
use taskledger::webhooks::api::Webhooks;
use taskledger::webhooks::memory::{MemoryDeliveries, MemoryOwners};
use taskledger::webhooks::store::Store as WebhookStore;
use taskledger::webhooks::worker;
use taskledger_auth::store::AuthStore;
use taskledger_auth::{AdminTokens, AuditLog, MAIN_TENANT, Tokens, Vault};
use taskledger_broker::BrokerStore;
use taskledger_documents::DocumentStore;
use taskledger_domain::flow::{Event, FailureReason};
use taskledger_domain::testing::id;
use taskledger_domain::{FlowId, Payload};
use taskledger_schedules::ScheduleStore;
use taskledger_workers::WorkerStore;
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// For how long workers of tests claim, in milliseconds.
pub(crate) const LEASE_MS: u64 = 60_000;
/// How long workers of tests wait for work.
const WAIT: Duration = Duration::from_secs(60);

/// A service whose flows belong to this node, and the store of its broker.
pub(crate) struct Broker {
    pub(crate) w: World,
    pub(crate) service: Arc<Service>,
    _folder: TempDir,
}

/// A flow whose root has this name.
pub(crate) fn flow(name: &str) -> FlowId {
    id(name).as_flow()
}

pub(crate) fn object(value: &Value) -> Payload {
    Payload::parse(&value.to_string()).unwrap()
}

impl Broker {
    /// With the remote method `resize`.
    pub(crate) async fn new() -> Self {
        Self::over(World::new().await).await
    }

    /// The same; time stands still but for the clock of the server, and leases are looked at.
    pub(crate) async fn running() -> Self {
        Self::new().await.run().await
    }

    pub(crate) async fn over(w: World) -> Self {
        Self::made(w, None).await
    }

    /// The same on a node that reaches others.
    pub(crate) async fn reaching(w: World, others: Arc<dyn Forward>) -> Self {
        Self::made(w, Some(others)).await
    }

    async fn made(w: World, forward: Option<Arc<dyn Forward>>) -> Self {
        w.executors.add_remote("resize", 100);
        let folder = tempfile::tempdir().unwrap();
        let clock: SharedClock = w.clock.clone();
        let webhooks = WebhookStore::of_folder(folder.path(), Keyring::none(), clock.clone());
        let webhooks = Arc::new(webhooks.await.unwrap());
        let auth = Arc::new(AuthStore::of_folder(folder.path()).await.unwrap());
        let audit = Arc::new(AuditLog::new(auth.clone(), clock.clone()));
        let admins = AdminTokens::default();
        let tokens = Tokens::new(auth.clone(), audit, clock.clone(), admins);
        let vault = Vault::new(auth, Keyring::none(), clock.clone());
        let directory = Arc::new(ExecutorDirectory::new(Registry::builder().build().unwrap()));
        let store = Arc::new(WorkerStore::of_folder(folder.path()).await.unwrap());
        let workers = WorkerRegistry::open(store, directory.clone(), clock.clone(), None);
        let policy = Policy::default();
        let nobody = SystemLookup::of_server("127.0.0.1:9".parse().unwrap()).unwrap();
        let options = egress::Options::new(policy.clone(), Arc::new(nobody));
        let (_, deliveries) = worker::Service::new(
            worker::Parts {
                owners: Arc::<MemoryOwners>::default(),
                deliveries: Arc::<MemoryDeliveries>::default(),
                sender: Arc::new(Egress::new(options).unwrap()),
                clock: clock.clone(),
            },
            worker::Options::default(),
        );
        let usage = w.app.queries.clone();
        let documents = DocumentStore::of_folder(folder.path()).await;
        let schedules = ScheduleStore::of_folder(folder.path()).await;
        let broker = BrokerStore::of_folder(folder.path(), Arc::from(MAIN_TENANT)).await;
        let service = Service::new(service::Parts {
            app: w.app.clone(),
            executors: directory,
            webhooks: Arc::new(Webhooks::new(
                webhooks,
                w.app.store.clone(),
                Arc::new(policy),
            )),
            deliveries,
            issuers: Arc::from([]),
            tokens: Arc::new(tokens),
            secrets: Arc::new(vault.await.unwrap()),
            documents: Arc::new(documents.unwrap()),
            schedules: Arc::new(schedules.unwrap()),
            zones: Arc::default(),
            broker: Arc::new(broker.unwrap()),
            workers: workers.await.unwrap(),
            forward,
            limits: Arc::new(Limits::new(&Options::default(), usage, clock)),
            metrics: None,
        });
        Self {
            w,
            service: Arc::new(service),
            _folder: folder,
        }
    }

    pub(crate) async fn run(mut self) -> Self {
        tokio::time::pause();
        self.w.run_flows();
        quiet().await;
        self
    }

    /// The next server, which has the log and the renewals; its flows do not run yet.
    pub(crate) async fn restarted(self) -> Self {
        Self::over(self.w.restarted().await).await
    }

    pub(crate) async fn execute(&self, tasks: Value) {
        let started = soon(self.w.execute(caller(), tasks)).await.unwrap();
        started.expect("it starts");
    }

    pub(crate) async fn cancel(&self, name: &str) {
        let task = id(name);
        let cancel = move |app: Arc<taskledger::application::App>| async move {
            app.cancel(&caller(), task, false, None).await
        };
        let cancelled = soon(self.w.call(cancel)).await.unwrap();
        cancelled.expect("it is cancelled");
    }

    /// A claim of a worker, on its way.
    pub(crate) fn claims(
        &self,
        context: Context,
        worker: &str,
        wanted: Wanted,
        max: usize,
        wait: Duration,
    ) -> JoinHandle<Result<Claims, Error>> {
        let claim = Claim {
            worker: Some(Arc::from(worker)),
            wanted,
            max,
            lease_ms: LEASE_MS,
            wait,
            connection: Connection::Poll,
            heard_at: tokio::time::Instant::now(),
        };
        let service = self.service.clone();
        tokio::spawn(async move { service.claim(&context, claim).await })
    }

    /// A worker that waits for tasks of `resize`.
    pub(crate) fn waits(&self, worker: &str) -> JoinHandle<Result<Claims, Error>> {
        self.claims(caller(), worker, methods(&["resize"]), 1, WAIT)
    }

    /// What a worker of `resize` gets that does not wait.
    pub(crate) async fn next(&self, max: usize) -> Vec<Claimed> {
        let wanted = methods(&["resize"]);
        let claims = self.claims(caller(), "worker", wanted, max, Duration::ZERO);
        soon(claims).await.unwrap().expect("it is answered").claims
    }

    pub(crate) async fn try_claim(&self, name: &str) -> Result<Option<Claimed>, Error> {
        let wanted = Wanted::Task(id(name));
        let claims = self.claims(caller(), "worker", wanted, 1, Duration::ZERO);
        soon(claims).await.unwrap().map(|mut c| c.claims.pop())
    }

    pub(crate) async fn claim(&self, name: &str) -> Claimed {
        let claimed = self.try_claim(name).await;
        claimed.unwrap().expect("it can start")
    }

    async fn ended(&self, context: &Context, request: Request) -> Result<Ended, Error> {
        match soon(self.service.call(context, request)).await? {
            Reply::Ended(ended) => Ok(ended),
            other => panic!("expected the end of an attempt, got {other:?}"),
        }
    }

    pub(crate) async fn complete(&self, held: &Claimed, output: Value) -> Result<Ended, Error> {
        self.complete_as(&caller(), held, output).await
    }

    pub(crate) async fn complete_as(
        &self,
        context: &Context,
        held: &Claimed,
        output: Value,
    ) -> Result<Ended, Error> {
        let complete = Complete {
            task: held.task.id,
            lease: held.lease,
            output: Output::Whole(object(&output)),
            remarks: None,
        };
        self.ended(context, Request::Complete(complete)).await
    }

    pub(crate) async fn fail(
        &self,
        held: &Claimed,
        error: &str,
        retryable: bool,
    ) -> Result<Ended, Error> {
        let fail = Fail {
            task: held.task.id,
            lease: held.lease,
            error: error.to_owned(),
            retryable,
            rejected: false,
            remarks: None,
            breach: None,
        };
        self.ended(&caller(), Request::Fail(fail)).await
    }

    pub(crate) async fn release(&self, held: &Claimed) -> Result<Ended, Error> {
        let release = Release {
            task: held.task.id,
            lease: held.lease,
        };
        self.ended(&caller(), Request::Release(release)).await
    }

    pub(crate) async fn renew(&self, held: &Claimed) -> Result<Renewed, Error> {
        self.renew_as(&caller(), held).await
    }

    /// The same for so many milliseconds from now.
    pub(crate) async fn renew_for(&self, held: &Claimed, lease_ms: u64) -> Result<Renewed, Error> {
        self.renewed(&caller(), held, Some(lease_ms)).await
    }

    pub(crate) async fn renew_as(
        &self,
        context: &Context,
        held: &Claimed,
    ) -> Result<Renewed, Error> {
        self.renewed(context, held, None).await
    }

    async fn renewed(
        &self,
        context: &Context,
        held: &Claimed,
        lease_ms: Option<u64>,
    ) -> Result<Renewed, Error> {
        let renew = Renew {
            task: held.task.id,
            lease: held.lease,
            lease_ms,
            progress: None,
            message: None,
            remarks: None,
            output: None,
        };
        match soon(self.service.call(context, Request::Renew(renew))).await? {
            Reply::Renewed(renewed) => Ok(renewed),
            other => panic!("expected a renewal, got {other:?}"),
        }
    }

    /// Time passes, and the server looks at leases.
    pub(crate) async fn after_ms(&self, ms: u64) {
        self.w.clock.advance_ms(ms);
        tokio::time::advance(Duration::from_secs(2)).await;
        quiet().await;
    }

    /// The failed attempts of a task: why, whether there is another one, and what was said.
    pub(crate) async fn failures(&self, name: &str) -> Vec<(FailureReason, bool, String)> {
        let history = self.w.history(flow(name)).await;
        let failure = history.iter().filter_map(|r| match r.event.as_ref() {
            Event::TaskFailed(e) => Some((e.reason, e.will_retry, e.error.clone())),
            _ => None,
        });
        failure.collect()
    }
}

pub(crate) fn methods(names: &[&str]) -> Wanted {
    Wanted::Methods(names.iter().map(|name| Arc::from(*name)).collect())
}

/// Why the lease was not held.
#[track_caller]
pub(crate) fn lost<T: std::fmt::Debug>(result: Result<T, Error>) -> LeaseLoss {
    match result {
        Err(Error::LeaseNotHeld { reason, .. }) => reason,
        other => panic!("expected that the lease is not held, got {other:?}"),
    }
}
