//! Scheduling rules.
