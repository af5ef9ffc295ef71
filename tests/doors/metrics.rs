//! `GET /metrics`: which names and labels there are, that they are bounded, that they agree with the log,
//! that a scrape is answered whatever the store does; and the files that use the names.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod agreement;
mod bindings;
mod bounds;
mod credentials;
mod files;
mod leases;
mod listeners;
mod names;
mod scrape;
mod stuck;
