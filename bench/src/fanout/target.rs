//! What is measured: this server, or nginx with nchan.

use super::nginx::Nginx;
use super::publisher::Source;
use crate::args::Args;
use crate::place::Place;
use crate::server::Server;

/// Room for connections beside the subscribers'.
const CONNECTIONS_BESIDE: usize = 500;

/// A running server.
pub(crate) enum Target {
    Ours(Server, Place),
    Nginx(Nginx),
}

impl Target {
    /// This server on a fresh place, with room for so many subscribers.
    pub(crate) async fn ours(args: &Args, subscribers: usize) -> Result<Self, String> {
        let place = Place::fresh(args, "fanout").await?;
        let streams = subscribers + CONNECTIONS_BESIDE;
        // Nine tenths of the connections may be streams.
        let connections = (streams * 10 / 9 + CONNECTIONS_BESIDE).to_string();
        let streams = streams.to_string();
        let room = ["--max-streams", &streams, "--max-connections", &connections];
        let server = Server::start_with(&args.program, &place, &room).await?;
        Ok(Self::Ours(server, place))
    }

    /// nginx, in a folder beside.
    pub(crate) async fn nginx(args: &Args) -> Result<Self, String> {
        Ok(Self::Nginx(
            Nginx::start(args.data_dir.join("nginx")).await?,
        ))
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Ours(..) => "fan-out",
            Self::Nginx(_) => "fan-out of nginx with nchan",
        }
    }

    pub(crate) fn address(&self) -> &str {
        match self {
            Self::Ours(server, _) => &server.address,
            Self::Nginx(nginx) => &nginx.address,
        }
    }

    pub(crate) fn source(&self) -> Source {
        match self {
            Self::Ours(..) => Source::Create,
            Self::Nginx(_) => Source::Post,
        }
    }

    pub(crate) fn memory_kib(&self) -> Result<f64, String> {
        match self {
            Self::Ours(server, _) => Ok(server.memory_mb()? * 1024.0),
            Self::Nginx(nginx) => nginx.memory_kib(),
        }
    }

    pub(crate) fn cpu_seconds(&self) -> Result<f64, String> {
        match self {
            Self::Ours(server, _) => server.cpu_seconds(),
            Self::Nginx(nginx) => nginx.cpu_seconds(),
        }
    }

    pub(crate) async fn stop(self) -> Result<(), String> {
        match self {
            Self::Ours(server, place) => {
                server.stop();
                place.remove().await
            }
            Self::Nginx(nginx) => {
                drop(nginx);
                Ok(())
            }
        }
    }
}

/// A request for what happens from now on, or from the beginning.
pub(crate) fn request(query: &str) -> String {
    format!("GET /events{query} HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n")
}
