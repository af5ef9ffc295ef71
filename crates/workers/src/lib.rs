//! The store of workers, beside the log: methods that they declared, renewals of their leases, connected workers, and
//! drained ones.
//!
//! Owns the types of these and their store. Decides nothing about tasks and knows no protocol: who may claim
//! what is decided in the flow's turn, and what is asked for now is known to the server's registry.

mod method;
mod presence;
pub mod store;

pub use method::{
    DESCRIPTION_CHARS_MAX, LIMIT_MAX, Method, MethodKey, OWN_METHODS_BYTES_MAX, OWN_METHODS_MAX,
    Refusal, Rights, SCHEMA_BYTES_MAX,
};
pub use presence::{Connection, Drain, Worker};
pub use store::{METHODS_BYTES_MAX, METHODS_MAX, Renewal, Renewed, WorkerStore};
pub use taskledger_domain::text::is_unseen;
