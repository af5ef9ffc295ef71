//! The parameters of `workers.*`.

pub mod declare;
pub mod drain;
mod kinds;
pub mod undeclare;
