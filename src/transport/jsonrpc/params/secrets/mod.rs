//! The parameters of `secrets.*`.

pub mod kinds;
pub mod list;
pub mod one;
pub mod set;
