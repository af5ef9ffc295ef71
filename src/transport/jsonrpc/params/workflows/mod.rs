//! Parameters of `workflows.*`.

pub mod create;
mod kinds;
pub mod validate;
