//! How long a claim takes behind tasks of many methods that wait.

use crate::args::Args;
use crate::client::Client;
use crate::nodes::Nodes;
use crate::report::{Figures, Report};
use serde_json::{Value, json};
use std::time::Instant;

/// Tasks that wait: few, each of a method of its own, and many, of [`METHODS`] methods.
const FEW: usize = 10;
const MANY: usize = 100_000;
const METHODS: usize = 1_000;
/// Tasks of a flow.
const TREE: usize = 1_000;
/// Claims of a round.
const CLAIMS: usize = 500;
/// A server that has much to do at first.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);

/// With few, then with many.
pub(super) async fn waiting(args: &Args, report: &mut Report) -> Result<(), String> {
    let mut p99 = Vec::new();
    for tasks in [FEW, MANY] {
        let nodes = Nodes::start(args, "waiting").await?;
        let mut client = Client::connect(&nodes.first().address).await?;
        let began = Instant::now();
        for first in (0..tasks).step_by(TREE) {
            offer(&mut client, first..tasks.min(first + TREE)).await?;
        }
        let offered = began.elapsed().as_secs_f64();
        // What was offered is stored; claims begin when the rest of the work behind it is done.
        super::super::create::caught_up(&nodes).await?;
        let mut figures = Figures::default();
        for round in 0..=args.rounds() {
            // The first round asks for every method once: later ones are asked for by a worker that is known.
            let claims = if round == 0 { METHODS } else { CLAIMS };
            let mut times_ms = Vec::with_capacity(claims);
            for k in 0..claims {
                let method = (round * CLAIMS + k) * 7 % tasks.min(METHODS);
                let params = json!({"methods": [name(method)]});
                let sent = Instant::now();
                let claims = client.call("tasks.claim", &params).await?;
                times_ms.push(sent.elapsed().as_secs_f64() * 1e3);
                let claim = claims["claims"].get(0).ok_or("a claim got nothing")?;
                give_back(&mut client, claim).await?;
            }
            if round == 0 {
                let value = crate::report::percentile(&mut times_ms, 50.0);
                figures.add("p50 of the first claim of a method", "ms", value);
                continue;
            }
            for (what, percent) in [("p50", 50.0), ("p99", 99.0)] {
                let value = crate::report::percentile(&mut times_ms, percent);
                figures.add(what, "ms", value);
            }
        }
        let name = format!("workers, claim with {tasks} tasks waiting");
        p99.push(crate::report::percentile(&mut figures.values("p99"), 50.0));
        report.figures(&name, figures);
        report.row(format!("{name}: offered in"), "s", &[offered]);
        report.row(
            format!("{name}: memory of the server"),
            "MB",
            &[nodes.memory_mb()?],
        );
        nodes.stop().await?;
    }
    if let [few, many] = p99[..] {
        let name = format!("workers, claim with {MANY} tasks waiting: p99, of that with {FEW}");
        report.row(name, "x", &[many / few]);
    }
    Ok(())
}

fn name(method: usize) -> String {
    format!("method-{method}")
}

/// A flow whose tasks all wait for a worker.
async fn offer(client: &mut Client, tasks: std::ops::Range<usize>) -> Result<(), String> {
    let root = json!({"id": "root", "name": "waiting"});
    let task = |k: usize| {
        json!({"id": format!("t{k}"), "parent_id": "root", "name": format!("task {k}"),
            "schemas": {"method": name(k % METHODS), "type": "remote"}})
    };
    let tasks: Vec<Value> = std::iter::once(root).chain(tasks.map(task)).collect();
    let params = json!({ "tasks": tasks });
    client
        .insist("tasks.execute", &params, PATIENCE)
        .await
        .map(drop)
}

/// The task waits again, so that as many wait as before.
async fn give_back(client: &mut Client, claim: &Value) -> Result<(), String> {
    let params = json!({"task_id": claim["task"]["id"], "lease": claim["lease"]["token"]});
    client.call("tasks.release", &params).await.map(drop)
}
