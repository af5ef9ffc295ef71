//! The reasons why there is no report, and their exit codes.

use serde_json::{Value, json};
use std::io;
use std::process::ExitCode;
use taskledger_terminal::Ending;

/// The server was not looked at, or nobody could be told.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The arguments make no sense.
    #[error("{0}")]
    Usage(String),
    /// Nobody listens at the address.
    #[error("{0}")]
    Connection(String),
    /// Standard output.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl Ending for Error {
    fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Output(_) => 1,
            Self::Usage(_) => 2,
            Self::Connection(_) => 4,
        })
    }

    fn to_json(&self) -> Value {
        json!({"error": {"message": self.to_string()}})
    }

    fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
