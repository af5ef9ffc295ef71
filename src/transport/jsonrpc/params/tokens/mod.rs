//! The parameters of `tokens.*`.

pub mod create;
mod kinds;
pub mod list;
pub mod one;
pub mod rotate;
