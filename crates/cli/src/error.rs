//! The errors of the command line, and their exit codes.

use super::api::ApiError;
use serde_json::{Value, json};
use std::io;
use std::process::ExitCode;
use taskledger_terminal::Ending;

/// A command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The arguments or a file make no sense.
    #[error("{0}")]
    Usage(String),
    /// The server said no, or could not be asked.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The server or an embedded engine could not do its work.
    #[error("{0}")]
    Failed(String),
    /// Standard output or a file.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl CliError {
    /// A fault on our side, with its causes on the same line.
    pub fn failed(error: &dyn std::error::Error) -> Self {
        let mut before = error.to_string();
        let mut text = plain(&before);
        for cause in std::iter::successors(error.source(), |cause| cause.source()) {
            let cause = cause.to_string();
            let told = plain(&cause);
            // Some texts name their cause themselves.
            if !before.contains(&cause) && !text.contains(&told) {
                text = format!("{text}: {told}");
            }
            before = cause;
        }
        Self::Failed(text)
    }
}

/// An error of a database without what only its developers need: that it comes from there, and the line of its source.
fn plain(text: &str) -> String {
    const FROM: &str = "error returned from database: ";
    const LINE: &str = " at line ";
    let Some((before, said)) = text.split_once(FROM) else {
        return text.to_owned();
    };
    let (said, after) = said.rsplit_once(LINE).unwrap_or((said, ""));
    let after = after.trim_start_matches(|letter: char| letter.is_ascii_digit());
    format!("{before}{said}{after}")
}

impl Ending for CliError {
    fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Usage(_) => 2,
            Self::Failed(_) | Self::Output(_) => 1,
            Self::Api(ApiError::Refused { code, .. }) if *code == -32603 => 1,
            Self::Api(ApiError::Refused { .. } | ApiError::Denied { .. }) => 2,
            Self::Api(ApiError::Connection(_)) => 4,
            Self::Api(ApiError::Protocol(_)) => 4,
        })
    }

    /// The error as JSON: `{"error": {"message", "code", "data"}}`, the latter two from the server;
    /// `{"error": {"message", "status"}}` when it wants other credentials.
    fn to_json(&self) -> Value {
        let mut error = json!({"message": self.to_string()});
        if let Self::Api(ApiError::Refused {
            code,
            message,
            data,
        }) = self
        {
            error = json!({"message": message, "code": code, "data": data});
        }
        if let Self::Api(ApiError::Denied { status, .. }) = self {
            error["status"] = (*status).into();
        }
        json!({ "error": error })
    }

    fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_database_says_is_told_without_the_line_of_its_source() {
        for (text, told) in [
            (
                "error returned from database: permission denied for database tl at line 3655",
                "permission denied for database tl",
            ),
            (
                "the log cannot be used: error returned from database: no at line 7; run it again",
                "the log cannot be used: no; run it again",
            ),
            ("a key expected at line 3", "a key expected at line 3"),
            ("disk on fire", "disk on fire"),
        ] {
            assert_eq!(plain(text), told);
        }
    }

    #[test]
    fn a_failure_names_each_cause_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot start: {0}")]
        struct Outer(#[source] Inner);
        #[derive(Debug, thiserror::Error)]
        #[error("cannot open")]
        struct Inner(#[source] io::Error);
        let error = Outer(Inner(io::Error::other("disk on fire")));
        assert_eq!(
            CliError::failed(&error).to_string(),
            "cannot start: cannot open: disk on fire"
        );
    }

    #[test]
    fn exit_codes_tell_the_cases_apart() {
        let refused = |code| {
            CliError::Api(ApiError::Refused {
                code,
                message: String::new(),
                data: serde_json::Value::Null,
            })
        };
        let code = |error: CliError| format!("{:?}", error.exit_code());
        let is = |n| format!("{:?}", ExitCode::from(n));
        assert_eq!(code(CliError::Usage(String::new())), is(2));
        assert_eq!(code(refused(-32001)), is(2));
        assert_eq!(code(refused(-32603)), is(1));
        let denied = CliError::Api(ApiError::Denied {
            status: 401,
            text: "who?".to_owned(),
        });
        assert_eq!(
            denied.to_json(),
            json!({"error": {"message": "who?", "status": 401}})
        );
        assert_eq!(code(denied), is(2));
        assert_eq!(
            code(CliError::Api(ApiError::Connection(String::new()))),
            is(4)
        );
        assert_eq!(code(CliError::Failed(String::new())), is(1));
    }
}
