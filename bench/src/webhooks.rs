//! Webhooks: what 10,000 endpoints cost those who append, how many deliveries a second there are, and
//! whether a receiver that never answers concerns the others.

mod receiver;

use crate::args::Args;
use crate::client::{Client, Request};
use crate::load::{Call, Round, Until, load};
use crate::moment::now_us;
use crate::nodes::Nodes;
use crate::process;
use crate::report::{Report, percentile};
use receiver::Receiver;
use serde_json::{Value, json};
use std::time::Duration;

/// Endpoints that want one event.
const ENDPOINTS: usize = 10_000;
/// Connections that append.
const CONNECTIONS: usize = 16;
/// Receivers that answer.
const HEALTHY: usize = 100;
/// Events a second while delays are measured: each goes to every healthy receiver.
const EVENTS_PER_SECOND: u32 = 3;
/// Events at once while the rate is measured.
const BURST: usize = 50;
/// For all deliveries of a round.
const PATIENCE: Duration = Duration::from_secs(300);
/// Receivers of ours are on this machine.
const ALLOW: [&str; 2] = ["--egress-allow-net", "127.0.0.0/8"];

/// The whole scenario.
pub(crate) async fn webhooks(args: &Args, report: &mut Report) -> Result<(), String> {
    report.row(
        "webhooks: load of the machine before",
        "",
        &[process::load()?],
    );
    appends(args, report).await?;
    neighbours(args, report).await
}

/// An endpoint for status updates of a user's tasks, or of all.
async fn endpoint(client: &mut Client, url: &str, user: Option<&str>) -> Result<(), String> {
    let mut params = json!({"url": url, "events": ["task_status_update"]});
    if let Some(user) = user {
        params["user_id"] = json!(user);
    }
    client.call("webhooks.create", &params).await.map(drop)
}

fn task(user: &str) -> Value {
    json!({"name": "told to receivers", "user_id": user})
}

/// `tasks.create` without endpoints, with many, and with many of which each wants an event now.
async fn appends(args: &Args, report: &mut Report) -> Result<(), String> {
    let receiver = Receiver::start()?;
    let nodes = Nodes::start_with(args, "webhooks", &ALLOW).await?;
    let calls = Call::again(Request::call("tasks.create", &task("many")));
    let targets = nodes.targets();
    let append = |seconds| {
        load(&targets, CONNECTIONS, Until::Seconds(seconds), |_| {
            calls.clone()
        })
    };
    append(args.warm_up()).await?;

    let mut rounds: Vec<(&str, Vec<Round>)> = Vec::new();
    let mut plain = Vec::new();
    for _ in 0..args.rounds() {
        plain.push(append(args.seconds()).await?);
    }
    rounds.push(("no endpoint", plain));

    // A connection on which nothing happens is closed, so each phase has its own.
    let mut client = Client::connect(&nodes.first().address).await?;
    for k in 0..ENDPOINTS {
        let url = format!(
            "http://127.0.{}.{}:{}/",
            k / 250,
            k % 250 + 1,
            receiver.port
        );
        endpoint(&mut client, &url, Some("watched")).await?;
    }
    let mut idle = Vec::new();
    for _ in 0..args.rounds() {
        idle.push(append(args.seconds()).await?);
    }
    rounds.push(("10,000 endpoints that want other events", idle));

    let (mut told, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..args.rounds() {
        let began = now_us();
        let mut client = Client::connect(&nodes.first().address).await?;
        client.call("tasks.create", &task("watched")).await?;
        told.push(append(args.seconds()).await?);
        let all = |received: &receiver::Received| received.delays_ms.len() >= ENDPOINTS;
        if !receiver.wait(PATIENCE, all).await {
            return Err(format!(
                "of {ENDPOINTS} messages {} came",
                receiver.take().delays_ms.len()
            ));
        }
        let received = receiver.take();
        rates.push(received.delays_ms.len() as f64 * 1e6 / (received.last_us - began) as f64);
    }
    rounds.push(("one event to 10,000 endpoints meanwhile", told));
    for (name, rounds) in rounds {
        let mut row = |what: &str, unit, figure: fn(&Round) -> f64| {
            let figures: Vec<f64> = rounds.iter().map(figure).collect();
            report.row(
                format!("tasks.create, 16 connections, {name}: {what}"),
                unit,
                &figures,
            );
        };
        row("rate", "1/s", Round::per_second);
        row("p50", "ms", Round::p50_ms);
        row("p99", "ms", Round::p99_ms);
    }
    report.row(
        "webhooks: one event to 10,000 endpoints under that load, deliveries",
        "1/s",
        &rates,
    );
    nodes.stop().await
}

/// Delays of receivers that answer, alone and beside one that does not.
async fn neighbours(args: &Args, report: &mut Report) -> Result<(), String> {
    let receiver = Receiver::start()?;
    let nodes = Nodes::start_with(args, "webhooks", &ALLOW).await?;
    let mut client = Client::connect(&nodes.first().address).await?;
    for k in 1..=HEALTHY {
        let url = format!("http://127.0.1.{k}:{}/", receiver.port);
        endpoint(&mut client, &url, None).await?;
    }
    healthy(args, &mut client, &receiver, "100 receivers", report).await?;

    let mut rates = Vec::new();
    for _ in 0..args.rounds() {
        let began = now_us();
        for _ in 0..BURST {
            client.call("tasks.create", &task("all")).await?;
        }
        let received = arrived(&receiver, BURST * HEALTHY).await?;
        rates.push(received.delays_ms.len() as f64 * 1e6 / (received.last_us - began) as f64);
    }
    report.row(
        "webhooks: 50 events to 100 receivers, deliveries",
        "1/s",
        &rates,
    );

    endpoint(
        &mut client,
        &format!("http://127.0.2.1:{}/dead", receiver.port),
        None,
    )
    .await?;
    let beside = "100 receivers beside one that never answers";
    let unanswered = healthy(args, &mut client, &receiver, beside, report).await?;
    if unanswered == 0 {
        return Err("the receiver that never answers was not asked".to_owned());
    }
    nodes.stop().await
}

/// Events at an even pace, and how late they come; gives how many requests got no answer.
async fn healthy(
    args: &Args,
    client: &mut Client,
    receiver: &Receiver,
    who: &str,
    report: &mut Report,
) -> Result<usize, String> {
    let (mut p50, mut p99, mut unanswered) = (Vec::new(), Vec::new(), 0);
    for _ in 0..args.rounds() {
        let events = (f64::from(EVENTS_PER_SECOND) * args.seconds()).ceil() as u64;
        let mut pace = tokio::time::interval(Duration::from_secs(1) / EVENTS_PER_SECOND);
        for _ in 0..events {
            pace.tick().await;
            client.call("tasks.create", &task("all")).await?;
        }
        let events = usize::try_from(events).map_err(|e| e.to_string())?;
        let received = arrived(receiver, events * HEALTHY).await?;
        unanswered += received.unanswered;
        let mut delays = received.delays_ms;
        p50.push(percentile(&mut delays, 50.0));
        p99.push(percentile(&mut delays, 99.0));
    }
    report.row(format!("webhooks, {who}: delay, p50"), "ms", &p50);
    report.row(format!("webhooks, {who}: delay, p99"), "ms", &p99);
    Ok(unanswered)
}

/// Takes so many messages, when they have come.
async fn arrived(receiver: &Receiver, messages: usize) -> Result<receiver::Received, String> {
    let all = |received: &receiver::Received| received.delays_ms.len() >= messages;
    if receiver.wait(PATIENCE, all).await {
        return Ok(receiver.take());
    }
    let came = receiver.take().delays_ms.len();
    Err(format!("of {messages} messages {came} came"))
}
