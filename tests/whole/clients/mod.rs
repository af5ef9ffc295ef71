//! Clients that are not ours: what others have written to read streams of events and to check signed
//! messages works with this server, over the network. `.ci/tools.sh` puts them below `target/clients`,
//! at the versions that the locks beside this file name.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod browser;
mod others;
#[path = "../common/postgres.rs"]
mod postgres;
#[allow(dead_code, reason = "shared with other test programs")]
#[path = "../system/program.rs"]
mod program;
mod reader;
#[allow(dead_code, reason = "shared with other test programs")]
#[path = "../common/receiver.rs"]
mod receiver;
#[allow(dead_code, reason = "shared with other test programs")]
#[path = "../system/server.rs"]
mod server;
mod signatures;
mod streams;
