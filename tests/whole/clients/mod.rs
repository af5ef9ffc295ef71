//! Clients: what others have written to read streams of events and to check signed messages works with this
//! server, over the network; and so do the packages of `clients/` (`packages.rs`). `.ci/tools.sh` puts them below `target/clients`,
//! at the versions that the locks beside this file name.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod browser;
mod others;
mod packages;
mod reader;
mod signatures;
mod streams;
