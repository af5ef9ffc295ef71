//! `taskledger events import`

use super::file::Lines;
use crate::cli::progress::Progress;
use crate::cli::{CliError, storage};
use crate::config::StorageConfig;
use crate::server::Storage;
use crate::store::chain::{Chain, Followed, Mark, Remains, Step};
use crate::store::transfer::{
    Checked, Checker, ExportedKey, Line, PAGE_BYTES_MAX, PAGE_EVENTS_MAX, Receipt, Source, Tally,
    Target,
};
use std::process::ExitCode;
use taskledger_auth::{Action, By, Entry, Outcome};
use taskledger_cli::output::Output;
use taskledger_domain::Timestamp;

/// Make a log from an export: move it to another folder or database
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger events export --with-keys --output log.jsonl --data-dir ./taskledger-data
  taskledger events import log.jsonl --database-url postgres://h/ledger
  taskledger events export --with-keys | taskledger events import - --data-dir ./elsewhere

Stop the server before the export; otherwise events that it writes afterwards are not moved. The target must
not have a log. A server that runs on an empty database continues imported flows within half a minute. The
import is compared with the export by count and SHA-256 before it becomes visible; an interrupted import
leaves nothing. A truncated export is refused, and so is one without a hash chain, or whose hash chain is broken
or does not end where the last line says. Whoever can change the events can also make the last line and all
hashes anew: --expect-head compares with a head that was kept elsewhere.")]
pub(super) struct Args {
    /// The export, or `-` for standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// Also accept an export without its last line: one that another program made. If it was cut off between two
    /// lines, the missing events are not noticed
    #[arg(long)]
    allow_unterminated: bool,
    /// Import without hashes: the new log starts its own hash chain with the next append. For a log whose chain is
    /// broken
    #[arg(long)]
    restart_chain: bool,
    /// Also accept an export whose events have no hashes: nothing proves that they were not changed
    #[arg(long)]
    accept_unchained: bool,
    /// A head that `events verify` or `events export` printed: the hash chain of the export must go through it. Only
    /// this proves that nobody has made the export anew
    #[arg(long, value_name = "HASH@POSITION", conflicts_with_all = ["restart_chain", "accept_unchained"])]
    expect_head: Option<Mark>,
    #[command(flatten)]
    storage: StorageConfig,
}

/// Imports, compares, finishes.
pub(super) async fn import(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    let input = Lines::open(&args.file)?;
    let (target, lock) = storage::target(&args.storage).await?;
    let taken = Box::pin(take_in(input, target, &args)).await;
    if let (Err(_), Some(lock)) = (&taken, lock) {
        lock.undo();
    }
    let taken = taken?;
    if out.is_json() {
        out.value(&serde_json::json!(taken))?;
    } else {
        let chain = match taken.chain {
            Some(chain) => format!(
                "its hash chain, from position {} on, was followed and kept",
                chain.from
            ),
            None => "it has no hashes: the hash chain starts with the next append".to_owned(),
        };
        out.lines([format!("imported and compared {}", taken.receipt), chain])?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What was imported.
#[derive(Debug, serde::Serialize)]
struct Taken {
    #[serde(flatten)]
    receipt: Receipt,
    /// Absent when no event has a hash.
    chain: Option<Followed>,
}

/// Writes, compares and finishes; on failure the target is as empty as before.
async fn take_in(
    input: Lines,
    mut target: Box<dyn Target>,
    args: &Args,
) -> Result<Taken, CliError> {
    let now = storage::clock().now();
    let taken = read(input, &mut *target, now, args).await?;
    let given = &taken.receipt;
    let stored = read_back(&mut *target, given.events, now).await?;
    if stored != *given {
        return Err(CliError::Failed(format!(
            "the stored events differ from the export ({stored}; {given}); nothing is imported"
        )));
    }
    let entry = Entry::done(By::operator(), Action::Import, None).with(serde_json::json!(taken));
    let finished = async { target.finish().await.map_err(|e| CliError::failed(&e)) };
    // A database may have committed although its answer was lost.
    let failed = match storage::storage(&args.storage)? {
        Storage::Folder(_) => Outcome::Refused,
        Storage::Database(_) => Outcome::Unknown,
    };
    storage::audited(&args.storage, entry, failed, finished).await?;
    Ok(taken)
}

/// What was read and is not yet written.
#[derive(Default)]
struct Page {
    events: Vec<Checked>,
    remains: Vec<Remains>,
    keys: Vec<ExportedKey>,
    bytes: usize,
}

impl Page {
    fn is_full(&self) -> bool {
        let lines = self.events.len() + self.remains.len() + self.keys.len();
        lines >= PAGE_EVENTS_MAX || self.bytes >= PAGE_BYTES_MAX
    }

    async fn write(self, target: &mut dyn Target) -> Result<(), CliError> {
        let failed = |e| CliError::failed(&e);
        target.write(&self.events).await.map_err(failed)?;
        target.write_remains(&self.remains).await.map_err(failed)?;
        target.write_keys(&self.keys).await.map_err(failed)
    }
}

/// Takes in all lines.
async fn read(
    mut input: Lines,
    target: &mut dyn Target,
    now: Timestamp,
    args: &Args,
) -> Result<Taken, CliError> {
    let (mut checker, mut chain) = (Checker::default(), Chain::with(args.expect_head));
    let mut progress = Progress::of("bytes read");
    let mut page = Page::default();
    // What is taken of the lines: keys that have expired are left, and hashes if the caller says so.
    let mut taken = Tally::default();
    while let Some((line, text)) = input.next()? {
        match line {
            Line::Key(key) if key.expires_at < now => {}
            Line::Key(key) => {
                taken.add(&Line::Key(key.clone()), &text);
                page.keys.push(key);
            }
            Line::Archive(_) => checker = Checker::of_archive(),
            Line::Event(mut event) => {
                if args.restart_chain {
                    event.hash = None;
                }
                let step = event.step();
                let line = Line::Event(event.clone());
                let text = if args.restart_chain {
                    line.text()
                } else {
                    text
                };
                taken.add(&line, &text);
                page.bytes += event.data.get().len();
                let checked = checker.check(event);
                let checked = checked.map_err(|e| input.explained(input.placed(&e)));
                let checked = checked.map_err(CliError::Usage)?;
                if let Err(reason) = follow(&mut chain, &step, input.is_archive()) {
                    return Err(broken(input, &reason));
                }
                page.events.push(checked);
            }
            Line::Dropped(_) if args.restart_chain => {}
            Line::Dropped(line) => {
                let step = Step::Dropped(line.dropped);
                if let Err(reason) = follow(&mut chain, &step, false) {
                    return Err(broken(input, &reason));
                }
                taken.add(&Line::Dropped(line), &text);
                page.remains.push(line.dropped);
            }
            // Not given by the reader.
            Line::End(_) => {}
        }
        if page.is_full() {
            std::mem::take(&mut page).write(target).await?;
        }
        if let (bytes, Some(size)) = input.progress() {
            progress.at(bytes, size);
        }
    }
    if !input.is_whole() {
        check_unterminated(&input, args.allow_unterminated)?;
    }
    let whole = checker.finish().map_err(|e| input.explained(e));
    whole.map_err(CliError::Usage)?;
    let receipt = input.receipt();
    check_chain(&input, &chain, receipt.events, args)
        .map_err(|reason| CliError::Usage(format!("{reason}; nothing is imported")))?;
    page.write(target).await?;
    progress.end();
    Ok(Taken {
        receipt: taken.receipt(),
        chain: chain.followed(),
    })
}

/// Goes on along the chain; an archive has none.
fn follow(chain: &mut Chain, step: &Step, is_archive: bool) -> Result<(), String> {
    if is_archive {
        return Ok(());
    }
    chain.step(step)
}

/// That the chain does not hold at the last line that was read. To give it up helps only where the rest of the file,
/// with the digest at its end, is as it was written. Cost: reading the rest.
fn broken(mut input: Lines, reason: &str) -> CliError {
    let told = input.placed(reason);
    if input.part().is_some() {
        return CliError::Usage(input.explained(told));
    }
    let changed = loop {
        match input.next() {
            Ok(Some(_)) => {}
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    let advice = match (changed, input.is_whole()) {
        (Some(error), _) => format!("\n  {error}; nothing is imported: export the log again"),
        (None, true) => {
            "; --restart-chain imports the log without hashes and starts a new chain".to_owned()
        }
        (None, false) => "; --restart-chain with --allow-unterminated imports the log without hashes and starts a \
                          new chain"
            .to_owned(),
    };
    CliError::Usage(format!("{told}{advice}"))
}

/// Whether the export has a hash chain that ends where it should.
fn check_chain(input: &Lines, chain: &Chain, events: u64, args: &Args) -> Result<(), String> {
    chain
        .finish()
        .map_err(|reason| format!("--expect-head: {reason}"))?;
    if args.restart_chain || input.is_archive() || events == 0 {
        return Ok(());
    }
    let followed = chain.followed();
    if followed.is_none() && !args.accept_unchained {
        return Err(
            "the events have no hashes, so nothing proves that they were not changed: import an export of the log \
             itself, or give --accept-unchained"
                .to_owned(),
        );
    }
    input.check_head(followed)
}

/// Whether a file without the line that closes an export may be taken in.
fn check_unterminated(input: &Lines, allowed: bool) -> Result<(), CliError> {
    let missing = input.missing_end();
    if input.is_archive() {
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
    eprintln!("{missing}; if it was cut off between two lines, the missing events are not noticed");
    Ok(())
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
