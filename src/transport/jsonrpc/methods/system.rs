//! Methods that concern the server.

pub mod drain;
pub mod executors;
pub mod health;
pub mod rebuild;

use crate::application::Service;
use crate::transport::jsonrpc::table::Method;

/// In the order in which the protocol lists them.
pub(super) fn methods() -> Vec<Method<Service>> {
    vec![
        health::method(),
        executors::method(),
        drain::method(),
        rebuild::method(),
    ]
}
