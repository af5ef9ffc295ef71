//! The machine-readable description of the server's methods: one OpenRPC 1.3.2 document, for `rpc.discover` and `GET
//! /openrpc.json`.
//!
//! Owns: the form of the document, the schemas of what is answered (`schemas`), and what each
//! method says of itself beyond its parameters (`about`). Parameters come from the questions that
//! the code which parses them asks, errors from the one error table, so that neither can drift.
//! May not touch: what methods do.

pub mod about;
mod discovery;
mod document;
mod errors;
mod parameter;
pub(super) mod schema_parts;
mod schemas;
mod scopes;
mod socket;

pub use discovery::{DISCOVER, Discovery};
pub use document::document;
