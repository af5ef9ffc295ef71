//! `taskledger events import`

use crate::cli::output::Output;
use crate::cli::progress::Progress;
use crate::cli::{CliError, storage};
use crate::config::StorageConfig;
use crate::store::transfer::{
    Checked, Checker, ExportedKey, LINE_BYTES_MAX, Line, PAGE_BYTES_MAX, PAGE_EVENTS_MAX, Receipt,
    Source, Tally, Target,
};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::process::ExitCode;
use taskledger_auth::{Action, By, Entry};
use taskledger_domain::Timestamp;

/// Make a log from an export: move it to another folder or database
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger events export --with-keys --output log.jsonl --data-dir ./taskledger-data
  taskledger events import log.jsonl --database-url postgres://h/ledger
  taskledger events export --with-keys | taskledger events import - --data-dir ./elsewhere

Stop the server before the export, or what it writes afterwards is not moved. The target must have
no log; a server that runs on an empty database takes up flows that were running within half a minute. Everything that was written is read back and compared, by count and SHA-256, before any of
it is there; a broken-off import leaves nothing. An export that was cut off is refused: its last line holds
the count and the SHA-256 of all lines before it.")]
pub(super) struct Args {
    /// The export, or `-` for standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// Also take an export without its closing line: one that an earlier version wrote to standard
    /// output, or lines that another program made. If it was cut off between two lines, what is missing
    /// is not noticed
    #[arg(long)]
    allow_unterminated: bool,
    #[command(flatten)]
    storage: StorageConfig,
}

/// Imports, compares, finishes.
pub(super) async fn import(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    let (input, size) = open(&args.file)?;
    let (target, lock) = storage::target(&args.storage).await?;
    let taken = take_in(input, size, target, args.allow_unterminated).await;
    if let (Err(_), Some(lock)) = (&taken, lock) {
        lock.undo();
    }
    let given = taken?;
    let by = By::server();
    let entry = Entry::done(by, Action::Import, None).with(serde_json::json!(given));
    if let Err(error) = storage::record(&args.storage, &entry).await {
        eprintln!("imported, but the audit log does not say so: {error}");
    }
    if out.is_json() {
        out.value(&serde_json::json!(given))?;
    } else {
        out.line(format!("imported and compared {given}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes, compares and finishes; on failure the target is as empty as before.
async fn take_in(
    input: Box<dyn BufRead + Send>,
    size: Option<u64>,
    mut target: Box<dyn Target>,
    allow_unterminated: bool,
) -> Result<Receipt, CliError> {
    let now = storage::clock().now();
    let given = read(input, size, &mut *target, now, allow_unterminated).await?;
    let stored = read_back(&mut *target, given.events, now).await?;
    if stored != given {
        return Err(CliError::Failed(format!(
            "what was written differs from what was read ({stored}; {given}); nothing is imported"
        )));
    }
    target.finish().await.map_err(|e| CliError::failed(&e))?;
    Ok(given)
}

/// The lines, and how many bytes they have if that is known.
fn open(file: &str) -> Result<(Box<dyn BufRead + Send>, Option<u64>), CliError> {
    if file == "-" {
        return Ok((Box::new(BufReader::new(io::stdin())), None));
    }
    let opened = File::open(file).and_then(|f| Ok((f.metadata()?.len(), f)));
    let (size, opened) = opened.map_err(|e| CliError::Usage(format!("`{file}`: {e}")))?;
    Ok((Box::new(BufReader::new(opened)), Some(size)))
}

/// Takes in all lines.
async fn read(
    mut input: Box<dyn BufRead + Send>,
    size: Option<u64>,
    target: &mut dyn Target,
    now: Timestamp,
    allow_unterminated: bool,
) -> Result<Receipt, CliError> {
    let failed = |e| CliError::failed(&e);
    let mut checker = Checker::default();
    let mut progress = Progress::of("bytes read");
    let (mut events, mut keys, mut waiting) = (Vec::<Checked>::new(), Vec::<ExportedKey>::new(), 0);
    let (mut number, mut bytes) = (0_u64, 0_u64);
    // All lines of the file, and whether its last one was met. From the first key on, what is taken of
    // them is counted apart: keys that have expired since are left.
    let (mut whole, mut ended) = (Tally::default(), false);
    let mut is_archive = false;
    let mut taken: Option<Tally> = None;
    let mut buffer = Vec::new();
    while let Some(line) = next_line(&mut input, &mut buffer, number + 1)? {
        number += 1;
        bytes += line.len() as u64 + 1;
        let fault = |reason: String| CliError::Usage(format!("line {number}: {reason}"));
        let parsed = Line::parse(line).map_err(fault)?;
        if ended {
            return Err(fault(
                "something stands behind the end of the export".to_owned(),
            ));
        }
        let text = parsed.text();
        if let Line::Key(key) = &parsed {
            let taken = taken.get_or_insert_with(|| whole.clone());
            if key.expires_at >= now {
                taken.add(&parsed, &text);
            }
        }
        whole.add(&parsed, &text);
        match parsed {
            Line::Key(key) => {
                if key.expires_at >= now {
                    keys.push(key);
                }
            }
            Line::End(end) => {
                ended = true;
                let found = whole.clone().receipt();
                if found != end.end {
                    return Err(fault(format!(
                        "the export had {}, this file has {found}: it was cut off or changed",
                        end.end
                    )));
                }
            }
            Line::Event(_) if taken.is_some() => {
                return Err(fault("an event stands behind the keys".to_owned()));
            }
            Line::Archive(_) if number > 1 => {
                return Err(fault("an archive begins with this line".to_owned()));
            }
            Line::Archive(_) => {
                is_archive = true;
                checker = Checker::of_archive();
            }
            Line::Event(event) => {
                waiting += event.data.get().len();
                events.push(checker.check(event).map_err(fault)?);
            }
        }
        if events.len() >= PAGE_EVENTS_MAX || waiting >= PAGE_BYTES_MAX {
            target.write(&events).await.map_err(failed)?;
            events.clear();
            waiting = 0;
        }
        if keys.len() >= PAGE_EVENTS_MAX {
            target.write_keys(&keys).await.map_err(failed)?;
            keys.clear();
        }
        if let Some(size) = size {
            progress.at(bytes, size);
        }
    }
    if !ended {
        check_unterminated(number, is_archive, allow_unterminated)?;
    }
    checker.finish().map_err(CliError::Usage)?;
    target.write(&events).await.map_err(failed)?;
    target.write_keys(&keys).await.map_err(failed)?;
    progress.end();
    Ok(taken.unwrap_or(whole).receipt())
}

/// Whether a file of so many lines without the line that closes an export may be taken in.
fn check_unterminated(lines: u64, is_archive: bool, allowed: bool) -> Result<(), CliError> {
    let missing = format!(
        "line {}: expected the closing line `{{\"end\": ..}}`, which holds the number and the SHA-256 of \
         the lines before it, but the file ends before it",
        lines + 1
    );
    if is_archive {
        // Each archive has had it.
        return Err(CliError::Usage(format!(
            "{missing}: the archive was cut off; nothing is imported"
        )));
    }
    if !allowed {
        return Err(CliError::Usage(format!(
            "{missing}: the export was cut off; nothing is imported. Export the log again, or give \
             --allow-unterminated for an export that was written without this line"
        )));
    }
    eprintln!("{missing}; if it was cut off between two lines, what is missing is not noticed");
    Ok(())
}

/// The next line, without its end; `None` behind the last one.
fn next_line<'t>(
    input: &mut dyn BufRead,
    text: &'t mut Vec<u8>,
    number: u64,
) -> Result<Option<&'t str>, CliError> {
    let fault = |reason: String| CliError::Usage(format!("line {number}: {reason}"));
    text.clear();
    let limit = LINE_BYTES_MAX as u64 + 1;
    let read = input.take(limit).read_until(b'\n', text);
    if read.map_err(|e| fault(e.to_string()))? == 0 {
        return Ok(None);
    }
    if text.len() > LINE_BYTES_MAX {
        return Err(fault(format!("it has more than {LINE_BYTES_MAX} bytes")));
    }
    if text.last() == Some(&b'\n') {
        text.pop();
    }
    let line = std::str::from_utf8(text).map_err(|e| fault(e.to_string()))?;
    Ok(Some(line))
}

/// What is stored, in the same terms as what was read.
async fn read_back(
    target: &mut dyn Target,
    total: u64,
    now: Timestamp,
) -> Result<Receipt, CliError> {
    let mut progress = Progress::of("events compared");
    let mut source: Box<dyn Source + '_> =
        target.read_back().await.map_err(|e| CliError::failed(&e))?;
    let mut tally = Tally::default();
    super::lines(&mut *source, Some(now), |line, text| {
        tally.add(line, text);
        progress.at(tally.events(), total);
        Ok(())
    })
    .await?;
    progress.end();
    Ok(tally.receipt())
}
