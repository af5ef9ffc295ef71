//! `--as-of`, shared by the commands that can read the past.

use super::Params;
use serde_json::Value;

/// A moment of the past.
#[derive(Debug, clap::Args)]
pub(super) struct AsOf {
    /// Show how it was: at a time (RFC 3339), or after an event (its position in the log)
    #[arg(long, value_name = "TIME|POSITION")]
    as_of: Option<String>,
}

impl AsOf {
    pub(super) fn add_to(self, params: Params) -> Params {
        // Whatever is no position is for the server to judge.
        let moment = self.as_of.map(|text| match text.parse::<u64>() {
            Ok(position) => Value::from(position),
            Err(_) => Value::from(text),
        });
        params.maybe("as_of", moment)
    }
}
