//! A tree of 100,000 tasks: created in bulk, executed, read, copied and cancelled, while somebody
//! else reads a task that has nothing to do with it.

use crate::args::Args;
use crate::client::Client;
use crate::place::Place;
use crate::report::{Report, percentile};
use crate::server::Server;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Tasks of a flow at most, the root included.
const TASKS: usize = 100_000;
/// Tasks of a call at most.
const TASKS_PER_CALL: usize = 20_000;
const GROUPS: usize = 99;
/// Each task waits for the one so many places before it in its group.
const WIDTH: usize = 10;
/// Between two reads of the other client.
const PROBE_EVERY: Duration = Duration::from_millis(2);
/// Longest wait for the run.
const PATIENCE: Duration = Duration::from_secs(300);

/// Another client, on a thread of its own, that reads one task again and again.
struct Probe {
    stop: Arc<AtomicBool>,
    times_ms: Arc<Mutex<Vec<f64>>>,
    thread: Option<JoinHandle<Result<(), String>>>,
}

impl Probe {
    fn start(address: String, task: Value) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let times_ms = Arc::new(Mutex::new(Vec::new()));
        let (ends, times) = (stop.clone(), times_ms.clone());
        let body =
            json!({"jsonrpc": "2.0", "method": "tasks.get", "id": 1, "params": {"task_id": task}})
                .to_string();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|e| e.to_string())?;
            runtime.block_on(async {
                let mut client = Client::connect(&address).await?;
                while !ends.load(Ordering::Relaxed) {
                    let sent = Instant::now();
                    client.post(&body).await?;
                    let took = sent.elapsed();
                    if let Ok(mut times) = times.lock() {
                        times.push(took.as_secs_f64() * 1e3);
                    }
                    tokio::time::sleep(PROBE_EVERY.saturating_sub(took)).await;
                }
                Ok(())
            })
        });
        Self {
            stop,
            times_ms,
            thread: Some(thread),
        }
    }

    /// What was measured since the last call.
    fn take(&self) -> Vec<f64> {
        self.times_ms
            .lock()
            .map(|mut times| std::mem::take(&mut *times))
            .unwrap_or_default()
    }

    fn end(mut self) -> Result<(), String> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => Err("the probe died".to_owned()),
        }
    }
}

/// The calls that make the tree, each with whole groups, because aliases hold within a call only.
/// In all but the first, `parent_id` is the alias that the first call gave to a group.
fn calls() -> Vec<Vec<Value>> {
    let leaves = TASKS - 1 - GROUPS;
    let mut first = vec![json!({"id": "root", "name": "large tree"})];
    first.extend((0..GROUPS).map(
        |g| json!({"id": format!("g{g}"), "name": format!("group {g}"), "parent_id": "root"}),
    ));
    let mut calls = vec![first];
    for group in 0..GROUPS {
        let members = leaves / GROUPS + usize::from(group < leaves % GROUPS);
        if calls.last().map_or(0, Vec::len) + members > TASKS_PER_CALL {
            calls.push(Vec::new());
        }
        let call = calls.last_mut().expect("there is a call");
        call.extend((0..members).map(|member| {
            let waits = member
                .checked_sub(WIDTH)
                .map(|before| json!({"id": format!("t{group}-{before}")}));
            json!({"id": format!("t{group}-{member}"), "parent_id": format!("g{group}"),
                "name": format!("task {member} of {group}"), "schemas": {"method": "echo_executor"},
                "inputs": {"member": member}, "dependencies": Vec::from_iter(waits)})
        }));
    }
    calls
}

async fn state(client: &mut Client, root: &Value) -> Result<Value, String> {
    let task = client
        .insist("tasks.get", &json!({"task_id": root}), PATIENCE)
        .await?;
    Ok(task["run"]["state"].clone())
}

/// One round; each phase gives its time, its throughput, and how long the other client waited.
pub(crate) async fn large_tree(args: &Args, report: &mut Report) -> Result<(), String> {
    let place = Place::fresh(args, "large").await?;
    let server = Server::start(&args.program, &place).await?;
    let mut client = Client::connect(&server.address).await?;
    let other = client
        .call("tasks.create", &json!({"name": "unrelated"}))
        .await?;
    let probe = Probe::start(server.address.clone(), other["id"].clone());
    let mut phase = |name: &str, began: Instant| {
        let took = began.elapsed().as_secs_f64();
        let mut waits = probe.take();
        report.row(format!("large tree, {name}"), "s", &[took]);
        let p99 = percentile(&mut waits, 99.0);
        let max = waits.last().copied().unwrap_or(0.0);
        report.row(
            format!("large tree, {name}: unrelated tasks.get, p99"),
            "ms",
            &[p99],
        );
        report.row(
            format!("large tree, {name}: unrelated tasks.get, max"),
            "ms",
            &[max],
        );
    };

    tokio::time::sleep(Duration::from_secs(1)).await;
    phase("nothing", Instant::now() - Duration::from_secs(1));

    let began = Instant::now();
    let mut root = Value::Null;
    let mut groups = Value::Null;
    for (k, mut tasks) in calls().into_iter().enumerate() {
        if k > 0 {
            for task in &mut tasks {
                let group = task["parent_id"].as_str().unwrap_or_default();
                task["parent_id"] = groups[group].clone();
            }
        }
        let made = client
            .insist("tasks.create", &json!({ "tasks": tasks }), PATIENCE)
            .await?;
        if k == 0 {
            root = made["id"].clone();
            groups = made["task_ids"].clone();
        }
    }
    phase("create in bulk calls", began);

    let began = Instant::now();
    let all = json!({"task_id": root});
    let bytes = client
        .post(
            &json!({"jsonrpc": "2.0", "id": 1, "method": "tasks.tree", "params": all}).to_string(),
        )
        .await?
        .len();
    phase("tree of pending tasks", began);

    let began = Instant::now();
    let copy = client
        .insist(
            "tasks.copy",
            &json!({"task_id": root, "copy_children": true}),
            PATIENCE,
        )
        .await?;
    phase("copy", began);

    let began = Instant::now();
    client
        .insist(
            "tasks.cancel",
            &json!({"task_id": copy["copied_task_id"], "cascade": true}),
            PATIENCE,
        )
        .await?;
    phase("cancel of the copy", began);

    let began = Instant::now();
    client.insist("tasks.execute", &all, PATIENCE).await?;
    while state(&mut client, &root).await? == "running" {
        if began.elapsed() > PATIENCE {
            return Err("the large tree was not executed in time".to_owned());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let ended = state(&mut client, &root).await?;
    if ended != "completed" {
        return Err(format!("the run of the large tree is {ended}"));
    }
    phase("execute", began);

    let began = Instant::now();
    client
        .post(
            &json!({"jsonrpc": "2.0", "id": 1, "method": "tasks.tree", "params": all}).to_string(),
        )
        .await?;
    phase("tree of completed tasks", began);

    report.row(
        "large tree, answer of tasks.tree",
        "MB",
        &[bytes as f64 / 1e6],
    );
    report.row(
        "large tree, memory of the server",
        "MB",
        &[server.memory_mb()?],
    );
    probe.end()?;
    server.stop();
    place.remove().await
}
