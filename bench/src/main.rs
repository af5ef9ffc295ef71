//! Measures a taskledger server: client and server are two processes, writes are durable, figures
//! are medians of several rounds. Prints a Markdown table, or JSON with `--json`.
//!
//! ```text
//! cargo build --release && cargo run --release -p taskledger-bench
//! ```

mod client;
mod disk;
mod large_tree;
mod report;
mod scenarios;
mod server;

use clap::Parser;
use report::Report;
use server::Server;
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
    /// Rounds of each scenario; the median counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of each round with load
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Only scenarios whose name contains this: start, large-tree, create, get, chain, fan
    #[arg(long)]
    only: Option<String>,
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
    if wanted("start") {
        scenarios::start(args, &mut report).await?;
    }
    if wanted("large-tree") {
        large_tree::large_tree(args, &mut report).await?;
    }
    let server = Server::start(&args.program, &args.data_dir.join("load")).await?;
    for connections in [1, 16, 64] {
        if wanted("create") {
            scenarios::create(args, &server, connections, &mut report).await?;
        }
    }
    if wanted("get") {
        scenarios::get(args, &server, 64, &mut report).await?;
    }
    if wanted("chain") {
        scenarios::workflow(
            args,
            &server,
            "chain of 100",
            scenarios::chain(100),
            &mut report,
        )
        .await?;
    }
    if wanted("fan") {
        scenarios::workflow(
            args,
            &server,
            "fan-out 500 with fan-in",
            scenarios::fan(500),
            &mut report,
        )
        .await?;
    }
    report.row("memory after the load", "MB", &[server.memory_mb()?]);
    server.stop();
    Ok(report)
}
