//! The commands of the command line that talk to a server, and how all commands show what they have to say.
//!
//! Owns: one file for each command with its arguments, the calls to a server ([`HttpApi`]) and what is shown to it
//! ([`Remote`], [`Access`]), tables, trees and screens. May not: know anything of a server but its protocols. Commands
//! that work on a log or an engine of their own are `src/cli/` of the server's crate, which puts all of them together.
//!
//! Answers go to standard output, everything else to standard error. Exit codes: [`CliError`].

pub mod a2a;
pub mod api;
pub mod broker;
pub mod complete;
pub mod completions;
pub mod context;
pub mod drain;
mod error;
mod event_stream;
pub mod events;
pub mod following;
pub mod health;
pub mod http_api;
mod ids;
pub mod input;
mod labels;
mod local;
mod meant;
pub mod methods;
pub mod nothing;
pub mod open_files;
pub mod output;
pub mod paging;
mod patience;
mod remote;
pub mod request;
pub mod respond;
pub mod run;
pub mod schedules;
pub mod secrets;
pub mod signals;
mod span;
mod target;
pub mod tasks;
mod terminal;
#[cfg(test)]
mod testing;
pub mod timing;
mod tree;
mod unfit_certificate;
mod warnings;
pub mod watch;
pub mod webhooks;
pub mod when;
pub mod worker;
pub mod workers;
pub mod workflows;

pub use api::{Api, ApiError};
pub use error::CliError;
pub use http_api::HttpApi;
pub use remote::{Access, Remote, URL_DEFAULT, quoted};

use std::sync::Arc;
use taskledger_clock::{SharedClock, SystemClock};

/// The clock of the machine.
#[must_use]
pub fn clock() -> SharedClock {
    Arc::new(SystemClock::default())
}
