//! The methods that change tasks and begin runs.

mod beginning;
pub mod cancel;
pub mod copy;
pub mod create;
pub mod delete;
pub mod execute;
pub mod retry;
pub mod update;

use crate::application::Service;
use crate::transport::jsonrpc::table::Method;

/// In the order in which the protocol lists them.
pub(super) fn methods() -> Vec<Method<Service>> {
    vec![
        create::method(),
        update::method(),
        delete::method(),
        execute::method(),
        cancel::method(),
        copy::method(),
        retry::method(),
    ]
}
