//! `taskledger tokens deny`

use super::{Params, Request};
use taskledger_cli::output::only;

/// Refuse access tokens of an OIDC issuer before they expire
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true))]
pub(super) struct Args {
    /// The issuer, exactly as tokens name it in `iss`
    #[arg(value_name = "ISSUER")]
    issuer: String,
    /// The token with this id
    #[arg(long, value_name = "ID", group = "which")]
    jti: Option<String>,
    /// All tokens of this subject that were issued up to now
    #[arg(long, value_name = "SUBJECT", group = "which")]
    sub: Option<String>,
}

impl Args {
    pub(super) fn request(self) -> Request {
        let claim = if self.jti.is_some() { "jti" } else { "sub" };
        Request {
            method: "tokens.deny",
            params: Params::default()
                .with("issuer", self.issuer)
                .with("claim", claim)
                .maybe("value", self.jti.or(self.sub))
                .build(),
            show: |denied, out| only(denied, &["issuer", "claim", "value", "denied_at"], out),
        }
    }
}
