//! The doors: each turns a protocol's bytes into calls and the outcomes of calls into bytes.
//!
//! Owns: envelopes, method tables, error codes, connections, the description of all of it. May not
//! touch: the log, SQL, rules.

pub mod a2a;
mod budget;
pub mod eventbus;
pub mod figures;
pub mod http;
mod json_size;
pub mod jsonrpc;
pub mod openrpc;
mod overhead;
mod sse;
mod ws;
