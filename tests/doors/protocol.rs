//! Transcripts of the JSON-RPC door over real sockets, with a fake context behind it.
//! Each test names the obligation that it proves; J-n are the clauses of the JSON-RPC notes.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod calls;
mod clients;
mod connections;
mod fake;
mod floods;
mod forwarding;
mod harness;
mod http;
mod json_suite;
mod judge;
mod notation;
mod tls;
mod transcripts;
mod unread;
