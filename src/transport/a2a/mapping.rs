//! Maps between the protocol's terms and the application's.

pub(super) mod bounds;
pub(super) mod errors;
pub(super) mod left_out;
pub(super) mod modes;
pub(super) mod plan;
pub(super) mod reports;
pub(super) mod said;
pub(super) mod views;
