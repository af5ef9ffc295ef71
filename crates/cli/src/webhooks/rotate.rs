//! `taskledger webhooks rotate-secret`

use super::{CliError, Params, Request, one, secret};

/// Replace the secret; the old one stays valid for a while
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The webhook
    #[arg(value_name = "ID")]
    id: String,
    /// A file with a secret of your own; `-` is standard input. Without it the server makes one
    #[arg(long, value_name = "FILE")]
    secret_file: Option<String>,
    /// How long the old secret stays valid: a day by default, at most a week
    #[arg(long, value_name = "SECONDS")]
    grace: Option<u32>,
}

impl Args {
    pub(super) fn request(self) -> Result<Request, CliError> {
        let own = self.secret_file.as_deref().map(secret::read).transpose()?;
        Ok(Request {
            method: "webhooks.rotate_secret",
            params: Params::default()
                .with("id", self.id)
                .maybe("secret", own)
                .maybe("grace_seconds", self.grace)
                .build(),
            show: one::show_with_secret,
        })
    }
}
