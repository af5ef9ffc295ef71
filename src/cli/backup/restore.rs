//! `taskledger restore`

use super::manifest::Manifest;
use super::{Unfinished, copy_file, log_faults, unusable};
use crate::cli::{CliError, storage};
use crate::config::StorageConfig;
use crate::server::Storage;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use taskledger_cli::following::say;
use taskledger_cli::output::{Output, counted};

/// Make a data folder from a backup
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger restore /backup/ledger-monday --data-dir ./restored

The data folder must be new or empty. Each file is compared with the backup's manifest, and every event of the log
is checked, before the folder gets its name: an interrupted restore leaves no data folder, or an empty one.")]
pub(in crate::cli) struct Args {
    /// A folder that `taskledger backup` made
    #[arg(value_name = "BACKUP")]
    backup: PathBuf,
    #[command(flatten)]
    storage: StorageConfig,
}

/// Restores, and says what.
pub(in crate::cli) async fn restore(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    let folder = match storage::storage(&args.storage)? {
        Storage::Folder(folder) => folder,
        Storage::Database(_) => {
            return Err(CliError::Usage(
                "a database is restored with its own tools: `pg_restore --exit-on-error \
                 --dbname=\"$TASKLEDGER_DATABASE_URL\" FILE` into an empty database, then `taskledger events verify`"
                    .to_owned(),
            ));
        }
    };
    let done = tokio::task::spawn_blocking(move || into_folder(&args.backup, &folder));
    let (manifest, folder) = done.await.map_err(|e| CliError::failed(&e))??;
    if out.is_json() {
        out.value(&serde_json::json!(manifest))?;
    } else {
        out.line(format!(
            "restored {} of {} into {}",
            counted(manifest.position, "event", "events"),
            manifest.created_at,
            folder.display()
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn into_folder(backup: &Path, folder: &Path) -> Result<(Manifest, PathBuf), CliError> {
    let manifest = Manifest::read(backup).map_err(CliError::Failed)?;
    let place = Unfinished::begin(folder, "--data-dir")?;
    for file in &manifest.files {
        let from = backup.join(&file.name);
        copy_file(&from, &place.folder.join(&file.name)).map_err(|e| unusable(&from, &e))?;
    }
    // Of the copies: what was read is what is checked.
    let faults = manifest.faults(&place.folder);
    if let Some(first) = faults.first() {
        place.abandon();
        return Err(CliError::Failed(format!(
            "the backup is damaged, nothing was restored: {first}{}",
            match faults.len() {
                1 => String::new(),
                count => format!(", and {} more; see `taskledger backup verify`", count - 1),
            }
        )));
    }
    // The files are those that were backed up: what is wrong with the log was so then.
    if let Some(first) = log_faults(&manifest, &place.folder)?.first() {
        say(&format!(
            "WARNING: the log was damaged before it was backed up, and is restored as it was: {first}; \
             `taskledger events verify` names every such row"
        ));
    }
    Ok((manifest, place.finish()?))
}
