//! Programs for maintainers. `cargo run -p xtask -- rooms` shows what depends on what.

mod rooms;

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo run -p xtask -- rooms [--root DIR] [--dot | --summary]

Prints the crates of a workspace and their dependencies, the graph of the top-level modules of each crate,
and the circles of files: sets of files each of which needs all others.

  --root DIR   another checkout than this one
  --dot        the graphs as Graphviz text
  --summary    only the last lines";

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn run(mut args: impl Iterator<Item = String>) -> Result<String, String> {
    match args.next().as_deref() {
        Some("rooms") => {}
        Some(other) => return Err(format!("unknown program `{other}`\n\n{USAGE}")),
        None => return Err(USAGE.to_owned()),
    }
    let mut root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let mut form = rooms::Form::Tables;
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--root" => {
                let given = args.next().ok_or("`--root` needs a folder")?;
                root = PathBuf::from(given);
            }
            "--dot" => form = rooms::Form::Dot,
            "--summary" => form = rooms::Form::Summary,
            "--help" => return Ok(format!("{USAGE}\n")),
            _ => return Err(format!("unknown option `{arg}`\n\n{USAGE}")),
        }
    }
    rooms::report(&root, form)
}
