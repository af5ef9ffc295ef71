//! Between the words of the protocol and those of the application.

pub(super) mod bounds;
pub(super) mod errors;
pub(super) mod left_out;
pub(super) mod modes;
pub(super) mod plan;
pub(super) mod reports;
pub(super) mod said;
pub(super) mod views;
