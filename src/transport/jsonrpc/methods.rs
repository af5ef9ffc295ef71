//! The method table: the name of each method, its parameters, and its request to the application. A method is one file
//! in the folder of its group: parameters, description, what is called.

mod calling;
pub mod read;
pub mod schedules;
pub mod secrets;
pub mod streams;
pub mod system;
pub mod tasks;
pub mod tokens;
pub mod webhooks;
mod work;
pub mod workflows;

use super::table::Method;
use crate::application::Service;
use crate::application::api::Access;
pub(super) use calling::answer;
use calling::{boxed, called};

/// All methods, in the order in which the protocol lists them.
#[must_use]
pub fn table() -> Vec<Method<Service>> {
    let mut methods = tasks::methods();
    methods.extend(read::methods());
    methods.extend(streams::methods());
    methods.extend(workflows::methods());
    methods.extend(schedules::methods());
    methods.extend(work::methods());
    methods.extend(webhooks::methods());
    methods.extend(secrets::methods());
    methods.extend(tokens::methods());
    methods.extend(system::methods());
    methods
}

/// Only those that concern tokens and the audit log, for whoever has no server.
#[must_use]
pub fn access() -> Vec<Method<Access>> {
    tokens::methods()
}
