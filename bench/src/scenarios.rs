//! What is measured.

use crate::Args;
use crate::client::Client;
use crate::nodes::Nodes;
use crate::place::Place;
use crate::report::{Report, percentile};
use crate::server::Server;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Longest wait for a workflow of a few hundred tasks that do nothing.
const WORKFLOW_PATIENCE: Duration = Duration::from_secs(30);

/// Longest wait for read models that are behind after a round of load.
const CATCH_UP_PATIENCE: Duration = Duration::from_secs(60);

/// Start to first answer on an empty store, and memory when idle.
pub(crate) async fn start(args: &Args, report: &mut Report) -> Result<(), String> {
    let (mut starts, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..args.rounds {
        let place = Place::fresh(args, "start").await?;
        let server = Server::start(&args.program, &place).await?;
        starts.push(server.started_in.as_secs_f64() * 1e3);
        memory.push(server.memory_mb()?);
        server.stop();
        place.remove().await?;
    }
    report.row("start to first answer, empty store", "ms", &starts);
    report.row("idle memory, empty store", "MB", &memory);
    Ok(())
}

/// What a load of equal calls gave in one round.
pub(crate) struct Round {
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

/// Calls from `connections` connections, one after the other on each, for `seconds`.
pub(crate) async fn load(
    nodes: &Nodes,
    connections: usize,
    seconds: u64,
    body: impl Fn(usize) -> String,
) -> Result<Round, String> {
    let until = Instant::now() + Duration::from_secs(seconds);
    let began = Instant::now();
    let mut tasks = Vec::with_capacity(connections);
    for k in 0..connections {
        let (address, body) = (nodes.address(k).to_owned(), body(k));
        tasks.push(tokio::spawn(async move {
            let mut client = Client::connect(&address).await?;
            let mut times = Vec::new();
            while Instant::now() < until {
                let sent = Instant::now();
                let answer = client.post(&body).await?;
                if !answer.windows(9).any(|w| w == b"\"result\":") {
                    return Err(String::from_utf8_lossy(answer).into_owned());
                }
                times.push(sent.elapsed().as_secs_f64() * 1e3);
            }
            Ok(times)
        }));
    }
    let mut times = Vec::new();
    for task in tasks {
        times.append(&mut task.await.map_err(|e| e.to_string())??);
    }
    let per_second = times.len() as f64 / began.elapsed().as_secs_f64();
    Ok(Round {
        per_second,
        p50_ms: percentile(&mut times, 50.0),
        p99_ms: percentile(&mut times, 99.0),
    })
}

/// Events of the log, and transactions that made them durable, of all nodes together.
async fn log_figures(nodes: &Nodes) -> Result<(f64, f64), String> {
    let (mut head, mut commits) = (0.0_f64, 0.0);
    for address in nodes.addresses() {
        let mut client = Client::connect(address).await?;
        let health = client.call("system.health", &json!({})).await?;
        let figure = |name: &str| health["log"][name].as_f64().unwrap_or(0.0);
        head = head.max(figure("head"));
        commits += figure("commits");
    }
    Ok((head, commits))
}

/// `tasks.create`, one task a call; each round ends with a strong `tasks.list`, so the read models
/// have caught up.
pub(crate) async fn create(
    args: &Args,
    nodes: &Nodes,
    connections: usize,
    report: &mut Report,
) -> Result<(), String> {
    let body = json!({"jsonrpc": "2.0", "method": "tasks.create", "id": 1, "params": {
        "name": "Measured task", "user_id": "bench", "priority": 2,
        "inputs": {"url": "https://example.com", "timeout": 60},
        "schemas": {"method": "echo_executor"}, "dependencies": []}})
    .to_string();
    load(nodes, connections, 1, |_| body.clone()).await?;
    let (mut rate, mut p50, mut p99, mut syncs, mut cpu, mut caught_up) =
        (vec![], vec![], vec![], vec![], vec![], vec![]);
    for _ in 0..args.rounds {
        let (before, cpu_before) = (log_figures(nodes).await?, nodes.cpu_seconds()?);
        let round = load(nodes, connections, args.seconds, |_| body.clone()).await?;
        let (after, cpu_after) = (log_figures(nodes).await?, nodes.cpu_seconds()?);
        let waited = Instant::now();
        Client::connect(&nodes.first().address)
            .await?
            .insist("tasks.list", &json!({"limit": 1}), CATCH_UP_PATIENCE)
            .await?;
        caught_up.push(waited.elapsed().as_secs_f64() * 1e3);
        let tasks = after.0 - before.0;
        syncs.push((after.1 - before.1) / tasks);
        cpu.push((cpu_after - cpu_before) * 1e6 / tasks);
        rate.push(round.per_second);
        p50.push(round.p50_ms);
        p99.push(round.p99_ms);
    }
    let name = |what: &str| format!("tasks.create, {connections} connections: {what}");
    report.row(name("rate"), "1/s", &rate);
    report.row(name("p50"), "ms", &p50);
    report.row(name("p99"), "ms", &p99);
    report.row(name("syncs a task"), "", &syncs);
    report.row(name("server CPU a task"), "us", &cpu);
    report.row(name("read models behind at the end"), "ms", &caught_up);
    Ok(())
}

/// `tasks.get` of one task.
pub(crate) async fn get(
    args: &Args,
    nodes: &Nodes,
    connections: usize,
    report: &mut Report,
) -> Result<(), String> {
    let mut client = Client::connect(&nodes.first().address).await?;
    let created = client
        .call(
            "tasks.create",
            &json!({"name": "Read task", "inputs": {"a": 1}}),
        )
        .await?;
    let body = json!({"jsonrpc": "2.0", "method": "tasks.get", "id": 1, "params": {"task_id": created["id"]}}).to_string();
    let (mut rate, mut p99) = (vec![], vec![]);
    for _ in 0..args.rounds {
        let round = load(nodes, connections, args.seconds.min(2), |_| body.clone()).await?;
        rate.push(round.per_second);
        p99.push(round.p99_ms);
    }
    report.row(
        format!("tasks.get, {connections} connections: rate"),
        "1/s",
        &rate,
    );
    report.row(
        format!("tasks.get, {connections} connections: p99"),
        "ms",
        &p99,
    );
    Ok(())
}

/// `len` echo tasks, each waiting for the one before.
pub(crate) fn chain(len: usize) -> Value {
    let mut tasks = vec![json!({"id": "root", "name": "chain"})];
    for k in 0..len {
        let waits: Vec<Value> = k
            .checked_sub(1)
            .map(|before| json!({"id": format!("t{before}")}))
            .into_iter()
            .collect();
        tasks.push(
            json!({"id": format!("t{k}"), "parent_id": "root", "name": format!("task {k}"),
            "schemas": {"method": "echo_executor"}, "inputs": {"k": k}, "dependencies": waits}),
        );
    }
    json!({ "tasks": tasks })
}

/// One task, `width` tasks that wait for it, one that waits for all of them.
pub(crate) fn fan(width: usize) -> Value {
    let task = |id: String, waits: Vec<Value>| json!({"id": id, "parent_id": "root", "name": id, "schemas": {"method": "echo_executor"}, "dependencies": waits});
    let mut tasks = vec![
        json!({"id": "root", "name": "fan"}),
        task("first".to_owned(), vec![]),
    ];
    tasks.extend((0..width).map(|k| task(format!("t{k}"), vec![json!({"id": "first"})])));
    tasks.push(task(
        "last".to_owned(),
        (0..width).map(|k| json!({"id": format!("t{k}")})).collect(),
    ));
    json!({ "tasks": tasks })
}

/// A workflow from its submission to the end of its run, as the server recorded it (creation of the
/// root to its completion) and as a client that polls sees it.
pub(crate) async fn workflow(
    args: &Args,
    nodes: &Nodes,
    name: &str,
    params: Value,
    report: &mut Report,
) -> Result<(), String> {
    let mut client = Client::connect(&nodes.first().address).await?;
    let (mut seen, mut syncs) = (vec![], vec![]);
    for round in 0..=args.rounds {
        let (_, before) = log_figures(nodes).await?;
        let began = Instant::now();
        let started = client.call("tasks.execute", &params).await?;
        let get = json!({"task_id": started["root_task_id"]});
        loop {
            let root = client.call("tasks.get", &get).await?;
            match root["status"].as_str() {
                Some("completed") => break,
                Some("pending" | "in_progress") if began.elapsed() < WORKFLOW_PATIENCE => {}
                other => return Err(format!("{name} ended as {other:?}: {}", root["error"])),
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let (_, after) = log_figures(nodes).await?;
        // The first round warms up.
        if round > 0 {
            seen.push(began.elapsed().as_secs_f64() * 1e3);
            syncs.push(after - before);
        }
    }
    report.row(format!("{name}: submission to end"), "ms", &seen);
    report.row(format!("{name}: syncs"), "", &syncs);
    Ok(())
}
