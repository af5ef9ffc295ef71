//! The methods `webhooks.*`.

mod answers;
pub mod callback;
pub mod create;
pub mod delete;
pub mod deliveries;
pub mod disable;
pub mod enable;
pub mod get;
mod kinds;
pub mod list;
pub mod one;
pub mod recover;
pub mod redeliver;
pub mod rotate_secret;
pub mod secret;
pub mod test;
pub mod update;

use crate::application::Service;
use crate::transport::jsonrpc::table::Method;

/// In the order in which the protocol lists them.
pub(super) fn methods() -> Vec<Method<Service>> {
    vec![
        create::method(),
        get::method(),
        list::method(),
        update::method(),
        delete::method(),
        enable::method(),
        disable::method(),
        rotate_secret::method(),
        secret::method(),
        test::method(),
        deliveries::method(),
        redeliver::method(),
        recover::method(),
    ]
}
