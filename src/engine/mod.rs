//! Runs what the flows have started.

pub mod executor;
