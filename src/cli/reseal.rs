//! `taskledger webhooks reseal` and `taskledger secrets reseal`, which are one command: works on all stored
//! secrets, those of webhooks and those that tasks name, without a server.

use super::{CliError, storage};
use crate::config::{StorageConfig, WebhookConfig};
use crate::sealing::Keyring;
use crate::server::Storage;
use crate::store::lock::{DataDirLock, LockError};
use crate::webhooks::store::{Store, WEBHOOKS_FILE};
use serde_json::json;
use std::process::ExitCode;
use std::sync::Arc;
use taskledger_auth::{Action, AuditLog, AuthStore, By, Entry, Vault};
use taskledger_cli::output::Output;

/// Encrypt all secrets again with the first key of the key file, so that the other keys can be removed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger webhooks reseal --data-dir ./taskledger-data
  taskledger webhooks reseal --database-url postgres://h/ledger --secrets-key-file keys

To change the key: write a new first line into the file, restart the servers, reseal, remove the old line,
restart again. No server may use the data folder during `reseal`; with a database, servers may be running.")]
pub(super) struct Args {
    #[command(flatten)]
    storage: StorageConfig,
    #[command(flatten)]
    webhooks: WebhookConfig,
}

/// What `webhooks` and `secrets` do without a server.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    Reseal(Args),
}

impl Command {
    /// Does it.
    pub(super) async fn run(self, out: &mut Output) -> Result<ExitCode, CliError> {
        let Self::Reseal(args) = self;
        reseal(&args, out).await
    }
}

/// Seals anew what other keys have sealed.
async fn reseal(args: &Args, out: &mut Output) -> Result<ExitCode, CliError> {
    let clock = storage::clock();
    let file = args.webhooks.secrets_key_file.as_deref();
    let keys = file.map(Keyring::read).transpose();
    let keys = keys.map_err(|error| CliError::failed(&error))?;
    let mut lock = None;
    let (opened, auth, keys) = match storage::storage(&args.storage)? {
        Storage::Folder(folder) => {
            if !folder.join(WEBHOOKS_FILE).exists() {
                let text = format!("there are no webhooks in `{}`", folder.display());
                return Err(CliError::Failed(text));
            }
            lock = Some(
                DataDirLock::acquire(&folder)
                    .map_err(|error: LockError| CliError::failed(&error))?,
            );
            let keys = match keys {
                Some(keys) => keys,
                None => {
                    Keyring::of_folder(&folder, &clock).map_err(|error| CliError::failed(&error))?
                }
            };
            let auth = AuthStore::of_folder(&folder).await;
            let opened = Store::of_folder(&folder, keys.clone(), clock.clone()).await;
            (opened, auth, keys)
        }
        Storage::Database(database) => {
            let Some(keys) = keys else {
                let text = "--secrets-key-file: expected the key file of the servers";
                return Err(CliError::Usage(text.to_owned()));
            };
            let options = database.log(clock.clone());
            let opened = Store::of_database(&options, keys.clone(), clock.clone()).await;
            (opened, AuthStore::of_database(&options).await, keys)
        }
    };
    let store = opened.map_err(|error| CliError::failed(&error))?;
    let auth = Arc::new(auth.map_err(|error| CliError::failed(&error))?);
    // Written first: without it nothing is changed.
    let entry = Entry::done(By::operator(), Action::SecretReseal, None);
    let audit = AuditLog::new(auth.clone(), clock.clone());
    if let Err(error) = audit.record(&entry).await {
        store.close().await;
        auth.close().await;
        return Err(CliError::failed(&error));
    }
    let of_webhooks = store.reseal().await;
    store.close().await;
    let of_tasks = match Vault::new(auth.clone(), keys, clock).await {
        Ok(vault) => vault.reseal().await,
        Err(error) => Err(error),
    };
    auth.close().await;
    drop(lock);
    let of_webhooks = of_webhooks.map_err(|error| CliError::failed(&error))?;
    let count = of_webhooks + of_tasks.map_err(|error| CliError::failed(&error))?;
    if out.is_json() {
        out.value(&json!({ "resealed": count }))?;
    } else {
        let values = match count {
            1 => "1 value is".to_owned(),
            count => format!("{count} values are"),
        };
        out.line(format!("{values} kept under the first key now"))?;
    }
    Ok(ExitCode::SUCCESS)
}
