//! Connections that leave the server: the guard for addresses that callers name, and TLS.
//!
//! Knows nothing of what is sent, of flows or of webhooks.

pub mod egress;
pub mod tls;
