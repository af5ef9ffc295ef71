//! Names by which sockets are known outside.

/// Where sockets are opened.
pub(crate) const PATH: &str = "/ws";
/// The event that says that a subscription begins elsewhere than it was asked to.
pub(crate) const RESET: &str = "reset";
