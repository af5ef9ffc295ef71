//! `taskledger tokens rotate` and `revoke`

use super::time::seconds;
use super::{Params, Request, show};

/// Give a token a new secret, which is shown once; the old one is accepted for a while
#[derive(Debug, clap::Args)]
pub(super) struct Rotate {
    /// The token: the part between the first two `_`
    #[arg(value_name = "ID")]
    id: String,
    /// How long the old secret is accepted, such as 1h; a day by default, at most 7d, 0s ends it at once
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    grace: Option<u64>,
}

impl Rotate {
    pub(super) fn request(self) -> Request {
        Request {
            method: "tokens.rotate",
            params: Params::default()
                .with("id", self.id)
                .maybe("grace_seconds", self.grace)
                .build(),
            show,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct One {
    /// The token: the part between the first two `_`
    #[arg(value_name = "ID")]
    id: String,
}

impl One {
    pub(super) fn request(self, method: &'static str) -> Request {
        Request {
            method,
            params: Params::default().with("id", self.id).build(),
            show,
        }
    }
}
