//! Outgoing requests: webhooks, and the calls of executors.
//!
//! Owns: which receivers are allowed ([`Policy`]), what a checked address is ([`Target`]), how names
//! become addresses ([`Lookup`]), and the one client ([`Egress`]) that dials nothing but addresses that
//! were checked. May not touch: what is sent and why, when it is tried again, any storage.

mod address;
mod classify;
mod client;
mod error;
mod guard;
mod lookup;
mod nets;
mod policy;
#[cfg(test)]
mod tests;
mod tls;

pub use address::{AddressError, Target, URL_CHARS_MAX, without_secrets};
pub use client::{Egress, Incoming, Limits, Opened, Options, Outgoing};
pub use error::{BuildError, Class, Error};
pub use lookup::{Lookup, LookupError, SystemLookup};
pub use policy::{HostPattern, Policy};
