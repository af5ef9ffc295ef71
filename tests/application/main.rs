//! The application layer under forced interleavings: mailboxes, slots, idempotency, recovery, reads.
//!
//! Everything runs over the log in memory, wrapped so that a test can hold, refuse and lose appends.
//! Attempts are run by a script, except in [`engine`], which uses the real dispatcher.

mod bounds;
mod claims;
mod conflicts;
mod durability;
mod edits;
mod engine;
mod eviction;
mod faults;
mod metadata;
mod reads;
mod recovery;
mod slots;
mod stress;
mod world;
