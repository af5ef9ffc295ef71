//! Tokens of issuers that the tests make up.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod arbitrary;
mod issuing;
mod limits;
mod over_http;
mod over_time;
mod settings;
mod tokens;
