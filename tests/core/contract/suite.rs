//! The contract of the port, by topic.

pub(crate) mod appending;
pub(crate) mod chaining;
pub(crate) mod claiming;
pub(crate) mod dropping;
pub(crate) mod guarding;
pub(crate) mod reading;
