//! What somebody else's task is like to a caller: exactly like one that does not exist, through every use
//! case and every door.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod a2a;
mod a2a_v03;
mod asked;
mod audited;
mod bus;
mod callers;
mod changed;
mod columns;
mod covered;
mod credentials;
mod cursors;
mod events;
mod given_away;
mod inboxes;
mod matrix;
mod methods;
mod named;
mod owners;
mod quotas;
mod random;
mod recorded;
mod revocation;
mod schedules;
mod scopes;
mod spoken;
mod turns;
mod webhooks;
pub(crate) mod world;
