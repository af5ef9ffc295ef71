//! Measures a taskledger server: client and server are two processes, writes are durable, figures
//! are medians of several rounds. `bench/README.md` says how it is used and what its figures mean.
//!
//! Here: the table of scenarios. `args` says what can be asked for, `scenarios` what is measured,
//! `limit` and `disk` what the machine can do at best, `report` what comes of it.

mod args;
mod client;
mod disk;
mod fanout;
mod history;
mod limit;
mod load;
mod machine;
mod meter;
mod moment;
mod nodes;
mod place;
mod postgres;
mod process;
mod report;
mod scenarios;
mod server;
mod webhooks;

use args::Args;
use clap::Parser;
use fanout::Part;
use machine::Machine;
use report::Report;
use scenarios::long_log::LongLog;
use scenarios::{
    a2a, a2a_follow, broker, callers, create, growth, hash_chain, large_tree, list, mixed, read,
    rebuild, replay, start, trace, wired, workers, workflow,
};
use std::path::Path;
use std::process::ExitCode;

/// Something to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scenario {
    Limit,
    Start,
    Create,
    Get,
    Tree,
    Chain,
    Fan,
    Independent,
    Workers,
    Broker,
    A2a,
    A2aFollow,
    Wired,
    Mixed,
    Callers,
    Trace,
    List,
    ColdStart,
    Rebuild,
    Replay,
    Growth,
    HashChain,
    LargeTree,
    FanoutServer,
    FanoutStalled,
    FanoutNginx,
    Webhooks,
}

impl Scenario {
    /// Whether all that it asks goes through [`client::Client`], or it asks nothing.
    fn speaks_tls(self) -> bool {
        match self {
            Self::Start
            | Self::Create
            | Self::Get
            | Self::Tree
            | Self::Chain
            | Self::Fan
            | Self::Independent
            | Self::Wired
            | Self::Mixed
            | Self::Trace
            | Self::List
            | Self::ColdStart
            | Self::Rebuild
            | Self::Growth
            | Self::HashChain
            | Self::LargeTree => true,
            // They have connections of their own, or a server of their own.
            Self::Limit
            | Self::Workers
            | Self::Broker
            | Self::A2a
            | Self::A2aFollow
            | Self::Callers
            | Self::Replay
            | Self::FanoutServer
            | Self::FanoutStalled
            | Self::FanoutNginx
            | Self::Webhooks => false,
        }
    }
}

/// Names, whether they run unasked, and what they measure; in the order in which they run, because
/// limits come first, and what shares the long log changes it last.
#[rustfmt::skip]
const SCENARIOS: &[(&str, bool, Scenario, &str)] = &[
    ("limit", true, Scenario::Limit, "what storage and HTTP do at best: plain inserts, a POST that stores nothing"),
    ("hash-chain", true, Scenario::HashChain, "the log alone: appends, and what of them is the SHA-256 chain (SQLite)"),
    ("start", true, Scenario::Start, "start on an empty store, idle memory"),
    ("create", true, Scenario::Create, "tasks.create: 1 to 256 connections, batches of 100, trees of 1,000"),
    ("get", true, Scenario::Get, "tasks.get"),
    ("tree", true, Scenario::Tree, "tasks.tree of 1,000 and 100,000 tasks"),
    ("chain", true, Scenario::Chain, "100 tasks, one after the other, to the end of the stream"),
    ("fan", true, Scenario::Fan, "500 and 10,000 tasks between two, creation included"),
    ("independent", true, Scenario::Independent, "2,000 tasks, each submitted and awaited, 64 in flight"),
    ("workers", true, Scenario::Workers, "tasks done by a Node worker beside the engine's own; idle workers; claims (needs `clients/typescript`, built)"),
    ("broker", true, Scenario::Broker, "the agent broker over gRPC: publications by 1 and 64 callers, whole ways to an agent and back"),
    ("a2a", true, Scenario::A2a, "Agent2Agent: messages that run a task, over each binding, beside tasks.execute"),
    ("a2a-follow", true, Scenario::A2aFollow, "readers of one run: SubscribeToTask beside GET /events"),
    ("wired", true, Scenario::Wired, "tasks that take inputs from results beside the same without, results of 1 MB, a document of 1,000 phases"),
    ("mixed", true, Scenario::Mixed, "80 % reads, 20 % writes"),
    ("callers", true, Scenario::Callers, "users with tokens: beside a flood of another, among strangers; metrics that are read"),
    ("wfinstances", true, Scenario::Trace, "recorded workflows (--trace), or the example of the repository"),
    ("list", true, Scenario::List, "tasks.list with 1,000, 100,000 and 1,000,000 tasks: pages, filters"),
    ("cold-start", true, Scenario::ColdStart, "start on the long log, its files not in memory"),
    ("rebuild", true, Scenario::Rebuild, "read models from the long log"),
    ("replay", true, Scenario::Replay, "reading the log: verify, a stream from the beginning, loading flows"),
    ("growth", true, Scenario::Growth, "cost of a command as flows and logs grow"),
    ("large-tree", false, Scenario::LargeTree, "one tree of 100,000 tasks through its life, and what others feel of it"),
    ("fanout-server", false, Scenario::FanoutServer, "thousands of readers of one stream"),
    ("fanout-stalled", false, Scenario::FanoutStalled, "the same beside readers that do not read"),
    ("fanout-nginx", false, Scenario::FanoutNginx, "the same of nginx with nchan, if it is installed"),
    ("webhooks", false, Scenario::Webhooks, "10,000 endpoints, deliveries, receivers that never answer"),
];

fn main() -> ExitCode {
    let mut args = Args::parse();
    match run(&mut args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &mut Args) -> Result<ExitCode, String> {
    if args.serve_limit {
        return limit::door::serve().map(|()| ExitCode::SUCCESS);
    }
    if args.list {
        for (name, unasked, _, about) in SCENARIOS {
            let mark = if *unasked {
                ""
            } else {
                " (only when asked for)"
            };
            println!("{name:15} {about}{mark}");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut wanted = wanted(&args.only)?;
    found(args)?;
    if let Some(tls) = args.tls() {
        client::speak_tls(tls)?;
        wanted.retain(|scenario| scenario.speaks_tls());
        if wanted.is_empty() {
            return Err("these scenarios do not speak TLS: leave out --ca-file".to_owned());
        }
    }
    if let Some(code) = postgres::provide(args)? {
        return Ok(code);
    }
    if args.nodes > 1 && args.database_url.is_none() {
        return Err("--nodes needs Postgres: a folder has one server".to_owned());
    }
    // The load generator gets one thread: the server needs the other cores more.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| e.to_string())?;
    runtime.block_on(measure(args, &wanted))?;
    Ok(ExitCode::SUCCESS)
}

/// What would otherwise be missed minutes later.
fn found(args: &Args) -> Result<(), String> {
    let missing = |file: &Path, error: String| format!("{}: {error}", file.display());
    if !args.program.is_file() {
        let hint = "no such program; build it with `cargo build --release --workspace`";
        return Err(missing(&args.program, hint.to_owned()));
    }
    let folder = args.json.as_deref().and_then(Path::parent);
    match folder {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            Err(missing(folder, "no such folder".to_owned()))
        }
        Some(_) | None => Ok(()),
    }
}

/// Scenarios by their names; `fanout` means all that begin with `fanout-`.
fn wanted(only: &[String]) -> Result<Vec<Scenario>, String> {
    let is = |name: &str, asked: &str| {
        name.strip_prefix(asked)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let unknown = |asked: &&String| !SCENARIOS.iter().any(|(name, ..)| is(name, asked));
    if let Some(asked) = only.iter().find(unknown) {
        return Err(format!("there is no scenario `{asked}`; see --list"));
    }
    let chosen = SCENARIOS.iter().filter(|(name, unasked, ..)| match only {
        [] => *unasked,
        some => some.iter().any(|asked| is(name, asked)),
    });
    Ok(chosen.map(|(_, _, scenario, _)| *scenario).collect())
}

async fn measure(args: &Args, wanted: &[Scenario]) -> Result<(), String> {
    std::fs::create_dir_all(&args.data_dir)
        .map_err(|e| format!("{}: {e}", args.data_dir.display()))?;
    let machine = Machine::describe(&args.program, &args.data_dir, args.stored())?;
    eprintln!("{}", machine.text());
    let mut report = Report::default();
    let sync = disk::sync_us(&args.data_dir, args.rounds())?;
    report.row(disk::SYNC, "us", &sync);
    let mut long_log = LongLog::default();
    let mut failed = None;
    for scenario in wanted {
        if let Err(error) = one(args, *scenario, &mut long_log, &mut report).await {
            failed = Some(format!("{scenario:?}: {error}"));
            break;
        }
    }
    long_log.remove().await?;
    // Figures that were measured are shown even if a later scenario failed.
    report.judge();
    print!("{}", report.markdown(&machine));
    if let Some(file) = &args.json {
        std::fs::write(file, report.json(&machine))
            .map_err(|e| format!("{}: {e}", file.display()))?;
    }
    failed.map_or(Ok(()), Err)
}

async fn one(
    args: &Args,
    scenario: Scenario,
    long_log: &mut LongLog,
    report: &mut Report,
) -> Result<(), String> {
    match scenario {
        Scenario::Limit => limit::limit(args, report).await,
        Scenario::Start => start::start(args, report).await,
        Scenario::Create => create::create(args, report).await,
        Scenario::Get => read::get(args, report).await,
        Scenario::Tree => read::tree(args, report).await,
        Scenario::Chain => workflow::chains(args, report).await,
        Scenario::Fan => workflow::fans(args, report).await,
        Scenario::Independent => workflow::independent(args, report).await,
        Scenario::Workers => workers::workers(args, report).await,
        Scenario::Broker => broker::broker(args, report).await,
        Scenario::A2a => a2a::a2a(args, report).await,
        Scenario::A2aFollow => a2a_follow::follow(args, report).await,
        Scenario::Wired => wired::wired(args, report).await,
        Scenario::Mixed => mixed::mixed(args, report).await,
        Scenario::Callers => callers::callers(args, report).await,
        Scenario::Trace => trace::traces(args, report).await,
        Scenario::List => list::list(args, long_log, report).await,
        Scenario::ColdStart => start::cold_start(args, long_log, report).await,
        Scenario::Rebuild => rebuild::rebuild(args, long_log, report).await,
        Scenario::Replay => replay::replay(args, long_log, report).await,
        Scenario::Growth => growth::growth(args, long_log, report).await,
        Scenario::HashChain => hash_chain::hash_chain(args, report).await,
        Scenario::LargeTree => large_tree::large_tree(args, report).await,
        Scenario::FanoutServer => fanout::fanout(args, Part::Server, report).await,
        Scenario::FanoutStalled => fanout::fanout(args, Part::Stalled, report).await,
        Scenario::FanoutNginx => fanout::fanout(args, Part::Nginx, report).await,
        Scenario::Webhooks => webhooks::webhooks(args, report).await,
    }
}

#[cfg(test)]
mod tests {
    use super::{SCENARIOS, Scenario, wanted};

    fn names(only: &[&str]) -> Result<Vec<Scenario>, String> {
        let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
        wanted(&only)
    }

    #[test]
    fn scenarios_are_chosen_by_their_names() {
        let unasked = SCENARIOS.iter().filter(|(_, unasked, ..)| *unasked).count();
        assert_eq!(names(&[]).map(|all| all.len()), Ok(unasked));
        assert_eq!(names(&["fan"]), Ok(vec![Scenario::Fan]));
        assert_eq!(names(&["fanout"]).map(|all| all.len()), Ok(3));
        let in_order = Ok(vec![Scenario::Limit, Scenario::List]);
        assert_eq!(names(&["list", "limit"]), in_order);
        assert!(names(&["creat"]).is_err());
    }
}
