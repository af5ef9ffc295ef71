//! `taskledger backup` and `taskledger restore`: everything in a data folder, while a server runs.
//!
//! Owns: which files of a data folder belong to a backup, and that a backup or a restored folder has its name only when
//! it is complete. Files are copied in [`crate::store::sqlite::backup`]; the list of them is [`manifest`]'s.

mod manifest;
mod restore;

pub(super) use restore::{Args as RestoreArgs, restore};

use super::progress::Progress;
use super::{CliError, storage};
use crate::config::StorageConfig;
use crate::private;
use crate::sealing::KEYS_FILE;
use crate::server::{BACKED_UP_STORES, READ_MODELS_FILE, Storage};
use crate::store::lock::{DataDirLock, LOCK_FILE};
use crate::store::sqlite::LEDGER_FILE;
use crate::store::sqlite::backup::HeldFiles;
use clap::Subcommand;
use manifest::{Copied, MANIFEST_FILE, Manifest};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use taskledger_auth::tokens::ADMIN_TOKEN_FILE;
use taskledger_cli::following::say;
use taskledger_cli::output::{Output, counted};

/// Ends the name of what is not complete yet.
const UNFINISHED: &str = ".part";
/// Files that are copied as they are, if they are there.
const PLAIN_FILES: [&str; 2] = [KEYS_FILE, ADMIN_TOKEN_FILE];

/// Copy everything in a data folder into a new folder, while the server runs
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  taskledger backup /backup/ledger-monday --data-dir ./taskledger-data
  taskledger backup verify /backup/ledger-monday
  taskledger restore /backup/ledger-monday --data-dir ./restored

The server may be running: all files are copied as they were at one moment. DIR appears when it is complete. It
holds the log, schedules, workflows, secrets with their key, tokens, the audit log, webhooks, inboxes of the
broker, what is stored for workers, and manifest.json with the SHA-256 of each file. Whoever can read it can use
the secrets. It does not hold the archives of `retention` and the read models, which are rebuilt.
A Postgres database is backed up with pg_dump; with --database-url this prints the command."
)]
pub(super) struct Args {
    /// The new folder
    #[arg(value_name = "DIR", required = true)]
    to: Option<PathBuf>,
    #[command(flatten)]
    storage: StorageConfig,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check every file of a backup, and every event of its log
    Verify {
        /// The backup
        #[arg(value_name = "DIR")]
        backup: PathBuf,
    },
}

/// Makes a backup, or checks one.
pub(super) async fn backup(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    if let Some(Command::Verify { backup }) = args.command {
        return verify(&backup, out);
    }
    let to = args
        .to
        .ok_or_else(|| CliError::Usage("expected the new folder".to_owned()))?;
    match storage::storage(&args.storage)? {
        Storage::Folder(folder) => {
            let done = tokio::task::spawn_blocking(move || of_folder(&folder, &to));
            let (manifest, to) = done.await.map_err(|e| CliError::failed(&e))??;
            report(&manifest, &to, out)
        }
        Storage::Database(_) => Err(CliError::Usage(of_database(&to))),
    }
}

/// What to do for a database. Its log and everything beside it are in one database, so one dump is one moment.
fn of_database(to: &Path) -> String {
    format!(
        "a database is backed up with its own tools: one dump shows the log and everything beside it as they were at \
         one moment: `pg_dump --format=custom --exclude-schema='taskledger_rows*' --file={} \"$TASKLEDGER_DATABASE_URL\"`. \
         Keep the file of --secrets-key-file with it. Restore into an empty database with `pg_restore --exit-on-error \
         --dbname=\"$TASKLEDGER_DATABASE_URL\" {0}`, and check it with `taskledger events verify`",
        to.display()
    )
}

fn of_folder(folder: &Path, to: &Path) -> Result<(Manifest, PathBuf), CliError> {
    let log = storage::log_in(folder).map_err(CliError::Failed)?;
    let place = Unfinished::begin(to, "DIR")?;
    let beside: Vec<PathBuf> = BACKED_UP_STORES.iter().map(|it| folder.join(it)).collect();
    let held = HeldFiles::hold(&log, &beside).map_err(|e| CliError::failed(&e))?;
    let mut progress = Progress::of("pages");
    let copies = held.copy_into(&place.folder, |done, of| progress.at(done, of));
    progress.end();
    let mut copies = copies.map_err(|e| CliError::failed(&e))?;
    for name in PLAIN_FILES {
        let (from, copy) = (folder.join(name), place.folder.join(name));
        if from.exists() {
            copy_file(&from, &copy).map_err(|e| unusable(&from, &e))?;
            copies.push(copy);
        }
    }
    let mut files = Vec::with_capacity(copies.len());
    for copy in &copies {
        files.push(Copied::of(copy).map_err(|e| unusable(copy, &e))?);
    }
    let mark = held.mark().map(|mark| mark.to_string());
    let manifest = Manifest::new(storage::clock().now(), held.position(), mark, files);
    drop(held);
    let written = manifest.write(&place.folder);
    written.map_err(|e| unusable(&place.folder, &e))?;
    Ok((manifest, place.finish()?))
}

fn report(manifest: &Manifest, to: &Path, out: &mut Output) -> Result<ExitCode, CliError> {
    if !manifest.has(KEYS_FILE) {
        say(&format!(
            "there is no {KEYS_FILE} in the data folder: keep the file of --secrets-key-file with this backup; without \
             it no secret in it can be used"
        ));
    }
    if out.is_json() {
        out.value(&serde_json::json!(manifest))?;
    } else {
        out.line(format!(
            "backed up {} and everything beside them into {}",
            counted(manifest.position, "event", "events"),
            to.display()
        ))?;
        out.line(format!(
            "not in it: {READ_MODELS_FILE}, which is rebuilt, and the archives of retention"
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn verify(backup: &Path, out: &mut Output) -> Result<ExitCode, CliError> {
    let manifest = Manifest::read(backup).map_err(CliError::Failed)?;
    let mut faults = manifest.faults(backup);
    if faults.is_empty() {
        faults.extend(log_faults(&manifest, backup)?);
    }
    if out.is_json() {
        let sound = faults.is_empty();
        out.value(&serde_json::json!({"sound": sound, "faults": faults, "manifest": manifest}))?;
    } else {
        out.lines(faults.iter().cloned())?;
        out.line(match faults.is_empty() {
            true => format!(
                "sound: {} of {} and {}",
                counted(manifest.files.len() as u64, "file", "files"),
                manifest.created_at,
                counted(manifest.position, "event", "events"),
            ),
            false => "DAMAGED".to_owned(),
        })?;
    }
    Ok(match faults.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// What is wrong with the log of a backup or of a restored folder, in words.
fn log_faults(manifest: &Manifest, folder: &Path) -> Result<Vec<String>, CliError> {
    let mark = manifest.mark().map_err(CliError::Failed)?;
    let mut progress = Progress::of("events");
    let report = crate::store::sqlite::verify(&folder.join(LEDGER_FILE), mark, |at, of| {
        progress.at(at, of);
    });
    progress.end();
    let report = report.map_err(|e| CliError::failed(&e))?;
    let mut faults: Vec<String> = report.faults.iter().map(ToString::to_string).collect();
    if report.more_faults > 0 {
        faults.push(format!("and {} more faults of the log", report.more_faults));
    }
    if report.head != manifest.position {
        faults.push(format!(
            "the log ends at position {}, {MANIFEST_FILE} names {}",
            report.head, manifest.position
        ));
    }
    Ok(faults)
}

/// A folder that gets its name when it is complete. If the process ends before, what is left has another name and no
/// manifest; the next one of the same name removes it.
struct Unfinished {
    folder: PathBuf,
    to: PathBuf,
    lock: DataDirLock,
}

impl Unfinished {
    /// Makes the folder beside `to`, which must not exist or be an empty folder. `what` names it in messages.
    fn begin(to: &Path, what: &str) -> Result<Self, CliError> {
        let is_free = match fs::read_dir(to) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if !is_free {
            return Err(CliError::Usage(format!(
                "{what}: `{}` exists already, expected a new or an empty folder",
                to.display()
            )));
        }
        let to = std::path::absolute(to).map_err(|e| unusable(to, &e))?;
        let mut name = to.clone().into_os_string();
        name.push(UNFINISHED);
        let folder = PathBuf::from(name);
        let lock = DataDirLock::acquire(&folder).map_err(|e| CliError::failed(&e))?;
        let unfinished = Self { folder, to, lock };
        unfinished
            .clear()
            .map_err(|e| unusable(&unfinished.folder, &e))?;
        Ok(unfinished)
    }

    /// Removes what an earlier try has left. Folders are not entered: none is ever made there.
    fn clear(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.file_name().is_some_and(|name| name != LOCK_FILE) {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// Removes it. What cannot be removed is left to the next one.
    fn abandon(self) {
        let _ = self.clear();
        let _ = fs::remove_file(self.folder.join(LOCK_FILE));
        let _ = fs::remove_dir(&self.folder);
    }

    /// Has the disk take all of it, and gives it its name.
    fn finish(self) -> Result<PathBuf, CliError> {
        let Self { folder, to, lock } = self;
        let finish = || {
            fs::remove_file(folder.join(LOCK_FILE))?;
            File::open(&folder)?.sync_all()?;
            fs::rename(&folder, &to)?;
            match to.parent() {
                Some(above) => File::open(above)?.sync_all(),
                None => Ok(()),
            }
        };
        let finished = finish();
        drop(lock);
        finished.map_err(|error| {
            let is_mount = matches!(
                error.kind(),
                io::ErrorKind::ResourceBusy | io::ErrorKind::CrossesDevices
            );
            let hint = if is_mount {
                "; a mount point cannot be replaced: name a folder in it"
            } else {
                ""
            };
            CliError::Failed(format!(
                "`{}` cannot be renamed to `{}`: {error}{hint}",
                folder.display(),
                to.display()
            ))
        })?;
        Ok(to)
    }
}

/// Copies a file that is not written meanwhile, with mode 0600, synced.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut copy = private::create_new(to)?;
    io::copy(&mut File::open(from)?, &mut copy)?;
    copy.sync_all()
}

fn unusable(path: &Path, error: &io::Error) -> CliError {
    CliError::Failed(format!("`{}`: {error}", path.display()))
}
