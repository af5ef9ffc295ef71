//! The options that all commands which read tasks have in common.

use crate::request::Params;
use clap::ValueEnum;

/// How fresh an answer must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Consistency {
    /// Shows every earlier write.
    Strong,
    /// Does not wait.
    Eventual,
}

impl Consistency {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Strong => "strong",
            Self::Eventual => "eventual",
        }
    }
}

/// Freshness of a read, shared by all commands that read.
#[derive(Debug, clap::Args)]
pub(super) struct Read {
    /// How fresh the answer must be
    #[arg(long, value_enum)]
    consistency: Option<Consistency>,
}

impl Params {
    pub(super) fn read(self, read: &Read) -> Self {
        self.maybe("consistency", read.consistency.map(Consistency::as_str))
    }
}
