//! A log in memory, a store of webhooks on either engine, and a clock that stands still.

use sqlx::postgres::PgConnectOptions;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use taskledger::clock::{Clock, ManualClock, SharedClock};
use taskledger::sealing::Keyring;
use taskledger::store::memory::MemoryStore;
use taskledger::store::postgres::{Options, migrate};
use taskledger::store::{Append, EventStore, NewEvent};
use taskledger::webhooks::delivery::{
    Attempt, AttemptReport, Deliveries, Due, Health, Lease, Leased, Next, Recorded, Secret,
};
use taskledger::webhooks::endpoint::{EndpointId, Filter, Life, Ordering};
use taskledger::webhooks::outbox::Outbox;
use taskledger::webhooks::store::{Created, DeliveryFilter, DeliveryView, New, Store};
use taskledger_domain::flow::{
    Event, RunEnded, RunKind, RunStarted, RunState, Specification, StatusCounts, TaskCompleted,
    TaskCreated, TaskProgressed, TaskStarted,
};
use taskledger_domain::task::{Labels, Priority, Progress};
use taskledger_domain::{
    CallbackId, EventId, FlowId, Metadata, Payload, Position, RunId, TaskId, Timestamp,
};
use taskledger_testkit::postgres::Database;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Longer than anything here takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// A secret that no file may show.
pub(crate) const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
pub(crate) const TOKEN: &str = "Bearer hunter2-hunter2";
/// 32 bytes each.
pub(crate) const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
pub(crate) const OTHER_KEY: &str = "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

enum Place {
    Folder(TempDir),
    Database(Database),
}

pub(crate) struct World {
    pub(crate) log: Arc<MemoryStore>,
    pub(crate) store: Arc<Store>,
    pub(crate) clock: Arc<ManualClock>,
    place: Place,
}

/// An outbox that runs.
pub(crate) struct Running {
    stop: CancellationToken,
    task: JoinHandle<()>,
    position: tokio::sync::watch::Receiver<Position>,
}

impl Running {
    pub(crate) async fn reaches(&mut self, position: Position) {
        let reached = self.position.wait_for(|at| *at >= position);
        timeout(PATIENCE, reached).await.unwrap().unwrap();
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

pub(crate) fn id(n: u64) -> Uuid {
    let mut bytes = u128::from(n).to_be_bytes();
    bytes[6] = 0x40;
    bytes[8] = 0x80;
    Uuid::from_bytes(bytes)
}

pub(crate) fn task(n: u64) -> TaskId {
    TaskId(id(n))
}

impl World {
    async fn at(place: Place, keys: &str) -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp(1_700_000_000_000_000)));
        let shared: SharedClock = clock.clone();
        Self {
            log: Arc::new(MemoryStore::new(shared.clone())),
            store: Self::open(&place, keys, shared).await.unwrap(),
            clock,
            place,
        }
    }

    async fn open(
        place: &Place,
        keys: &str,
        clock: SharedClock,
    ) -> Result<Arc<Store>, taskledger::webhooks::store::OpenError> {
        let keys = Keyring::parse(keys).unwrap();
        Ok(Arc::new(match place {
            Place::Folder(folder) => Store::of_folder(folder.path(), keys, clock).await?,
            Place::Database(database) => {
                let connect = PgConnectOptions::from_str(database.url()).unwrap();
                let options = Options::new(connect, clock.clone());
                migrate(&options).await.unwrap();
                Store::of_database(&options, keys, clock).await?
            }
        }))
    }

    pub(crate) async fn of_folder() -> Self {
        Self::at(Place::Folder(TempDir::new().unwrap()), KEY).await
    }

    pub(crate) async fn of_database() -> Self {
        Self::at(Place::Database(Database::create().await), KEY).await
    }

    /// The same tables, opened once more with these keys.
    pub(crate) async fn again(
        &self,
        keys: &str,
    ) -> Result<Arc<Store>, taskledger::webhooks::store::OpenError> {
        Self::open(&self.place, keys, self.clock.clone()).await
    }

    /// Everything that lies on the disk of it, or in the columns that hold bytes.
    pub(crate) async fn dump(&self) -> Vec<u8> {
        match &self.place {
            Place::Folder(folder) => {
                let mut all = Vec::new();
                for entry in std::fs::read_dir(folder.path()).unwrap() {
                    all.extend(std::fs::read(entry.unwrap().path()).unwrap());
                }
                all
            }
            Place::Database(database) => {
                let mut db = <sqlx::PgConnection as sqlx::Connection>::connect(database.url())
                    .await
                    .unwrap();
                let all: Vec<String> = sqlx::query_scalar(
                    "SELECT encode(sealed, 'escape') FROM taskledger_webhooks.endpoint_keys
                     UNION ALL SELECT encode(sealed, 'escape') FROM taskledger_webhooks.endpoint_headers
                     UNION ALL SELECT e::TEXT FROM taskledger_webhooks.endpoints e",
                )
                .fetch_all(&mut db)
                .await
                .unwrap();
                all.concat().into_bytes()
            }
        }
    }

    /// Endpoints that want everything, made at once and without secrets.
    pub(crate) async fn many_endpoints(&self, count: u32) {
        let columns = "id, url, description, is_callback, ordering, since, created_at, updated_at, \
            run_ended, failures, window_attempts, window_failures, openings, lease_token";
        let values = "'https://receiver.example/', '', 0, 'task', 0, 0, 0, 0, 0, 0, 0, 0, 0";
        self.execute(
            &format!(
                "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {count})
                 INSERT INTO endpoints ({columns}) SELECT randomblob(16), {values} FROM n"
            ),
            &format!(
                "INSERT INTO taskledger_webhooks.endpoints ({columns})
                 SELECT uuid_send(gen_random_uuid()), {values} FROM generate_series(1, {count})"
            ),
        )
        .await;
    }

    /// Deliveries to an endpoint that have arrived just now; nothing else was ever sent.
    pub(crate) async fn ended_deliveries(&self, endpoint: EndpointId, count: i64) {
        let (id, now) = (endpoint.0.simple(), self.now().0);
        let messages = "(no, id, type, body, created_at)";
        let message = |body: &str| format!("n, 'm' || n, 'task_completed', {body}, {now}");
        let deliveries = "(endpoint, message, is_progress, state, attempts, created_at, ended_at)";
        let delivery = format!("n, 0, 'delivered', 1, {now}, {now}");
        let numbers = format!(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {count})"
        );
        let (lite, full) = (message("x'7b7d'"), message("'\\x7b7d'::BYTEA"));
        self.execute(
            &format!(
                "{numbers} INSERT INTO messages {messages} SELECT {lite} FROM n;
                 {numbers} INSERT INTO deliveries {deliveries}
                    SELECT (SELECT no FROM endpoints WHERE id = x'{id}'), {delivery} FROM n;
                 UPDATE state SET messages = {count}"
            ),
            &format!(
                "SET search_path = taskledger_webhooks;
                 INSERT INTO messages {messages} SELECT {full} FROM generate_series(1, {count}) AS n;
                 INSERT INTO deliveries {deliveries}
                    SELECT (SELECT no FROM endpoints WHERE id = '\\x{id}'::BYTEA), {delivery}
                    FROM generate_series(1, {count}) AS n;
                 UPDATE state SET messages = {count}"
            ),
        )
        .await;
    }

    /// Does this in the tables, behind the back of the store.
    async fn execute(&self, sqlite: &str, postgres: &str) {
        match &self.place {
            Place::Folder(folder) => {
                let url = format!("sqlite://{}/webhooks.db", folder.path().display());
                let mut db = <sqlx::SqliteConnection as sqlx::Connection>::connect(&url)
                    .await
                    .unwrap();
                let sql = sqlx::AssertSqlSafe(sqlite.to_owned());
                sqlx::Executor::execute(&mut db, sqlx::raw_sql(sql))
                    .await
                    .unwrap();
            }
            Place::Database(database) => {
                let mut db = <sqlx::PgConnection as sqlx::Connection>::connect(database.url())
                    .await
                    .unwrap();
                let sql = sqlx::AssertSqlSafe(postgres.to_owned());
                sqlx::Executor::execute(&mut db, sqlx::raw_sql(sql))
                    .await
                    .unwrap();
            }
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn later(&self, seconds: i64) -> Timestamp {
        Timestamp(self.now().0 + seconds * 1_000_000)
    }

    /// An outbox of the log and the store, which is at work.
    pub(crate) fn outbox(&self) -> Running {
        self.outbox_of(self.store.clone())
    }

    pub(crate) fn outbox_of(&self, store: Arc<Store>) -> Running {
        let stop = CancellationToken::new();
        let outbox = Outbox::new(self.log.clone(), store);
        let position = outbox.position();
        Running {
            task: tokio::spawn(outbox.run(stop.clone())),
            stop,
            position,
        }
    }

    /// Notes everything that is in the log.
    pub(crate) async fn note_all(&self) {
        let mut outbox = self.outbox();
        outbox.reaches(self.log.head().await.unwrap()).await;
        outbox.stop().await;
    }

    pub(crate) fn new_endpoint(&self, filter: Filter) -> New {
        New {
            owner: None,
            id: EndpointId(self.clock.uuid()),
            url: Arc::from("https://receiver.example/hook"),
            description: Arc::from(""),
            filter,
            life: Life::Lasting,
            ordering: Ordering::Task,
            schedule: None,
            headers: vec![(Arc::from("authorization"), Secret(Arc::from(TOKEN)))],
            secret: Some(Secret(Arc::from(SECRET))),
            reported: None,
        }
    }

    pub(crate) async fn create(&self, new: New) -> EndpointId {
        let head = self.log.head().await.unwrap();
        let created = self.store.create(&new, head, self.now()).await.unwrap();
        assert!(matches!(created, Created::Yes(_)), "{created:?}");
        new.id
    }

    pub(crate) async fn endpoint(&self) -> EndpointId {
        self.create(self.new_endpoint(Filter::default())).await
    }

    pub(crate) async fn endpoint_with(&self, ordering: Ordering) -> EndpointId {
        let new = New {
            owner: None,
            ordering,
            ..self.new_endpoint(Filter::default())
        };
        self.create(new).await
    }

    pub(crate) async fn push(&self, flow: FlowId, event: Event) -> Position {
        let version = self.log.stream_head(flow).await.unwrap();
        let metadata = Metadata {
            actor: Arc::from("test"),
            correlation: Arc::from("test"),
            causation: None,
            trace: None,
        };
        let id = EventId(self.clock.uuid());
        let event = NewEvent::new(id, self.now(), metadata, event);
        let append = Append {
            stream: flow,
            expected: version.map_or(0, |(version, _)| version),
            events: vec![event],
            claims: Vec::new(),
            fence: None,
        };
        self.log.append(append).await.unwrap();
        self.log.head().await.unwrap()
    }

    /// A task of a flow; the root when `ordinal` is 0.
    pub(crate) async fn created(
        &self,
        flow: u64,
        ordinal: u32,
        user: Option<&str>,
        joins: Option<RunId>,
    ) -> TaskId {
        let task_id = task(flow + u64::from(ordinal));
        let event = Event::TaskCreated(TaskCreated {
            task_id,
            ordinal,
            parent_id: (ordinal > 0).then(|| task(flow)),
            name: "t".to_owned(),
            user_id: user.map(str::to_owned),
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
            labels: Labels::parse(&serde_json::json!({"flow": flow.to_string()})).unwrap(),
            run_id: joins,
        });
        self.push(task(flow).as_flow(), event).await;
        task_id
    }

    pub(crate) async fn started(&self, flow: u64, task_id: TaskId, attempt: u32) -> Position {
        let run_id = RunId(id(9));
        let event = TaskStarted {
            task_id,
            attempt,
            run_id,
            lease: None,
        };
        self.push(task(flow).as_flow(), Event::TaskStarted(event))
            .await
    }

    pub(crate) async fn progressed(&self, flow: u64, task_id: TaskId, of_million: u32) {
        let event = Event::TaskProgressed(TaskProgressed {
            task_id,
            attempt: 1,
            progress: Progress::from_millionths(of_million),
            message: None,
            remarks: None,
        });
        self.push(task(flow).as_flow(), event).await;
    }

    pub(crate) async fn completed(&self, flow: u64, task_id: TaskId) -> Position {
        let event = Event::TaskCompleted(TaskCompleted {
            task_id,
            attempt: 1,
            result: Payload::empty(),
            remarks: None,
            parts: 0,
        });
        self.push(task(flow).as_flow(), event).await
    }

    pub(crate) async fn run_started(
        &self,
        flow: u64,
        run: RunId,
        covers: Vec<(u32, u32)>,
        callback: Option<CallbackId>,
    ) {
        let event = Event::RunStarted(RunStarted {
            run_id: run,
            task_id: task(flow),
            kind: RunKind::Execute,
            covers,
            allow_unknown_executors: false,
            executor_wait_ms: 0,
            wait_bounds: Default::default(),
            callback,
            origin: None,
        });
        self.push(task(flow).as_flow(), event).await;
    }

    pub(crate) async fn run_ended(&self, flow: u64, run: RunId) {
        let event = Event::RunEnded(RunEnded {
            run_id: run,
            task_id: task(flow),
            state: RunState::Completed,
            counts: StatusCounts::default(),
            root: taskledger_domain::testing::root_at_end(),
            others: 0,
            rejected: false,
        });
        self.push(task(flow).as_flow(), event).await;
    }

    /// Takes what can be taken now, for a minute.
    pub(crate) async fn lease(&self) -> Vec<Leased> {
        let until = self.later(60);
        let worker = self.clock.uuid();
        let taken = self.store.lease(worker, self.now(), until, 100);
        taken.await.unwrap()
    }

    /// The lease of the only endpoint that has something due.
    pub(crate) async fn only_lease(&self) -> Lease {
        let leased = self.lease().await;
        assert_eq!(leased.len(), 1, "{leased:?}");
        leased[0].lease.clone()
    }

    pub(crate) async fn due(&self, lease: &Lease) -> Vec<Due> {
        self.store.due(lease, self.now(), &[], 100).await.unwrap()
    }

    pub(crate) async fn tell(&self, lease: &Lease, due: &Due, next: Next) -> Recorded {
        let told = self.told(due, next);
        self.store.record(lease, told).await.unwrap()
    }

    pub(crate) fn told(&self, due: &Due, next: Next) -> AttemptReport {
        let arrived = next == Next::Delivered;
        AttemptReport {
            delivery: due.id,
            attempt: Attempt {
                at: self.now(),
                duration_ms: 3, // the clock stands still meanwhile
                status: Some(if arrived { 200 } else { 500 }),
                error: (!arrived).then_some("status"),
                detail: None,
                remote: Some(Arc::from("192.0.2.1:443")),
                response: Some(Arc::from("text")),
                cause: due.cause,
            },
            next,
            health: Health::default(),
            disable: None,
            say: None,
        }
    }

    /// All deliveries, oldest first.
    pub(crate) async fn deliveries(&self) -> Vec<DeliveryView> {
        let filter = DeliveryFilter::default();
        let mut all = self.store.deliveries(&filter, 100_000).await.unwrap();
        all.reverse();
        all
    }

    /// The states of all deliveries, oldest first.
    pub(crate) async fn states(&self) -> Vec<String> {
        let all = self.deliveries().await;
        all.iter()
            .map(|view| view.state.as_str().to_owned())
            .collect()
    }
}

pub(crate) fn told(due: &Due) -> serde_json::Value {
    serde_json::from_slice(&due.body).unwrap()
}
