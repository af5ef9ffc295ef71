//! Webhooks from what is due to what has arrived, over real connections on loopback.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod faults;
mod kill;
#[path = "../common/postgres.rs"]
mod postgres;
#[allow(dead_code, reason = "shared with other test programs")]
#[path = "../system/program.rs"]
mod program;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../common/receiver.rs"]
mod receiver;
mod secrets;
mod sending;
#[allow(dead_code, reason = "shared with other test programs")]
#[path = "../system/server.rs"]
mod server;
mod signing;
mod site;
