//! Where tokens are: at a server, or in its store.

use crate::application::service::Access;
use crate::cli::{Api, CliError, LocalApi, Remote, storage};
use crate::config::DatabaseUrl;
use crate::server::Database;
use crate::store::lock::DataDirLock;
use crate::transport::jsonrpc::{Dispatcher, methods};
use std::path::PathBuf;
use std::sync::Arc;
use taskledger_auth::{AdminTokens, AuditLog, AuthStore, Tokens};
use taskledger_cli::quoted;

/// Which server, or which store.
#[derive(Debug, clap::Args)]
pub(super) struct Place {
    #[command(flatten)]
    remote: Remote,

    /// The data folder of a server that does not run, instead of a server
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// The Postgres database of servers, instead of a server
    #[arg(
        long = "database-url",
        global = true,
        value_name = "POSTGRES_URL",
        conflicts_with = "data_dir"
    )]
    database_url: Option<DatabaseUrl>,
}

/// A place to which calls can go.
pub(super) struct Opened {
    api: Box<dyn Api>,
    /// The options of another command for the same place, each behind a blank.
    options: String,
    store: Option<(Arc<AuthStore>, Arc<AuditLog>, Option<DataDirLock>)>,
}

impl Place {
    /// A server.
    pub(super) const fn of(remote: Remote) -> Self {
        Self {
            remote,
            data_dir: None,
            database_url: None,
        }
    }

    /// The options of another command for the same store. The URL of a database may hold a password, so it is not
    /// repeated.
    fn options(&self) -> String {
        match (&self.data_dir, &self.database_url) {
            (Some(folder), _) => format!(" --data-dir {}", quoted(&folder.to_string_lossy())),
            (None, Some(_)) => " --database-url POSTGRES_URL".to_owned(),
            (None, None) => String::new(),
        }
    }

    /// Opens it.
    pub(super) async fn open(self) -> Result<Opened, CliError> {
        let clock = storage::clock();
        let options = self.options();
        let (store, lock) = if let Some(folder) = self.data_dir {
            if !folder.is_dir() {
                let text = format!("there is no data folder `{}`", folder.display());
                return Err(CliError::Failed(text));
            }
            let lock = DataDirLock::acquire(&folder).map_err(|e| CliError::failed(&e))?;
            let store = AuthStore::of_folder(&folder).await;
            (store, Some(lock))
        } else if let Some(url) = &self.database_url {
            let database = Database::at(url).map_err(|e| CliError::Usage(e.to_string()))?;
            let store = AuthStore::of_database(&database.log(clock.clone())).await;
            (store, None)
        } else {
            let api = Box::new(self.remote.api()?);
            let options = api.options().to_owned();
            return Ok(Opened {
                api,
                options,
                store: None,
            });
        };
        let store = Arc::new(store.map_err(|e| CliError::failed(&e))?);
        let audit = Arc::new(AuditLog::new(store.clone(), clock.clone()));
        let tokens = Tokens::new(
            store.clone(),
            audit.clone(),
            clock.clone(),
            AdminTokens::default(),
        );
        let access = Arc::new(Access::new(Arc::new(tokens), clock.clone()));
        let dispatcher = Dispatcher::new(access, methods::access(), clock.clone());
        Ok(Opened {
            api: Box::new(LocalApi::of_operator(Arc::new(dispatcher), clock)),
            options,
            store: Some((store, audit, lock)),
        })
    }
}

impl Opened {
    /// The options of another command for the same place.
    pub(super) fn options(&self) -> String {
        self.options.clone()
    }

    /// Where calls go.
    pub(super) fn api(&self) -> &dyn Api {
        &*self.api
    }

    /// Lets go of it.
    pub(super) async fn close(self) {
        if let Some((store, audit, _lock)) = self.store {
            // What was refused is counted first.
            if let Err(error) = audit.flush().await {
                eprintln!("the audit log does not say what was refused: {error}");
            }
            store.close().await;
        }
    }
}
