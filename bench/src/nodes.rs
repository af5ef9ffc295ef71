//! Servers that share one place: one, or several nodes of one database.

use crate::Args;
use crate::place::Place;
use crate::server::Server;
use std::time::Duration;

/// How long several nodes take to share their work, at most: a few of their beats.
const SETTLE: Duration = Duration::from_secs(6);

/// Servers on one place.
pub(crate) struct Nodes {
    place: Place,
    servers: Vec<Server>,
}

impl Nodes {
    /// Starts as many servers as `--nodes` says on a fresh place.
    pub(crate) async fn start(args: &Args, name: &str) -> Result<Self, String> {
        Self::start_with(args, name, &[]).await
    }

    /// The same with more arguments.
    pub(crate) async fn start_with(
        args: &Args,
        name: &str,
        arguments: &[&str],
    ) -> Result<Self, String> {
        let place = Place::fresh(args, name).await?;
        let mut servers = Vec::new();
        for _ in 0..args.nodes {
            servers.push(Server::start_with(&args.program, &place, arguments).await?);
        }
        if servers.len() > 1 {
            tokio::time::sleep(SETTLE).await;
        }
        Ok(Self { place, servers })
    }

    /// The first of them, for what needs only one.
    pub(crate) fn first(&self) -> &Server {
        &self.servers[0]
    }

    /// Where the `n`-th connection goes.
    pub(crate) fn address(&self, n: usize) -> &str {
        &self.servers[n % self.servers.len()].address
    }

    /// Where each of them listens.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = &str> {
        self.servers.iter().map(|server| server.address.as_str())
    }

    /// Resident memory of all.
    pub(crate) fn memory_mb(&self) -> Result<f64, String> {
        self.servers.iter().map(Server::memory_mb).sum()
    }

    /// Seconds of processor time of all so far.
    pub(crate) fn cpu_seconds(&self) -> Result<f64, String> {
        self.servers.iter().map(Server::cpu_seconds).sum()
    }

    /// Ends them and removes the place.
    pub(crate) async fn stop(self) -> Result<(), String> {
        self.servers.into_iter().for_each(Server::stop);
        self.place.remove().await
    }
}
