//! The reasons why a server cannot start.

use crate::egress::BuildError;
use crate::engine::executor::{BuiltInError, RegistryError};
use crate::store::lock::LockError;
use crate::store::postgres;
use crate::store::sqlite::OpenError;
use crate::store::witness::LostEvents;
use crate::subscription::runner;
use crate::webhooks;
use std::path::PathBuf;
use taskledger_projections as projections;

/// The server cannot start; the operator can mend it.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The folder cannot be made.
    #[error("--data-dir: cannot use the data folder `{path}`: {source}")]
    DataDir {
        /// The folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The folder for what is noted on this machine cannot be used.
    #[error("--state-dir: cannot use `{path}`: {source}")]
    StateDir {
        /// The folder in it.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The time zones of the operator cannot be used.
    #[error("--zoneinfo: {0}")]
    Zones(#[from] taskledger_zones::Error),
    /// Another process uses the folder.
    #[error(transparent)]
    Locked(#[from] LockError),
    /// The log cannot be opened.
    #[error(transparent)]
    Log(#[from] OpenError),
    /// The value is never repeated: it may hold a password.
    #[error("--database-url: {0}; expected postgres://USER:PASSWORD@HOST:PORT/DATABASE")]
    DatabaseUrl(String),
    /// The database cannot be used.
    #[error(transparent)]
    Database(#[from] postgres::OpenError),
    /// The log was opened but does not answer.
    #[error("the log cannot be used: {0}")]
    Store(#[from] crate::store::Error),
    /// The log has lost events that other stores have read. Nothing was changed.
    #[error(
        "{0}: events that were stored are missing from the log, so the server does not start, and nothing was changed. \
         Copy the data before anything else; then restore the log from a backup, or start once with \
         `--accept-older-log`, which continues with the log as it is and keeps copies of the stores that contain more"
    )]
    LostEvents(LostEvents),
    /// A copy of a store cannot be made before an older log is used.
    #[error("--accept-older-log: nothing was changed: `{path}` cannot be written: {source}")]
    NotKept {
        /// The copy.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The database does not say how far its stores have read the log.
    #[error("the checkpoints of the stores beside the log cannot be read: {0}")]
    Checkpoints(#[source] sqlx::Error),
    /// The audit log cannot be written.
    #[error("the audit log cannot be written: {0}")]
    Audit(#[source] taskledger_auth::store::Error),
    /// The inboxes of the broker cannot be changed.
    #[error(transparent)]
    Broker(#[from] taskledger_broker::Error),
    /// The read models cannot be opened or made.
    #[error(transparent)]
    ReadModels(#[from] projections::Error),
    /// The read models have stopped before the end of the log.
    #[error(transparent)]
    Behind(#[from] runner::Lagging),
    /// The leases of the nodes cannot be read.
    #[error(transparent)]
    Nodes(#[from] crate::nodes::Error),
    /// The tokens of a folder are gone.
    #[error(
        "the server of `{}` has asked for credentials, and `auth.db` there has no token: it was lost or replaced. Restore \
         it from a backup, or say what you want: `--auth on` makes a new first token, `--auth off` lets in everybody",
        .0.display()
    )]
    TokensLost(PathBuf),
    /// It cannot be noted that the server asks for credentials.
    #[error("it cannot be noted in the data folder that the server asks for credentials: {0}")]
    Mark(#[source] std::io::Error),
    /// Another node does not do as this one about credentials.
    #[error("{}", differs(*is_on, other.as_deref()))]
    Authentication {
        /// Whether this one would ask for credentials.
        is_on: bool,
        /// Where the other one is; absent while it starts.
        other: Option<String>,
    },
    /// Endpoints and deliveries cannot be opened.
    #[error(transparent)]
    Webhooks(#[from] webhooks::store::OpenError),
    /// The keys of secrets cannot be used.
    #[error(transparent)]
    Keys(#[from] crate::sealing::KeysError),
    /// A store beside the log cannot be opened.
    #[error(transparent)]
    Beside(#[from] taskledger_beside::OpenError),
    /// What is kept of workers cannot be read.
    #[error(transparent)]
    WorkersRead(#[from] taskledger_workers::store::Error),
    /// Secrets of tasks cannot be opened.
    #[error("secrets cannot be used: {0}")]
    Secrets(#[from] taskledger_auth::VaultError),
    /// The first token cannot be made or read.
    #[error(transparent)]
    FirstToken(#[from] taskledger_auth::tokens::FirstError),
    /// No calls to other nodes are possible.
    #[error(transparent)]
    Calls(#[from] crate::nodes::CallsError),
    /// No calls to receivers are possible.
    #[error(transparent)]
    Egress(#[from] BuildError),
    /// A built-in executor cannot be set up.
    #[error(transparent)]
    BuiltIn(#[from] BuiltInError),
    /// The executors do not fit together.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

/// What to do about a node that asks for credentials when another does not, or the other way round.
fn differs(is_on: bool, other: Option<&str>) -> String {
    let other = other.unwrap_or("which is starting");
    match is_on {
        true => format!(
            "another node on this database ({other}) does not ask for credentials, and while one node is open the whole \
             cluster is: stop all nodes and start them with `--auth on`, or start this one with `--auth off`"
        ),
        false => format!(
            "another node on this database ({other}) asks for credentials, and this one would open the cluster to \
             everybody: start it with `--auth on`, or without `--auth`"
        ),
    }
}
