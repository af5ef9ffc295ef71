//! Transcripts of the JSON-RPC door over real sockets, with a fake context behind it.
//! Each test names the obligation that it proves; J-n are the clauses of the JSON-RPC notes.

mod connections;
mod envelope;
mod fake;
mod harness;
mod http;
