//! The agent broker over gRPC: publications that nobody takes yet; and whole ways, from the call that publishes a task
//! to an agent, and from its result back to the requester.
//!
//! Agents and requesters do nothing else, and answer at once. All share the connections of this program.

use super::workflow::IN_FLIGHT;
use crate::args::Args;
use crate::meter::Meter;
use crate::moment::now_us;
use crate::nodes::Nodes;
use crate::report::{Figures, Report, percentile};
use crate::{disk, limit};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use taskledger_eventbus::{
    EventBusClient, PublishTaskRequest, PublishTaskResultRequest, SubscribeToTaskResultsRequest,
    SubscribeToTasksRequest, TaskMessage, TaskResult, TaskStatus,
};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tonic::transport::{Channel, Endpoint};

/// Callers that publish.
const CALLERS: [usize; 2] = [1, IN_FLIGHT];
/// Connections, agents and requesters where many ways are gone at once.
const PEERS: usize = 4;
/// Ways of a round, one at a time and many.
const ONE_AT_A_TIME: usize = 200;
const MANY_AT_A_TIME: usize = 2_000;
/// Events of a publication: created, its run begun. Of a whole way: also started, completed, the run ended.
const EVENTS_OF_PUBLICATION: f64 = 2.0;
const EVENTS_OF_WAY: f64 = 5.0;
/// Waits for the disk of a whole way: published, claimed, ended.
const SYNCS_OF_WAY: f64 = 3.0;
/// Longer than a way takes.
const PATIENCE: Duration = Duration::from_secs(30);
/// What agents ask for, and what nobody does.
const TAKEN: &str = "bench.taken";
const WAITING: &str = "bench.waiting";

type Client = EventBusClient<Channel>;

/// The whole scenario.
pub(crate) async fn broker(args: &Args, report: &mut Report) -> Result<(), String> {
    for callers in CALLERS {
        let nodes = Nodes::start(args, "broker").await?;
        let clients = connected(&nodes).await?;
        published(&clients, callers, args.warm_up(), "warm").await?;
        let mut figures = Figures::default();
        for round in 0..args.rounds() {
            let meter = Meter::start(&nodes).await?;
            let name = round.to_string();
            let mut took = published(&clients, callers, args.seconds(), &name).await?;
            let cost = meter.stop().await?;
            figures.add("rate", "tasks/s", took.len() as f64 / cost.seconds);
            figures.add("p50", "ms", percentile(&mut took, 50.0));
            figures.add("p99", "ms", percentile(&mut took, 99.0));
            figures.cpu(&cost, "task", took.len() as f64);
            figures.syncs(&cost, "task", took.len() as f64);
        }
        let limit = limit::rate_name(args, callers);
        figures.limit("rate", limit, 1.0 / EVENTS_OF_PUBLICATION);
        report.figures(&format!("broker, publish, {callers} callers"), figures);
        nodes.stop().await?;
    }
    for (in_flight, tasks) in [(1, ONE_AT_A_TIME), (IN_FLIGHT, MANY_AT_A_TIME)] {
        let nodes = Nodes::start(args, "broker").await?;
        let clients = connected(&nodes).await?;
        gone(&clients, in_flight, tasks, "warm").await?;
        let mut figures = Figures::default();
        for round in 0..2 * args.rounds() {
            let meter = Meter::start(&nodes).await?;
            let mut ways = gone(&clients, in_flight, tasks, &round.to_string()).await?;
            let cost = meter.stop().await?;
            figures.add("rate", "tasks/s", tasks as f64 / ways.seconds);
            figures.add("p50", "ms", percentile(&mut ways.whole, 50.0));
            figures.add("p99", "ms", percentile(&mut ways.whole, 99.0));
            for (name, percent) in [("p50", 50.0), ("p99", 99.0)] {
                let delay = percentile(&mut ways.delivery, percent);
                figures.add(&format!("publication to delivery, {name}"), "ms", delay);
            }
            figures.cpu(&cost, "task", tasks as f64);
            figures.syncs(&cost, "task", tasks as f64);
        }
        match in_flight {
            // A microsecond, told in milliseconds.
            1 => figures.limit("p50", disk::SYNC, SYNCS_OF_WAY / 1e3),
            many => figures.limit("rate", limit::rate_name(args, many), 1.0 / EVENTS_OF_WAY),
        }
        report.figures(
            &format!("broker, round trip, {in_flight} in flight"),
            figures,
        );
        report.row(
            format!("broker, round trip, {in_flight} in flight: memory of the server, most"),
            "MB",
            &[nodes.peak_memory_mb()?],
        );
        nodes.stop().await?;
    }
    Ok(())
}

/// Connections to the nodes in turn.
async fn connected(nodes: &Nodes) -> Result<Vec<Client>, String> {
    let targets = nodes.targets();
    let mut clients = Vec::new();
    for target in targets.iter().cycle().take(PEERS) {
        let endpoint = Endpoint::from_shared(format!("http://{target}")).map_err(told)?;
        let channel = endpoint.tcp_nodelay(true).connect().await.map_err(told)?;
        clients.push(EventBusClient::new(channel));
    }
    Ok(clients)
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn now() -> SystemTime {
    let micros = u64::try_from(now_us()).unwrap_or_default();
    UNIX_EPOCH + Duration::from_micros(micros)
}

fn task(id: String, task_type: &str, requester: &str) -> PublishTaskRequest {
    PublishTaskRequest {
        task: Some(TaskMessage {
            task_id: id,
            task_type: task_type.to_owned(),
            requester_agent_id: requester.to_owned(),
            created_at: Some(now().into()),
            ..TaskMessage::default()
        }),
    }
}

/// So many callers publish for so long. Milliseconds of each call.
async fn published(
    clients: &[Client],
    callers: usize,
    seconds: f64,
    round: &str,
) -> Result<Vec<f64>, String> {
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let mut calling = JoinSet::new();
    for caller in 0..callers {
        let mut client = clients[caller % clients.len()].clone();
        let prefix = format!("{round}-{caller}");
        calling.spawn(async move {
            let mut took = Vec::new();
            while Instant::now() < until {
                let request = task(format!("{prefix}-{}", took.len()), WAITING, "bench");
                let began = Instant::now();
                client.publish_task(request).await.map_err(told)?;
                took.push(began.elapsed().as_secs_f64() * 1e3);
            }
            Ok::<_, String>(took)
        });
    }
    let mut all = Vec::new();
    while let Some(took) = calling.join_next().await {
        all.extend(took.map_err(told)??);
    }
    Ok(all)
}

/// Ways from a publication to its result.
#[derive(Debug, Default)]
struct Ways {
    seconds: f64,
    /// Milliseconds from a call to the delivery of its task, and to that of its result.
    delivery: Vec<f64>,
    whole: Vec<f64>,
}

/// What the tasks of this program know of the ways that are being gone.
#[derive(Debug, Default)]
struct UnderWay {
    began: HashMap<String, Instant>,
    waiting: HashMap<String, oneshot::Sender<()>>,
    delivery: Vec<f64>,
}

type Shared = Arc<Mutex<UnderWay>>;

/// So many ways, so many at a time.
async fn gone(
    clients: &[Client],
    in_flight: usize,
    tasks: usize,
    round: &str,
) -> Result<Ways, String> {
    let shared = Shared::default();
    let mut helping = JoinSet::new();
    for (n, client) in clients.iter().enumerate() {
        let (agent, requester) = (format!("agent-{n}"), requester(round, n));
        let streams = subscribed(client.clone(), &agent, &requester).await?;
        let (given, results) = streams;
        helping.spawn(work(client.clone(), agent, given, shared.clone()));
        helping.spawn(read(results, shared.clone()));
    }
    let began = Instant::now();
    let mut calling = JoinSet::new();
    for caller in 0..in_flight {
        let peer = caller % clients.len();
        let (client, requester) = (clients[peer].clone(), requester(round, peer));
        let count = tasks / in_flight;
        calling.spawn(go(client, requester, caller, count, shared.clone()));
    }
    let mut ways = Ways::default();
    while let Some(whole) = calling.join_next().await {
        ways.whole.extend(whole.map_err(told)??);
    }
    ways.seconds = began.elapsed().as_secs_f64();
    helping.shutdown().await;
    ways.delivery = std::mem::take(&mut lock(&shared).delivery);
    Ok(ways)
}

fn requester(round: &str, n: usize) -> String {
    format!("requester-{round}-{n}")
}

fn lock(shared: &Shared) -> std::sync::MutexGuard<'_, UnderWay> {
    shared
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

type Subscribed = (tonic::Streaming<TaskMessage>, tonic::Streaming<TaskResult>);

async fn subscribed(
    mut client: Client,
    agent: &str,
    requester: &str,
) -> Result<Subscribed, String> {
    let asked = SubscribeToTasksRequest {
        agent_id: agent.to_owned(),
        task_types: vec![TAKEN.to_owned()],
    };
    let tasks = client.subscribe_to_tasks(asked).await.map_err(told)?;
    let asked = SubscribeToTaskResultsRequest {
        requester_agent_id: requester.to_owned(),
        task_ids: Vec::new(),
    };
    let results = client.subscribe_to_task_results(asked).await;
    Ok((tasks.into_inner(), results.map_err(told)?.into_inner()))
}

/// An agent: each task is done as soon as it is there.
async fn work(
    client: Client,
    agent: String,
    mut given: tonic::Streaming<TaskMessage>,
    shared: Shared,
) {
    let mut ending = JoinSet::new();
    while let Ok(Some(task)) = given.message().await {
        {
            let mut under_way = lock(&shared);
            if let Some(began) = under_way.began.get(&task.task_id) {
                let took = began.elapsed().as_secs_f64() * 1e3;
                under_way.delivery.push(took);
            }
        }
        let result = TaskResult {
            task_id: task.task_id,
            status: TaskStatus::Completed.into(),
            executor_agent_id: agent.clone(),
            completed_at: Some(now().into()),
            ..TaskResult::default()
        };
        let mut client = client.clone();
        ending.spawn(async move {
            let result = Some(result);
            client
                .publish_task_result(PublishTaskResultRequest { result })
                .await
        });
        while ending.try_join_next().is_some() {}
    }
}

/// A requester: whoever waits for a result goes on.
async fn read(mut results: tonic::Streaming<TaskResult>, shared: Shared) {
    while let Ok(Some(result)) = results.message().await {
        if let Some(waiting) = lock(&shared).waiting.remove(&result.task_id) {
            let _ = waiting.send(());
        }
    }
}

/// One way after the other. Milliseconds of each.
async fn go(
    mut client: Client,
    requester: String,
    caller: usize,
    count: usize,
    shared: Shared,
) -> Result<Vec<f64>, String> {
    let mut whole = Vec::with_capacity(count);
    for n in 0..count {
        let id = format!("{requester}-{caller}-{n}");
        let (tell, ended) = oneshot::channel();
        let began = Instant::now();
        {
            let mut under_way = lock(&shared);
            under_way.began.insert(id.clone(), began);
            under_way.waiting.insert(id.clone(), tell);
        }
        let request = task(id, TAKEN, &requester);
        client.publish_task(request).await.map_err(told)?;
        match tokio::time::timeout(PATIENCE, ended).await {
            Ok(Ok(())) => whole.push(began.elapsed().as_secs_f64() * 1e3),
            Ok(Err(_)) => return Err("a stream of results has ended".to_owned()),
            Err(_) => return Err(format!("no result within {PATIENCE:?}")),
        }
    }
    Ok(whole)
}
