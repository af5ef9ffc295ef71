//! The methods `tokens.*`, `audit.list` and `system.whoami`.

mod answers;
pub mod audit;
pub mod create;
pub mod deny;
pub(in crate::transport::jsonrpc) mod kinds;
pub mod list;
pub mod revoke;
pub mod rotate;
pub mod whoami;

use crate::application::api::HasAccess;
use crate::transport::jsonrpc::table::Method;

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
