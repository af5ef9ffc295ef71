//! The methods `secrets.*`.

pub mod delete;
pub mod kinds;
pub mod list;
pub mod set;

use crate::application::Service;
use crate::transport::jsonrpc::table::Method;

/// In the order in which the protocol lists them.
pub(super) fn methods() -> Vec<Method<Service>> {
    vec![set::method(), list::method(), delete::method()]
}
