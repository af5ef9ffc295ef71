//! The methods `tokens.*`, `audit.list` and `system.whoami`.

pub mod audit;
pub mod create;
pub mod deny;
pub(in crate::transport::jsonrpc) mod kinds;
pub mod list;
pub mod revoke;
pub mod rotate;
pub mod whoami;

use crate::application::api::{Access, Error, HasAccess};
use crate::transport::jsonrpc::table::Method;
use crate::transport::jsonrpc::{RpcError, refusals};

/// In the order in which the protocol lists them.
pub(super) fn methods<C: HasAccess>() -> Vec<Method<C>> {
    vec![
        create::method(),
        list::method(),
        rotate::method(),
        revoke::method(),
        deny::method(),
        audit::method(),
        whoami::method(),
    ]
}

fn answer<T>(access: &Access, answer: Result<T, Error>) -> Result<T, RpcError> {
    answer.map_err(|error| refusals::told(&**access.clock(), error))
}
