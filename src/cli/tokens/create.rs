//! `taskledger tokens create`

use super::time::seconds;
use super::{Params, Request, show};
use taskledger_auth::Scopes;

/// Create a token; its secret is shown once
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Whose token it is
    #[arg(value_name = "NAME")]
    name: String,
    /// The token is for a service, not for a user
    #[arg(long)]
    service: bool,
    /// What it allows, separated by commas; `all` means every scope
    #[arg(long, value_name = "SCOPES", value_delimiter = ',', required = true)]
    scopes: Vec<String>,
    /// The only methods that a worker may claim with it, separated by commas
    #[arg(long, value_name = "METHODS", value_delimiter = ',')]
    methods: Vec<String>,
    /// A further agent of the broker that the token may act as; may be repeated
    #[arg(long = "agent", value_name = "NAME")]
    agents: Vec<String>,
    /// How long it lasts, such as 12h or 30d, at most 3653d; default: 90 days for a user, no expiry for a service
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    expires_in: Option<u64>,
    /// For people
    #[arg(long)]
    note: Option<String>,
    /// An id of your own, 16 characters of a to z and 2 to 7: repeating the command then creates no second token
    #[arg(long)]
    id: Option<String>,
}

impl Args {
    pub(super) fn request(self) -> Request {
        let scopes = if self.scopes == ["all"] {
            Scopes::all().iter().map(|s| s.to_string()).collect()
        } else {
            self.scopes
        };
        let methods = (!self.methods.is_empty()).then_some(self.methods);
        let agents = (!self.agents.is_empty()).then_some(self.agents);
        let kind = if self.service { "service" } else { "user" };
        Request {
            method: "tokens.create",
            params: Params::default()
                .with("name", self.name)
                .with("kind", kind)
                .with("scopes", scopes)
                .maybe("methods", methods)
                .maybe("agents", agents)
                .maybe("expires_in_seconds", self.expires_in)
                .maybe("note", self.note)
                .maybe("id", self.id)
                .build(),
            show,
        }
    }
}
