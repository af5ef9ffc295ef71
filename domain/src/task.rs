//! One task: its states, its specification, its inputs.

pub mod call;
pub mod inputs;
pub mod labels;
mod priority;
mod progress;
pub(crate) mod retry;
pub mod schema;
pub mod spec;
mod status;
pub mod wiring;

pub use labels::{Labels, Selector};
pub use priority::Priority;
pub use progress::Progress;
pub use retry::RetryPolicy;
pub use status::Status;
