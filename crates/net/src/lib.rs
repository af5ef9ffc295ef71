//! Connections that leave the server: the guard for addresses that callers name. TLS, in both directions.
//!
//! Knows nothing of what is sent, of flows or of webhooks.

pub mod egress;
pub mod secret_file;
pub mod tls;
