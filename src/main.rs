//! The program: arguments in, exit code out.

use clap::Parser;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;
use taskledger::cli::Cli;

/// Threads hand what they allocate to each other all the time (a request to the writer of the log, events
/// to the read models), which the system's allocator pays for: see `bench/RESULTS.md`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&format_args!("cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let json = cli.wants_json();
    match runtime.block_on(cli.run()) {
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
    let _ = writeln!(std::io::stderr(), "taskledger: {error}");
}
