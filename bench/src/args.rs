//! What can be asked for on the command line.

use clap::{Parser, ValueEnum};
use std::path::{Path, PathBuf};

/// Measure a server
///
/// Client and server are two processes on this machine, writes are durable, figures are medians of
/// several rounds. A Markdown table goes to standard output, with the limits that were measured in the
/// same run, and the aims.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// The program to measure
    #[arg(long, default_value = "target/release/taskledger")]
    pub(crate) program: PathBuf,
    /// Folder for the data of the server; fresh ones below it are used and removed
    #[arg(long, default_value = "target/bench-data")]
    pub(crate) data_dir: PathBuf,
    /// Where the server keeps its data. `postgres` starts a throwaway server of its own, as
    /// `.ci/with-postgres --durable` does, unless one is named
    #[arg(long, default_value = "sqlite")]
    pub(crate) store: Store,
    /// A Postgres server; fresh databases on it are used and removed. Means `--store postgres`
    #[arg(long)]
    pub(crate) database_url: Option<String>,
    /// Servers that share the database, and the connections
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub(crate) nodes: u16,
    /// Fewer and shorter rounds and a shorter long log: to see whether all is well
    #[arg(long)]
    pub(crate) quick: bool,
    /// Rounds of each scenario; the median counts [default: 5, quick 3]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: Option<u16>,
    /// Seconds of each round with load [default: 1.5, quick 0.6]
    #[arg(long)]
    seconds: Option<f64>,
    /// Tasks of the long log [default: 1000000, quick 200000]
    #[arg(long)]
    long_log_tasks: Option<u64>,
    /// For `growth`: also a log of more than ten million events, which takes some minutes and 15 GB
    #[arg(long)]
    pub(crate) very_long_log: bool,
    /// Only these scenarios, or groups of them (`fanout`), with commas; see `--list`
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Show the scenarios
    #[arg(long)]
    pub(crate) list: bool,
    /// For `wfinstances`: a workflow in WfFormat (wfcommons.org); may be repeated
    #[arg(long)]
    pub(crate) trace: Vec<PathBuf>,
    /// For `fanout`: readers of one stream
    #[arg(long, value_delimiter = ',', default_value = "1000,10000")]
    pub(crate) subscribers: Vec<usize>,
    /// For `fanout`: seconds that readers are left alone; heartbeats come every 15
    #[arg(long, default_value_t = 32)]
    pub(crate) idle_seconds: u64,
    /// For `workers`: the worker, which needs the client beside it to be built (`npm ci && npm run build`)
    #[arg(long, default_value = "clients/typescript/examples/bench-worker.mjs")]
    pub(crate) worker: PathBuf,
    /// For `workers`: Node.js 20 or newer
    #[arg(long, default_value = "node")]
    pub(crate) node: PathBuf,
    /// Also write the figures to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Ask the servers over https: believe certificates that an authority in this file (PEM) has signed. For scenarios
    /// that only call; the others are left out
    #[arg(long, value_name = "FILE", requires_all = ["tls_cert", "tls_key"])]
    pub(crate) ca_file: Option<PathBuf>,
    /// With `--ca-file`: the certificate of the servers (PEM), for the address 127.0.0.1
    #[arg(long, value_name = "FILE", requires = "ca_file")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// With `--ca-file`: its key (PEM), which nobody else may read
    #[arg(long, value_name = "FILE", requires = "ca_file")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Be the server that stores nothing
    #[arg(long, hide = true)]
    pub(crate) serve_limit: bool,
}

/// The files with which servers are asked over https.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tls<'a> {
    pub(crate) authority: &'a Path,
    pub(crate) certificate: &'a Path,
    pub(crate) key: &'a Path,
}

/// A backend of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Store {
    /// The embedded one.
    Sqlite,
    /// A database.
    Postgres,
}

impl Args {
    /// Rounds of a scenario.
    pub(crate) fn rounds(&self) -> usize {
        let default = if self.quick { 3 } else { 5 };
        usize::from(self.rounds.unwrap_or(default))
    }

    /// Rounds of what takes many seconds.
    pub(crate) fn long_rounds(&self) -> usize {
        let most = if self.quick { 1 } else { 3 };
        self.rounds().min(most)
    }

    /// Of a round with load.
    pub(crate) fn seconds(&self) -> f64 {
        let default = if self.quick { 0.6 } else { 1.5 };
        self.seconds.unwrap_or(default).max(0.05)
    }

    /// Seconds of load that does not count.
    pub(crate) fn warm_up(&self) -> f64 {
        self.seconds() / 2.0
    }

    /// Tasks of the long log.
    pub(crate) fn long_log_tasks(&self) -> u64 {
        let default = if self.quick { 200_000 } else { 1_000_000 };
        self.long_log_tasks.unwrap_or(default)
    }

    /// How the servers are asked.
    pub(crate) fn tls(&self) -> Option<Tls<'_>> {
        Some(Tls {
            authority: self.ca_file.as_deref()?,
            certificate: self.tls_cert.as_deref()?,
            key: self.tls_key.as_deref()?,
        })
    }

    /// The store in a few words.
    pub(crate) fn stored(&self) -> String {
        match (&self.database_url, self.nodes) {
            (None, _) => "SQLite".to_owned(),
            (Some(_), 1) => "Postgres".to_owned(),
            (Some(_), nodes) => format!("Postgres, {nodes} nodes"),
        }
    }
}
