//! The methods that show tasks and what happened to them, one file each: parameters, description, what is called.

pub mod children;
pub mod events;
pub mod explain;
pub mod get;
pub mod history;
pub mod list;
pub mod tree;

use crate::application::Service;
use crate::transport::jsonrpc::table::Method;

/// In the order in which the protocol lists them.
pub(super) fn methods() -> Vec<Method<Service>> {
    vec![
        get::method(),
        list::method(),
        tree::method(),
        children::method(),
        history::method(),
        events::method(),
        explain::method(),
    ]
}
