//! `taskledger events verify`

use super::file::Lines;
use crate::cli::{CliError, storage};
use crate::config::StorageConfig;
use crate::store::chain::{Chain, Followed, Mark, Step};
use crate::store::transfer::{Checker, Line, Receipt};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use taskledger_auth::store::AuditProof;
use taskledger_cli::output::{Output, counted};

/// Check every row of the log, or of an exported file; names the damaged and the changed ones
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger events verify --data-dir ./taskledger-data
  taskledger events verify --head 5f1d..c09e@1042 --database-url postgres://h/ledger
  taskledger events verify log.jsonl

Each event has a hash that includes the hash of the event before it. Keep the head that is printed in a
place outside the server: later, --head proves that no event up to it was changed or removed. FILE is an
export of the whole log or an archive, not an export that --after begins; the last event of each archived
flow names the SHA-256 of its archive.
The audit log has such a chain too, which is followed up to now.
Exit code 1: a row is damaged, changed or missing.")]
pub(super) struct Args {
    /// Check this export or archive instead of the log; `-` is standard input
    #[arg(value_name = "FILE")]
    file: Option<String>,
    /// A head that an earlier `events verify` printed: the hash chain must go through it
    #[arg(long, value_name = "HASH@POSITION")]
    head: Option<Mark>,
    #[command(flatten)]
    storage: StorageConfig,
}

/// Reads every row, reports, and exits with 1 when one cannot be believed.
pub(super) async fn verify(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    if let Some(file) = &args.file {
        return verify_file(file, args.head, out);
    }
    let report = storage::verify(&args.storage, args.head).await?;
    let audit = storage::prove_audit(&args.storage).await;
    let has_fault = |audit: &Option<AuditProof>| audit.iter().any(|it| it.fault.is_some());
    let mut is_sound = report.is_sound();
    if out.is_json() {
        let audit = audit?;
        is_sound &= !has_fault(&audit);
        out.value(&serde_json::json!({"sound": is_sound, "report": report, "audit": audit}))?;
    } else {
        out.lines(report.faults.iter().map(ToString::to_string))?;
        if report.more_faults > 0 {
            out.lines([format!("and {} more", report.more_faults)])?;
        }
        let is_chained = report.chain.is_some() || report.events == 0;
        let verdict = match (report.is_sound(), is_chained) {
            (true, true) => "sound",
            (true, false) => "sound by checksums alone",
            (false, _) => "DAMAGED",
        };
        let dropped = match report.dropped {
            0 => String::new(),
            dropped => format!(", {dropped} more were dropped with archived flows"),
        };
        out.lines([format!(
            "{verdict}: {} in {}{dropped}",
            counted(report.events, "event", "events"),
            counted(report.streams, "flow", "flows"),
        )])?;
        let state = match (report.is_sound(), report.events) {
            (true, 0) => State::Empty,
            (true, _) => State::Sound,
            (false, _) => State::Damaged,
        };
        out.lines(chain_lines(report.chain, args.head, state))?;
        // The report of the log is of use also when this fails.
        let audit = audit?;
        is_sound &= !has_fault(&audit);
        out.lines(audit.as_ref().map(audit_line))?;
    }
    Ok(if is_sound {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn audit_line(audit: &AuditProof) -> String {
    match &audit.fault {
        None => format!("audit log: sound, {}", counted(audit.rows, "row", "rows")),
        Some(fault) => format!("audit log: CHANGED: {fault}"),
    }
}

/// What the walk through a log has found of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Empty,
    Sound,
    Damaged,
}

/// What is said of the chain, and of a hash that was kept.
fn chain_lines(chain: Option<Followed>, kept: Option<Mark>, state: State) -> Vec<String> {
    let mut lines = Vec::new();
    if let (Some(kept), State::Sound) = (kept, state) {
        lines.push(format!(
            "no event up to position {} has changed since the head was recorded",
            kept.position
        ));
    }
    lines.push(match chain {
        Some(Followed { from: 1, head }) => format!("head {head}"),
        Some(Followed { from, head }) => {
            format!("head {head}, events before position {from} have no hash")
        }
        None if state == State::Empty => "no head: there is no event".to_owned(),
        None if state == State::Sound => {
            "warning: there is no hash chain, so a forged event cannot be told from a sound one. Servers give a \
             hash to each event that they append: the hashes were removed, or the log was imported without them"
                .to_owned()
        }
        None => "no head: the last event is damaged".to_owned(),
    });
    lines
}

/// What was found in a file.
struct Found {
    receipt: Receipt,
    chain: Option<Followed>,
    /// How many flows, if it is an archive.
    archived: Option<u64>,
}

fn verify_file(file: &str, kept: Option<Mark>, out: &mut Output) -> Result<ExitCode, CliError> {
    if Path::new(file).is_dir() {
        return Err(CliError::Failed(format!(
            "`{file}` is a folder; expected an exported file. `taskledger events verify --data-dir FOLDER` checks the log of a server's folder"
        )));
    }
    let lines = Lines::open(file)?;
    let found = read(lines, kept).map_err(CliError::Failed)?;
    let sha256 = found.archived.map(|_| sha256(file)).transpose()?;
    if out.is_json() {
        out.value(&serde_json::json!({"sound": true, "receipt": found.receipt,
            "chain": found.chain, "archive_sha256": sha256}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let is_chained = found.chain.is_some() || found.archived.is_some() || found.receipt.events == 0;
    let verdict = if is_chained {
        "sound"
    } else {
        "sound by checksums alone"
    };
    out.lines([format!("{verdict}: {}", found.receipt)])?;
    match (found.archived, sha256) {
        (Some(flows), Some(sha256)) => out.lines([format!(
            "archive of {}, file sha256 {sha256}",
            counted(flows, "flow", "flows")
        )])?,
        (_, _) => {
            let state = match found.receipt.events {
                0 => State::Empty,
                _ => State::Sound,
            };
            out.lines(chain_lines(found.chain, kept, state))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a file to its end; on failure the first line that cannot be believed, and why.
fn read(mut lines: Lines, kept: Option<Mark>) -> Result<Found, String> {
    let (mut checker, mut chain) = (Checker::default(), Chain::with(kept));
    let mut archived = None;
    let no_log = |lines: &Lines, reason: &str| lines.explained(lines.placed(reason));
    while let Some((line, _)) = lines.next().map_err(|e| e.to_string())? {
        let step = match line {
            Line::Archive(head) => {
                checker = Checker::of_archive();
                archived = Some(head.archive.flows);
                continue;
            }
            Line::Event(event) => {
                let step = event.step();
                checker.check(event).map_err(|e| no_log(&lines, &e))?;
                step
            }
            Line::Dropped(line) => Step::Dropped(line.dropped),
            Line::Key(_) | Line::End(_) => continue,
        };
        if archived.is_none() {
            chain.step(&step).map_err(|e| no_log(&lines, &e))?;
        }
    }
    if !lines.is_whole() {
        return Err(format!("{}: it was cut off", lines.missing_end()));
    }
    checker.finish().map_err(|e| lines.explained(e))?;
    if kept.is_some() && archived.is_some() {
        return Err("--head: an archive has no hash chain, expected an export".to_owned());
    }
    chain.finish()?;
    if archived.is_none() {
        lines.check_head(chain.followed())?;
    }
    Ok(Found {
        receipt: lines.receipt(),
        chain: chain.followed(),
        archived,
    })
}

/// Of all of the file, as the last event of an archived flow has it.
fn sha256(file: &str) -> Result<String, CliError> {
    if file == "-" {
        return Ok("not known of standard input".to_owned());
    }
    let mut digest = Digester(Sha256::new());
    io::copy(&mut File::open(file)?, &mut digest)?;
    let digest = digest.0.finalize();
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Takes what is written into a digest.
struct Digester(Sha256);

impl io::Write for Digester {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
