//! What the client of outgoing requests does with receivers of every kind: well-behaved ones, broken
//! ones, and such that must not be reached. Everything happens on loopback; 127.0.0.1 is the only
//! address that is allowed, so that 127.0.0.2 plays a forbidden one.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod answers;
mod broken;
mod encryption;
mod kept;
mod names;
mod proxies;
mod world;
