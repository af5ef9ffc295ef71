//! Servers that share one place: one, or several nodes of one database.

use crate::args::Args;
use crate::place::Place;
use crate::process;
use crate::server::Server;
use std::time::Duration;

/// How long several nodes take to share their work, at most: a few of their beats.
const SETTLE: Duration = Duration::from_secs(6);

/// Servers on one place.
pub(crate) struct Nodes {
    place: Place,
    servers: Vec<Server>,
    postmaster: Option<u32>,
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
        Self::start_on(args, Place::fresh(args, name).await?, arguments).await
    }

    /// The same on a place that is there.
    pub(crate) async fn start_on(
        args: &Args,
        place: Place,
        arguments: &[&str],
    ) -> Result<Self, String> {
        let mut servers = Vec::new();
        for _ in 0..args.nodes {
            servers.push(Server::start_with(&args.program, &place, arguments).await?);
        }
        if servers.len() > 1 {
            tokio::time::sleep(SETTLE).await;
        }
        let postmaster = place.postmaster().await?;
        Ok(Self {
            place,
            servers,
            postmaster,
        })
    }

    /// Where they keep what they know.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// The first of them, for what needs only one.
    pub(crate) fn first(&self) -> &Server {
        &self.servers[0]
    }

    /// Where the connections of a load go, in turn.
    pub(crate) fn targets(&self) -> Vec<String> {
        self.addresses().map(str::to_owned).collect()
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

    /// The most resident memory that all of them had, each at its own time.
    pub(crate) fn peak_memory_mb(&self) -> Result<f64, String> {
        self.servers.iter().map(Server::peak_memory_mb).sum()
    }

    /// Seconds of processor time of the database so far, if it is on this machine.
    pub(crate) fn database_cpu_seconds(&self) -> Result<Option<f64>, String> {
        self.postmaster.map(process::family_cpu_seconds).transpose()
    }

    /// Ends them and removes the place.
    pub(crate) async fn stop(self) -> Result<(), String> {
        self.kill().remove().await
    }

    /// Ends them as a crash does, and keeps the place.
    pub(crate) fn kill(self) -> Place {
        self.servers.into_iter().for_each(Server::stop);
        self.place
    }

    /// Lets them finish what they do, and keeps the place.
    pub(crate) async fn end(self) -> Result<Place, String> {
        for server in self.servers {
            server.end().await?;
        }
        Ok(self.place)
    }
}
