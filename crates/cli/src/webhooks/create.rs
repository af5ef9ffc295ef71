//! `taskledger webhooks create`

use super::options::Options;
use super::{CliError, Params, Request, one, secret};
use clap::ValueEnum;

/// Create a webhook: send notices to a URL
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger webhooks create https://example.org/hook
  taskledger webhooks create https://example.org/hook --events task_failed,task_cancelled
  taskledger webhooks create https://example.org/hook --header-file headers.txt --secret-file secret

Messages are signed as Standard Webhooks specifies. The secret is shown once, in the answer.")]
pub(super) struct Args {
    /// Where to send
    #[arg(value_name = "ENDPOINT")]
    to: String,
    #[command(flatten)]
    options: Options,
    /// A file with a secret of your own; `-` is standard input. Without it the server makes one
    #[arg(long, value_name = "FILE", conflicts_with = "signature")]
    secret_file: Option<String>,
    /// How the generated secret signs
    #[arg(long, value_enum)]
    signature: Option<Signature>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Signature {
    /// HMAC-SHA256, by a secret that both sides know
    V1,
    /// Ed25519; the receiver needs the public key only
    V1a,
}

impl Args {
    pub(super) fn request(self) -> Result<Request, CliError> {
        let own = self.secret_file.as_deref().map(secret::read).transpose()?;
        let signature = self.signature.map(|signature| match signature {
            Signature::V1 => "v1",
            Signature::V1a => "v1a",
        });
        Ok(Request {
            method: "webhooks.create",
            params: self
                .options
                .added_to(Params::default().with("url", self.to))?
                .maybe("secret", own)
                .maybe("signature", signature)
                .build(),
            show: one::show_with_secret,
        })
    }
}
