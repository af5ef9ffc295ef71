//! Clients that are not ours: what others have written to read streams of events and to check signed
//! messages works with this server, over the network. `.ci/tools.sh` puts them below `target/clients`,
//! at the versions that the locks beside this file name.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod browser;
mod others;
mod reader;
mod signatures;
mod streams;
