//! Streams over HTTP and WebSocket, against the real program: frames byte for byte, resuming across
//! connections, restarts and nodes, limits, and what a browser and a proxy need.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

#[path = "../system/backends.rs"]
mod backends;
mod doors;
mod limits;
#[path = "../common/postgres.rs"]
mod postgres;
#[path = "../system/program.rs"]
#[allow(dead_code, reason = "shared with the tests of the program")]
mod program;
mod resuming;
mod runs;
#[path = "../system/server.rs"]
#[allow(dead_code, reason = "shared with the tests of the program")]
mod server;
mod sockets;
mod sse;
mod subscriptions;
