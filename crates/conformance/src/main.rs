//! The program `taskledger-conformance`: arguments in, exit code out.

mod command;
mod error;

use clap::Parser;
use command::Args;
use std::process::ExitCode;
use taskledger_terminal::{Output, end};

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let json = args.wants_json();
    let ended = command::run(args, &mut Output::standard(json)).await;
    end("taskledger-conformance", json, ended)
}
