//! Workflows whose tasks take their inputs from results, beside the same ones that do not, in the same run; large
//! results; reading a large document.

use super::create::caught_up;
use super::workflow::{CHAIN, Executor, FANS, chain, fan};
use crate::args::Args;
use crate::client::{Client, Request};
use crate::nodes::Nodes;
use crate::report::Report;
use serde_json::{Value, json};
use std::time::Instant;

/// Tasks of the chain that hands on a large result.
const LARGE_CHAIN: usize = 10;
/// Characters of that result: it and what is around it are below the limit of 1 MiB.
const LARGE_CHARS: usize = 1_000_000;
/// Phases of the document.
const PHASES: usize = 1_000;

/// Measures all of it.
pub(crate) async fn wired(args: &Args, report: &mut Report) -> Result<(), String> {
    let chains = (chain(Executor::Pure, CHAIN), "k");
    beside_plain(args, &format!("chain of {CHAIN}"), chains, report).await?;
    let width = FANS[0];
    let fans = (fan(Executor::Pure, width), "k");
    let name = format!("fan-out of {width} with fan-in");
    beside_plain(args, &name, fans, report).await?;
    large(args, report).await?;
    document(args, report).await
}

/// The same tasks, each of which takes `key` from the first of its dependencies.
fn wire(plain: &Value, key: &str) -> Value {
    let mut wired = plain.clone();
    for task in wired["tasks"].as_array_mut().into_iter().flatten() {
        let Some(from) = task["dependencies"][0]["id"].as_str().map(str::to_owned) else {
            continue;
        };
        task["inputs"] = json!({});
        task["schemas"]["wiring"] = json!({key: format!("{from}.{key}")});
    }
    wired
}

/// Milliseconds from submission to end.
async fn timed(client: &mut Client, nodes: &Nodes, request: &Request) -> Result<f64, String> {
    let began = Instant::now();
    client.follow(request).await?;
    let took = began.elapsed().as_secs_f64();
    caught_up(nodes).await?;
    Ok(took * 1e3)
}

/// Round by round one after the other, so that whatever else the machine does meets both.
async fn beside_plain(
    args: &Args,
    name: &str,
    (plain, key): (Value, &str),
    report: &mut Report,
) -> Result<(), String> {
    let nodes = Nodes::start(args, "wired").await?;
    let mut client = Client::connect(&nodes.first().address).await?;
    let requests = [&plain, &wire(&plain, key)].map(|it| Request::call("tasks.execute", it));
    let (mut wired, mut ratios) = (Vec::new(), Vec::new());
    // The first one warms up.
    for round in 0..=2 * args.rounds() {
        let one = timed(&mut client, &nodes, &requests[0]).await?;
        let other = timed(&mut client, &nodes, &requests[1]).await?;
        if round > 0 {
            wired.push(other);
            ratios.push(other / one);
        }
    }
    report.row(format!("{name}, wired: submission to end"), "ms", &wired);
    report.row(format!("{name}, wired: of the same without"), "", &ratios);
    nodes.stop().await
}

/// A large result that each task of a chain takes and gives.
async fn large(args: &Args, report: &mut Report) -> Result<(), String> {
    let nodes = Nodes::start(args, "wired-large").await?;
    let mut client = Client::connect(&nodes.first().address).await?;
    let mut tasks = wire(&chain(Executor::Pure, LARGE_CHAIN), "k");
    tasks["tasks"][1]["inputs"] = json!({"k": "x".repeat(LARGE_CHARS)});
    let request = Request::call("tasks.execute", &tasks);
    let mut took = Vec::new();
    for round in 0..=args.rounds() {
        let ms = timed(&mut client, &nodes, &request).await?;
        if round > 0 {
            took.push(ms);
        }
    }
    let name = format!("chain of {LARGE_CHAIN} that hands on 1 MB: submission to end");
    report.row(name, "ms", &took);
    report.row(
        "chain that hands on 1 MB: memory of the server, most",
        "MB",
        &[nodes.peak_memory_mb()?],
    );
    nodes.stop().await
}

/// `workflows.validate` of a chain of phases with typed inputs and outputs.
async fn document(args: &Args, report: &mut Report) -> Result<(), String> {
    let nodes = Nodes::start(args, "wired-document").await?;
    let mut client = Client::connect(&nodes.first().address).await?;
    let mut text = String::from(
        "openintent: \"1.0\"\ninfo: {name: large}\ntypes:\n  Item: {id: string, tags: array<string>}\nworkflow:\n  p0: {assign: m, outputs: {items: array<Item>, n: number}}\n",
    );
    for k in 1..PHASES {
        let before = k - 1;
        text.push_str(&format!(
            "  p{k}:\n    assign: m\n    depends_on: [p{before}]\n    inputs: {{items: {{from: p{before}.items, type: array<Item>}}, n: p{before}.n}}\n    outputs: {{items: array<Item>, n: number}}\n"
        ));
    }
    let params = json!({"document": text, "strict": true});
    let mut took = Vec::new();
    for round in 0..=4 * args.rounds() {
        let began = Instant::now();
        let answer = client.call("workflows.validate", &params).await?;
        let ms = began.elapsed().as_secs_f64() * 1e3;
        if answer["valid"] != true {
            return Err(format!("the document has errors: {}", answer["errors"]));
        }
        if round > 0 {
            took.push(ms);
        }
    }
    let name = "workflows.validate, 1,000 phases: call";
    report.row(name, "ms", &took);
    nodes.stop().await
}
