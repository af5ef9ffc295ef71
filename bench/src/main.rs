//! Measures a taskledger server: client and server are two processes, writes are durable, figures
//! are medians of several rounds. Prints a Markdown table, or JSON with `--json`.
//!
//! ```text
//! cargo build --release && cargo run --release -p taskledger-bench
//! .ci/with-postgres --durable sh -c 'target/release/taskledger-bench --nodes 3 \
//!     --database-url "$TASKLEDGER_TEST_POSTGRES"'
//! target/release/taskledger-bench --only fanout --rounds 3
//! ```
//!
//! `fanout` needs more than 10,000 open files (`ulimit -Hn`). nginx with nchan is measured in the same
//! run when it is installed (Debian: `nginx libnginx-mod-nchan`), by the same client and on the same
//! machine; nchan keeps events in memory, this server makes them durable before it tells anybody.
//! Delays: from the server's decision here, from the publisher's request there, to the reader.

mod client;
mod disk;
mod fanout;
mod large_tree;
mod limit;
mod moment;
mod nodes;
mod place;
mod process;
mod report;
mod scenarios;
mod server;
mod webhooks;

use clap::Parser;
use nodes::Nodes;
use report::Report;
use std::path::PathBuf;
use std::process::ExitCode;

/// Measure a server
#[derive(Debug, Parser)]
struct Args {
    /// The program to measure
    #[arg(long, default_value = "target/release/taskledger")]
    program: PathBuf,
    /// Folder for the data of the server; a fresh one below it is used and removed
    #[arg(long, default_value = "target/bench-data")]
    data_dir: PathBuf,
    /// A Postgres server; a fresh database on it is used and removed. Without, the embedded store
    #[arg(long)]
    database_url: Option<String>,
    /// Servers that share the database, and the connections
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=16))]
    nodes: u16,
    /// Rounds of each scenario; the median counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of each round with load
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Only scenarios whose name contains this: limit, start, large-tree, create, get, chain, fan;
    /// and these, which run only when they are asked for: fanout-server, fanout-stalled, fanout-nginx, webhooks
    #[arg(long)]
    only: Option<String>,
    /// Readers of one stream, for `fanout`
    #[arg(long, value_delimiter = ',', default_value = "1000,10000")]
    subscribers: Vec<usize>,
    /// Seconds that readers are left alone, for `fanout`: heartbeats come every 15
    #[arg(long, default_value_t = 32)]
    idle_seconds: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let result = runtime
        .map_err(|e| e.to_string())
        .and_then(|runtime| runtime.block_on(run(&args)));
    match result {
        Ok(report) => {
            if args.json {
                println!("{}", report.json());
            } else {
                print!("{}", report.markdown());
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &Args) -> Result<Report, String> {
    if args.nodes > 1 && args.database_url.is_none() {
        return Err("--nodes needs --database-url: a folder has one server".to_owned());
    }
    let mut report = Report::default();
    let wanted = |name: &str| {
        args.only
            .as_ref()
            .is_none_or(|only| name.contains(only.as_str()))
    };
    std::fs::create_dir_all(&args.data_dir)
        .map_err(|e| format!("{}: {e}", args.data_dir.display()))?;
    report.row(
        "disk: append 4 KiB + fdatasync, p50",
        "us",
        &disk::sync_us(&args.data_dir, args.rounds)?,
    );
    if wanted("limit") {
        limit::limit(args, &mut report).await?;
    }
    if wanted("start") {
        scenarios::start(args, &mut report).await?;
    }
    if wanted("large-tree") {
        large_tree::large_tree(args, &mut report).await?;
    }
    let asked = |name: &str| args.only.is_some() && wanted(name);
    let parts = fanout::Parts {
        server: asked("fanout-server"),
        stalled: asked("fanout-stalled"),
        nginx: asked("fanout-nginx"),
    };
    if parts.any() {
        fanout::fanout(args, parts, &mut report).await?;
    }
    if asked("webhooks") {
        webhooks::webhooks(args, &mut report).await?;
    }
    let under_load = ["create", "get", "chain", "fan"];
    if !under_load.into_iter().any(wanted) {
        return Ok(report);
    }
    let nodes = Nodes::start(args, "load").await?;
    for connections in [1, 16, 64] {
        if wanted("create") {
            scenarios::create(args, &nodes, connections, &mut report).await?;
        }
    }
    for connections in [1, 16, 64] {
        report.ratio(
            format!("tasks.create, {connections} connections: rate against the limit"),
            &format!("tasks.create, {connections} connections: rate"),
            &limit::rate_name(args, connections),
        );
    }
    if wanted("get") {
        scenarios::get(args, &nodes, 64, &mut report).await?;
    }
    if wanted("chain") {
        scenarios::workflow(
            args,
            &nodes,
            "chain of 100",
            scenarios::chain(100),
            &mut report,
        )
        .await?;
    }
    if wanted("fan") {
        scenarios::workflow(
            args,
            &nodes,
            "fan-out 500 with fan-in",
            scenarios::fan(500),
            &mut report,
        )
        .await?;
    }
    report.row("memory after the load", "MB", &[nodes.memory_mb()?]);
    nodes.stop().await?;
    Ok(report)
}
