//! Streams over HTTP and WebSocket, against the real program: frames byte for byte, resuming across
//! connections, restarts and nodes, limits, and what a browser and a proxy need.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod doors;
mod floods;
mod limits;
mod resuming;
mod runs;
mod sockets;
pub(crate) mod sse;
mod subscriptions;
