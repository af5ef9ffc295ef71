//! `--as-of`, shared by the commands that can read the past.

use super::Params;
use crate::when;
use serde_json::Value;

/// A moment of the past.
#[derive(Debug, clap::Args)]
pub(super) struct AsOf {
    /// Show how it was: at a time (`yesterday 14:00`, `1h` ago, a date, RFC 3339), or after an event (its position in
    /// the log)
    #[arg(long, value_name = "TIME|POSITION", value_parser = when::moment)]
    as_of: Option<Value>,
}

impl AsOf {
    /// Whether the past is asked for.
    pub(super) const fn is_given(&self) -> bool {
        self.as_of.is_some()
    }

    pub(super) fn add_to(self, params: Params) -> Params {
        params.maybe("as_of", self.as_of)
    }
}
