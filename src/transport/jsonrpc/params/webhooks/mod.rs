//! The parameters of `webhooks.*`, and the callback of one execution.

pub mod callback;
pub mod create;
pub mod deliveries;
mod kinds;
pub mod list;
pub mod one;
pub mod recover;
pub mod redeliver;
pub mod rotate_secret;
pub mod update;
