//! `taskledger events export`

use crate::cli::progress::Progress;
use crate::cli::{CliError, storage};
use crate::config::StorageConfig;
use crate::private;
use crate::store::chain::{Chain, Mark, Step};
use crate::store::transfer::{End, Line, Receipt, Tally};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use taskledger_cli::following::say;
use taskledger_cli::output::Output;

/// Write every event as one line of JSON, in order, and a last line with their count and SHA-256
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger events export --data-dir ./taskledger-data > events.jsonl
  taskledger events export --after 1000 | head
  taskledger events export --with-keys --output log.jsonl --database-url postgres://h/ledger

A server may be running. The last line holds the number and the SHA-256 of the lines before it, so that
`events import` notices a truncated file. The command warns if the hash chain of the log is broken.")]
pub(super) struct Args {
    #[command(flatten)]
    storage: StorageConfig,
    /// Only events after this position; such a part of a log can be neither verified nor imported
    #[arg(long, value_name = "POSITION", default_value_t = 0)]
    after: u64,
    /// Also write the idempotency keys that are still valid, after the events: for moving a log, so that repeated
    /// calls still get their first answer
    #[arg(long)]
    with_keys: bool,
    /// Write to this new file, which appears when it is complete
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Writes the log from after a position to its present end.
pub(super) async fn export(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    let Some(path) = args.output.clone() else {
        let written = write(&args, |line| out.line_of_many(line)).await?;
        out.line_of_many(&end(written))?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    };
    if path.exists() {
        return Err(CliError::Usage(format!(
            "--output: `{}` exists already, expected a new file",
            path.display()
        )));
    }
    let mut unfinished = path.clone().into_os_string();
    unfinished.push(".part");
    let unfinished = PathBuf::from(unfinished);
    let file = private::create_new(&unfinished)
        .map_err(|e| CliError::Usage(format!("--output: `{}`: {e}", unfinished.display())))?;
    let written = write_file(&args, file).await;
    let named = written.and_then(|written| {
        // Unlike renaming, this fails when somebody has made a file of that name meanwhile.
        std::fs::hard_link(&unfinished, &path)?;
        Ok(written)
    });
    // On success its name, on failure the file.
    drop(std::fs::remove_file(&unfinished));
    let written = named?;
    if out.is_json() {
        out.value(&serde_json::json!(written))?;
    } else {
        let head = written.head.map(|head| format!("head {head}"));
        let exported = format!("exported {}", written.receipt);
        out.lines([exported].into_iter().chain(head))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn write_file(args: &Args, file: File) -> Result<Written, CliError> {
    let mut file = BufWriter::new(file);
    let written = write(args, |line| {
        file.write_all(line.as_bytes())?;
        file.write_all(b"\n")
    });
    let written = written.await?;
    file.write_all(end(written.clone()).as_bytes())?;
    file.write_all(b"\n")?;
    let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    Ok(written)
}

/// What was written before the closing line.
#[derive(Debug, Clone, serde::Serialize)]
struct Written {
    #[serde(flatten)]
    receipt: Receipt,
    /// Where the hash chain ends; absent when no event has a hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<Mark>,
}

fn end(written: Written) -> String {
    let Written { receipt, head } = written;
    Line::End(End { end: receipt, head }).text()
}

async fn write(
    args: &Args,
    mut put: impl FnMut(&str) -> io::Result<()>,
) -> Result<Written, CliError> {
    let mut source = storage::source(&args.storage, args.after).await?;
    let mut progress = Progress::of("events");
    let head = source.head();
    let mut tally = Tally::default();
    let mut chain = Chain::default();
    let mut broken = None;
    if args.after > 0 {
        // What the first event rests on is not read.
        drop(chain.step(&Step::Damaged(args.after)));
    }
    let keys_at = args.with_keys.then(|| storage::clock().now());
    super::lines(&mut *source, keys_at, |line, text| {
        put(text)?;
        tally.add(line, text);
        let step = match line {
            Line::Event(event) => Some(event.step()),
            Line::Dropped(line) => Some(Step::Dropped(line.dropped)),
            Line::Archive(_) | Line::Key(_) | Line::End(_) => None,
        };
        if let Some(step) = step
            && let Err(reason) = chain.step(&step)
            && broken.is_none()
        {
            broken = Some(format!("position {}: {reason}", step.position()));
        }
        if let (Line::Event(event), Some(_)) = (line, &args.output) {
            progress.at(event.position, head);
        }
        Ok(())
    })
    .await?;
    progress.end();
    if let Some(broken) = broken {
        say(&format!(
            "WARNING: the hash chain of this log does not hold, so the export is not what was recorded: {broken}; \
             `taskledger events verify` names every such row"
        ));
    }
    Ok(Written {
        receipt: tally.receipt(),
        head: chain.followed().map(|chain| chain.head),
    })
}
