//! Measures how fast the read models take events, and how fast they answer.
//!
//! `cargo run --release -p taskledger-projections --example feeding -- [flows] [tasks per flow] [URL]`
//!
//! Without a URL on SQLite, in a folder for temporary files; with `postgres://..` in that database.
#![allow(clippy::unwrap_used, reason = "a measurement may stop on any error")]

use sqlx::postgres::PgConnectOptions;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;
use taskledger_domain::flow::{
    Event, RunKind, RunStarted, Specification, TaskCompleted, TaskCreated, TaskStarted,
};
use taskledger_domain::task::{Priority, Status};
use taskledger_domain::{EventId, FlowId, Metadata, Payload, Recorded, RunId, TaskId, Timestamp};
use taskledger_projections::{Found, ListFilter, Options, Order, ReadModels, Start};
use uuid::Uuid;

/// Events in one batch, as the server feeds them.
const BATCH: usize = 2048;

fn id(n: u64) -> Uuid {
    let spread = u128::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834);
    uuid::Builder::from_random_bytes(spread.to_be_bytes()).into_uuid()
}

struct Log(Vec<Arc<Recorded>>, u64);

impl Log {
    fn push(&mut self, flow: FlowId, event: Event) {
        self.1 += 1;
        let time = Timestamp(1_700_000_000_000_000 + self.1 as i64 * 100);
        self.0.push(Arc::new(Recorded {
            position: self.1,
            flow,
            version: 1,
            id: EventId(Uuid::nil()),
            time,
            recorded_at: time,
            metadata: Metadata {
                actor: "anonymous".into(),
                correlation: "measurement".into(),
                causation: None,
                trace: None,
            },
            event: Arc::new(event),
        }));
    }
}

async fn feed(models: &ReadModels, name: &str, events: &[Arc<Recorded>]) {
    let start = Instant::now();
    for batch in events.chunks(BATCH) {
        models.apply(batch).await.unwrap();
    }
    let seconds = start.elapsed().as_secs_f64();
    let rate = events.len() as f64 / seconds;
    println!("{name}: {} events, {rate:.0}/s", events.len());
}

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().map_or(default, |a| a.parse().unwrap());
    let (flows, size): (u64, u64) = (number(100_000), number(1));
    let url = arguments.next();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("read_models.db");
    let options = match url {
        None => Options::new(path),
        Some(url) => Options::postgres(PgConnectOptions::from_str(&url).unwrap()),
    };
    let (models, found) = ReadModels::open(&options).await.unwrap();
    assert_eq!(found, Found::Nothing, "it measures from the beginning");
    let mut log = Log(Vec::new(), 0);
    for f in 0..flows {
        let flow = TaskId(id(f * size + 1)).as_flow();
        for n in 0..size {
            let created = TaskCreated {
                task_id: TaskId(id(f * size + n + 1)),
                ordinal: n as u32,
                parent_id: (n > 0).then(|| flow.root()),
                name: format!("task {n}"),
                user_id: Some(format!("user {}", f % 100)),
                priority: Priority::NORMAL,
                dependencies: Vec::new(),
                specification: Specification {
                    inputs: Payload::parse(r#"{"url":"https://example.com","timeout":60}"#)
                        .unwrap(),
                    schemas: Some(Payload::parse(r#"{"method":"echo_executor"}"#).unwrap()),
                    params: None,
                    method: Some("echo_executor".to_owned()),
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
                labels: taskledger_domain::task::Labels::default(),
                run_id: None,
            };
            log.push(flow, Event::TaskCreated(created));
        }
    }
    feed(&models, "create", &log.0).await;
    log.0.clear();
    for f in 0..flows {
        let root = TaskId(id(f * size + 1));
        let run_id = RunId(id(1_000_000_000 + f));
        let run = RunStarted {
            run_id,
            task_id: root,
            kind: RunKind::Execute,
            covers: vec![(0, size as u32 - 1)],
            allow_unknown_executors: false,
            executor_wait_ms: 0,
            wait_bounds: Default::default(),
            callback: None,
            origin: None,
        };
        log.push(root.as_flow(), Event::RunStarted(run));
        for n in 0..size {
            let task_id = TaskId(id(f * size + n + 1));
            let attempt = 1;
            let started = TaskStarted {
                task_id,
                attempt,
                run_id,
                lease: None,
            };
            log.push(root.as_flow(), Event::TaskStarted(started));
            let completed = TaskCompleted {
                task_id,
                attempt,
                result: Payload::parse(r#"{"ok":true}"#).unwrap(),
                remarks: None,
                parts: 0,
            };
            log.push(root.as_flow(), Event::TaskCompleted(completed));
        }
    }
    feed(&models, "run, start, complete", &log.0).await;
    let filter = ListFilter {
        status: Some(Status::Completed),
        ..ListFilter::default()
    };
    for (name, start) in [
        ("first page", Start::Offset(0)),
        ("offset 90 %", Start::Offset(flows * size * 9 / 10)),
    ] {
        let now = Instant::now();
        let list = models.list(&filter, Order::Descending, 100, start).await;
        let list = list.unwrap();
        println!(
            "{name}: {} of {} in {:?}",
            list.tasks.len(),
            list.total,
            now.elapsed()
        );
    }
    let root = TaskId(id(1));
    let now = Instant::now();
    let mut tree = models.tree(root).await.unwrap().unwrap();
    let mut tasks = 0;
    while !tree.is_ended() {
        tasks += tree.next().await.unwrap().len();
    }
    println!("tree: {tasks} tasks in {:?}", now.elapsed());
    let now = Instant::now();
    for _ in 0..1000 {
        models.get(root).await.unwrap();
    }
    println!("get: {:?}", now.elapsed() / 1000);
}
