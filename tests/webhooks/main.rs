//! Webhooks from what is due to what has arrived, over real connections on loopback.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod faults;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "../common/receiver.rs"]
mod receiver;
mod sending;
mod signing;
