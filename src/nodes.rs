//! Clusters of servers on one database: which node owns which flows, and how calls get to the owner.
//!
//! Owns: the leases on partitions ([`Leases`], kept in the database and by its clock), their renewal
//! ([`Keeper`]), what this node may rely on at this moment ([`NodeOwnership`]), and calls between nodes
//! ([`Peers`]). Decides nothing about flows; may not touch the log's tables but for the fences.
//!
//! A node relies on its leases for a second less than the database grants them, by its own monotonic
//! clock, counted from before it asked. So two nodes never rely on the same lease, however far their
//! clocks are apart; a node that was stopped finds out by itself before it decides anything. The
//! monotonic clock of Linux stands still while a machine is suspended: then the tokens that each
//! append carries are what keeps a node from writing with a lease that is over.

mod keeper;
mod leases;
mod ownership;
mod peers;
mod postgres;

pub use keeper::{Keeper, PartitionListener};
pub use leases::{Error, Held, Leases, Sight, Standing};
pub use ownership::NodeOwnership;
pub use peers::{CallsError, Forwarded, Peers, Trust};
pub use postgres::{PostgresLeases, STEPS, Said, migrate};

use std::time::Duration;

/// How long a node counts as alive after its last beat, by the database's clock: after so many
/// seconds others carry on the flows of one that has died.
pub const TTL: Duration = Duration::from_secs(5);
/// How much earlier a node stops to rely on its leases: more than two clocks drift apart in [`TTL`],
/// and what a thread may be late.
pub const MARGIN: Duration = Duration::from_secs(1);
/// How often a node renews its leases. Of those that are refused at once two in a row may get lost;
/// of those that get no answer ([`BEAT_WAIT`]) one.
pub const BEAT_EVERY: Duration = Duration::from_secs(1);
/// How long a beat may take before the next one is tried.
pub const BEAT_WAIT: Duration = Duration::from_secs(2);
/// Leases that a node gives up in a second ([`BEAT_EVERY`]) when others have come: attempts that run in
/// them are interrupted, so it does not happen to all at once.
pub const GIVE_MAX: usize = 64;
/// Leases: one for each partition, and [`READ_MODELS`].
pub const LEASES: usize = crate::application::ownership::PARTITIONS + 1;
/// The lease whose holder folds the read models.
pub const READ_MODELS: u16 = 256;
