//! The entry point of the program: it parses arguments and returns the exit code.

use std::process::ExitCode;
use taskledger::cli::{Cli, answer_shell};
use taskledger_terminal::{complain, end};

/// Threads hand what they allocate to each other all the time (a request to the writer of the log, events
/// to the read models), which the system's allocator pays for: see `bench/RESULTS.md`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Stands before what it says of an error.
const PROGRAM: &str = "taskledger";

fn main() -> ExitCode {
    if answer_shell() {
        return ExitCode::SUCCESS;
    }
    let cli = Cli::from_arguments();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(PROGRAM, &format_args!("cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let json = cli.wants_json();
    end(PROGRAM, json, runtime.block_on(cli.run()))
}
