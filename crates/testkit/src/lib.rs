//! Code that the tests of all packages share: a throwaway database, the program as a process and calls to it, clusters
//! under load, receivers of requests, a name server, places for read models.
//!
//! Used by tests only. Without features it is no more than [`postgres`] and [`evidence`], so that the tests of a small
//! crate do not compile all others; `stores` adds `beside`, `rows` adds `ground`, `servers` adds the rest.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

pub mod evidence;
pub mod postgres;

#[cfg(feature = "stores")]
pub mod beside;
#[cfg(feature = "rows")]
pub mod ground;
#[cfg(any(feature = "rows", feature = "servers"))]
mod patience;

#[cfg(feature = "servers")]
mod backends;
#[cfg(feature = "servers")]
pub mod certificates;
#[cfg(feature = "servers")]
pub mod cluster;
#[cfg(feature = "servers")]
pub mod dns;
#[cfg(feature = "servers")]
pub mod found;
#[cfg(feature = "servers")]
pub mod issuer;
#[cfg(feature = "servers")]
pub mod log;
#[cfg(feature = "servers")]
pub mod model;
#[cfg(feature = "servers")]
pub mod pages;
#[cfg(feature = "servers")]
pub mod program;
#[cfg(feature = "servers")]
pub mod random;
#[cfg(feature = "servers")]
pub mod receiver;
#[cfg(feature = "servers")]
pub mod server;
