//! The methods that follow tasks.

mod beginning;
pub mod resubscribe;
pub mod subscribe;

use crate::application::Service;
use crate::transport::jsonrpc::table::Method;

/// In the order in which the protocol lists them.
pub(super) fn methods() -> Vec<Method<Service>> {
    vec![subscribe::method(), resubscribe::method()]
}
