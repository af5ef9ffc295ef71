//! Clients: what others have written to read streams of events, to call on sockets and to check signed messages works
//! with this server, over the network; `.ci/tools.sh` puts it below `target/clients`, at the versions that the locks
//! beside this file name. So do the packages of `clients/` (`packages.rs`) and the examples that use them
//! (`examples.rs`), and agents that others could have written (`agents.rs`), and the official clients of Agent2Agent
//! (`sdks.rs`), and agents of others that this server calls (`peers.rs`).

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod agents;
mod browser;
mod examples;
mod others;
mod packages;
mod peers;
mod reader;
mod sdks;
mod signatures;
mod sockets;
mod streams;
