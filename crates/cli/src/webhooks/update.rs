//! `taskledger webhooks update`

use super::options::{Options, some};
use super::{CliError, Params, Request, one};
use clap::ValueEnum;

/// Change a webhook; settings that are not given stay
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger webhooks update 7c9e6679-7425-40de-944b-e07fc1f90ae7 --to https://example.org/new
  taskledger webhooks update 7c9e6679-7425-40de-944b-e07fc1f90ae7 --clear events,schedule")]
pub(super) struct Args {
    /// The webhook
    #[arg(value_name = "ID")]
    id: String,
    /// Where to send from now on
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    #[command(flatten)]
    options: Options,
    /// Settings to reset to their defaults, separated by commas
    #[arg(long, value_enum, value_delimiter = ',')]
    clear: Vec<Clear>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Clear {
    /// Everything about tasks is sent
    Events,
    /// Of any flow
    Flow,
    /// Of anybody
    User,
    /// No description
    Description,
    /// No headers
    Headers,
    /// The server's schedule
    Schedule,
    /// With any labels, or none
    Labels,
}

impl Clear {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Flow => "flow_id",
            Self::User => "user_id",
            Self::Description => "description",
            Self::Headers => "headers",
            Self::Schedule => "schedule",
            Self::Labels => "labels",
        }
    }
}

impl Args {
    pub(super) fn request(self) -> Result<Request, CliError> {
        let clear = self.clear.into_iter().map(Clear::as_str).collect();
        Ok(Request {
            method: "webhooks.update",
            params: self
                .options
                .added_to(Params::default().with("id", self.id).maybe("url", self.to))?
                .maybe("clear", some(clear))
                .build(),
            show: one::show,
        })
    }
}
