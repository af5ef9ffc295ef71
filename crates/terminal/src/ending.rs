//! The end of a program: its exit code, and how it reports an error.

use crate::message;
use serde_json::Value;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

/// An error with which a program may end. Its text is for people.
pub trait Ending: Display {
    /// The exit code with which the program ends.
    fn exit_code(&self) -> ExitCode;

    /// The error for programs, as they read it from standard output: `{"error": {"message"}}`, perhaps with
    /// more members.
    fn to_json(&self) -> Value;

    /// Whether the reader of the output has gone away, which is no error of ours: `| head`.
    fn is_broken_pipe(&self) -> bool;
}

/// The exit code of a program. An error is told on standard error, with `json` on standard output too; a
/// broken pipe is a success, about which nothing is said.
pub fn end<E: Ending>(program: &str, json: bool, ended: Result<ExitCode, E>) -> ExitCode {
    let error = match ended {
        Ok(code) => return code,
        Err(error) => error,
    };
    if error.is_broken_pipe() {
        return ExitCode::SUCCESS;
    }
    if json {
        // When nobody reads the output, there is nobody to tell.
        let _ = writeln!(std::io::stdout(), "{}", error.to_json());
    }
    complain(program, &error);
    error.exit_code()
}

/// Says on standard error what went wrong.
pub fn complain(program: &str, error: &dyn Display) {
    message(&format!("{program}: {error}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Broken(bool);

    impl Display for Broken {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("broken")
        }
    }

    impl Ending for Broken {
        fn exit_code(&self) -> ExitCode {
            ExitCode::from(7)
        }

        fn to_json(&self) -> Value {
            Value::Null
        }

        fn is_broken_pipe(&self) -> bool {
            self.0
        }
    }

    #[test]
    fn a_reader_who_has_gone_away_is_no_error() {
        let code = |ended| format!("{:?}", end("test", false, ended));
        let is = |n: u8| format!("{:?}", ExitCode::from(n));
        assert_eq!(code(Ok(ExitCode::from(3))), is(3));
        assert_eq!(code(Err(Broken(false))), is(7));
        assert_eq!(code(Err(Broken(true))), is(0));
    }
}
