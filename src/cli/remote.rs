//! The option that names a server.

use super::http_api;
use clap::Args;

/// The address of a server when none is given.
pub const URL_DEFAULT: &str = "http://127.0.0.1:8000";

/// Which server to talk to.
#[derive(Debug, Clone, Args)]
pub(super) struct Remote {
    /// The server
    #[arg(long, global = true, value_name = "URL", env = "TASKLEDGER_URL", default_value = URL_DEFAULT, value_parser = http_api::server_url)]
    pub(super) url: String,
}
