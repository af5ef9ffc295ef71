//! The parameters of `tokens.*`.

pub mod create;
pub mod deny;
pub(super) mod kinds;
pub mod list;
pub mod one;
pub mod rotate;
