//! The methods `schedules.*`.

mod answers;
pub mod create;
pub mod delete;
pub mod get;
mod kinds;
pub mod list;
pub mod pause;
pub mod run_now;
pub mod update;
mod what;

use crate::application::Service;
use crate::transport::jsonrpc::table::Method;

/// In the order in which the protocol lists them.
pub(super) fn methods() -> Vec<Method<Service>> {
    vec![
        create::method(),
        list::method(),
        get::method(),
        update::method(),
        pause::method(),
        delete::method(),
        run_now::method(),
    ]
}
