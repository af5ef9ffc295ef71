//! `taskledger webhooks redeliver` and `recover`

use super::{Output, Params, Request, one};
use crate::output::counted;
use serde_json::Value;
use std::io;

/// Deliver one message again, in whatever state its delivery is
#[derive(Debug, clap::Args)]
pub(super) struct Redeliver {
    /// The delivery, as `webhooks deliveries` shows it
    #[arg(value_name = "DELIVERY", value_parser = clap::value_parser!(u64).range(1..=i64::MAX as u64))]
    delivery: u64,
    /// Calls with the same key send the message once
    #[arg(long, value_name = "KEY")]
    request_key: Option<String>,
}

impl Redeliver {
    pub(super) fn request(self) -> Request {
        Request {
            method: "webhooks.redeliver",
            params: Params::default()
                .with("delivery_id", self.delivery)
                .maybe("request_key", self.request_key)
                .build(),
            show: one::queued,
        }
    }
}

/// Deliver again the messages of a period that were given up
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger webhooks recover 7c9e6679-7425-40de-944b-e07fc1f90ae7 --since 2026-01-31T12:00:00Z")]
pub(super) struct Recover {
    /// The webhook
    #[arg(value_name = "ID")]
    id: String,
    /// Messages created at this time or later: `1h`, `yesterday 14:00`, a date, or RFC 3339
    #[arg(long, value_name = "TIME")]
    since: String,
    /// Messages created before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Also messages that were delivered
    #[arg(long)]
    all: bool,
}

impl Recover {
    pub(super) fn request(self) -> Request {
        Request {
            method: "webhooks.recover",
            params: Params::default()
                .with("id", self.id)
                .with("since", self.since)
                .maybe("until", self.until)
                .maybe("which", self.all.then_some("all"))
                .build(),
            show: recovered,
        }
    }
}

fn recovered(result: &Value, out: &mut Output) -> io::Result<()> {
    let recovered = result["recovered"].as_u64().unwrap_or_default();
    let verb = if recovered == 1 { "is" } else { "are" };
    let messages = counted(recovered, "message", "messages");
    out.line(format!("{messages} {verb} delivered again"))
}
