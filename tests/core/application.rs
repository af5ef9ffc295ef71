//! The application layer under forced interleavings: mailboxes, slots, idempotency, recovery, reads.
//!
//! Everything runs over the log in memory, wrapped so that a test can hold, refuse and lose appends.
//! Attempts are run by a script, except in [`engine`] and [`at_once`], which use the real dispatcher
//! (too).
#![expect(clippy::unwrap_used, reason = "in a test a panic is a failure")]
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test names the events that it is about"
)]

mod as_of;
mod at_once;
mod bounds;
mod broker;
mod claim_ends;
mod claims;
mod conflicts;
mod contracts;
mod counted;
mod directory;
mod durability;
mod edits;
mod engine;
mod eviction;
mod explain;
mod fair_share;
mod faults;
mod gathered_claims;
mod hang_ups;
mod history;
mod leases;
mod metadata;
mod next_steps;
mod ownership;
mod quotas;
mod readings;
mod reads;
mod recovery;
mod retention;
mod retried_groups;
mod runs;
mod schedules;
mod script;
mod shown;
mod skew;
mod slots;
mod streams;
mod stress;
mod tickets;
mod timers;
mod work;
mod workers;
mod world;
