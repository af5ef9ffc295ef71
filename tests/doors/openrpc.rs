//! What the server says of itself is true: the OpenRPC document is valid, complete, and describes
//! the answers that a real server gives.

#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod answers;
mod document;
mod errors;
mod examples;
mod parameters;
mod scopes;
mod served;
mod support;
mod violations;
