//! The methods `workflows.*`.

mod answers;
pub mod create;
pub mod delete;
pub mod diff;
pub mod dry_run;
pub mod get;
mod kinds;
pub mod list;
pub mod progress;
pub mod run;
pub mod save;
pub mod schemas;
pub mod validate;
pub mod versions;

use crate::application::Service;
use crate::transport::jsonrpc::table::Method;

/// In the order in which the protocol lists them.
pub(super) fn methods() -> Vec<Method<Service>> {
    vec![
        validate::method(),
        dry_run::method(),
        create::method(),
        save::method(),
        get::method(),
        list::method(),
        versions::method(),
        diff::method(),
        delete::method(),
        run::method(),
        schemas::method(),
        progress::method(),
    ]
}
