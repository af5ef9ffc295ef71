//! Several nodes on one PostgreSQL: their leases, and whole servers as processes.
#![expect(clippy::unwrap_used, reason = "in a test a panic is a failure")]

mod leases;
