//! `--as-of`, shared by the commands that can read the past.

use super::Params;
use crate::when::{self, time};
use serde_json::Value;
use taskledger_domain::Timestamp;

/// A moment of the past.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct AsOf {
    /// Show how it was: at a time (`yesterday 14:00`, `1h` ago, a date, RFC 3339), or after an event (its position in
    /// the log)
    #[arg(long, value_name = "TIME|POSITION", value_parser = when::moment)]
    as_of: Option<Value>,
}

impl AsOf {
    /// The moment that `result` shows; `None`: the present. It is the time that was asked for, and for a position the
    /// time of its event, which the answer holds.
    pub(super) fn moment(&self, result: &Value) -> Option<Timestamp> {
        let asked = self.as_of.as_ref()?.as_str();
        let asked = asked.and_then(|text| Timestamp::parse(text).ok());
        asked.or_else(|| time(result.get("as_of")?, "time"))
    }

    pub(super) fn add_to(self, params: Params) -> Params {
        params.maybe("as_of", self.as_of)
    }
}
