//! The path of sockets and the name of the event `reset`, which clients and other modules refer to.

/// Where sockets are opened.
pub(crate) const PATH: &str = "/ws";
/// The event that says that a subscription begins elsewhere than it was asked to.
pub(crate) const RESET: &str = "reset";
