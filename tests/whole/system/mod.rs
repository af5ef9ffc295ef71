//! The whole server as a process: the real program on a free port with a data folder of its own,
//! spoken to as its users do. What happened is read from the recorded events, not from memory.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod backends;
mod bad_bodies;
mod bad_calls;
mod cli;
#[allow(dead_code, reason = "shared with the tests of faults")]
mod cluster;
mod crash;
mod damage;
mod databases;
#[allow(dead_code, reason = "shared with the tests of outgoing requests")]
#[path = "../common/dns.rs"]
mod dns;
mod folders;
mod found;
mod full_disk;
mod hostile_schemas;
mod http_executor;
mod log;
mod long_answers;
mod migrate;
#[allow(dead_code, reason = "shared with the tests of faults")]
mod model;
mod nodes;
mod past;
#[path = "../common/postgres.rs"]
mod postgres;
mod program;
mod random;
mod read_models;
#[allow(dead_code, reason = "shared with the tests of outgoing requests")]
#[path = "../common/receiver.rs"]
mod receiver;
mod retention;
#[allow(dead_code, reason = "shared with the tests of faults")]
mod server;
mod signals;
mod transfer;
mod watch;
mod webhooks_cli;
mod workflow;
mod workflows;
