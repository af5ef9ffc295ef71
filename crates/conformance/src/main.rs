//! The program `taskledger-conformance`: arguments in, exit code out.

mod command;
mod error;
mod output;

use clap::Parser;
use command::Args;
use output::Output;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let json = args.wants_json();
    match command::run(args, &mut Output::standard(json)).await {
        Ok(code) => code,
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            if json {
                // When nobody reads the output, there is nobody to tell.
                let _ = writeln!(std::io::stdout(), "{}", error.to_json());
            }
            complain(&error);
            error.exit_code()
        }
    }
}

/// When nobody reads standard error, there is nobody to tell.
fn complain(error: &dyn Display) {
    let _ = writeln!(std::io::stderr(), "taskledger-conformance: {error}");
}
