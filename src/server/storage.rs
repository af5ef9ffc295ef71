//! Chooses where a server keeps its data. The only place behind the doors that knows which backend runs.
//!
//! [`Storage`] is what settings name, [`Parts`] says where each kind of data goes and which combinations
//! there are, `opened` opens them.

mod opened;
mod parts;
mod witnesses;

pub(super) use opened::Opened;
pub use parts::{LogIn, NotCombined, Parts, TablesIn};
pub use witnesses::{OlderLog, lost_in_database, lost_in_folder};

use super::StartError;
use crate::clock::SharedClock;
use crate::config::{DatabaseConfig, DatabaseUrl, StorageConfig};
use crate::nodes::{self, Trust};
use crate::store::postgres::rights::{self, Needs, Rights};
use crate::store::postgres::{self, Migrated, Steps};
use crate::tls::Certificates;
use crate::webhooks::store::{STEPS as WEBHOOK_STEPS, WEBHOOKS_FILE};
use sqlx::postgres::PgConnectOptions;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use taskledger_auth::store::{AUTH_FILE, STEPS as AUTH_STEPS};
use taskledger_broker::{BROKER_FILE, STEPS as BROKER_STEPS};
use taskledger_documents::{STEPS as WORKFLOW_STEPS, WORKFLOWS_FILE};
use taskledger_projections::{self as projections, Place};
use taskledger_schedules::{SCHEDULES_FILE, STEPS as SCHEDULE_STEPS};
use taskledger_workers::store::{STEPS as WORKER_STEPS, WORKERS_FILE};

/// File of the read models in the data folder; may be deleted while no server runs.
pub const READ_MODELS_FILE: &str = "read_models.db";

/// Files of the stores beside the log in the data folder. The read models are not among them: they are rebuilt.
pub const BACKED_UP_STORES: [&str; 6] = [
    AUTH_FILE,
    WEBHOOKS_FILE,
    WORKERS_FILE,
    WORKFLOWS_FILE,
    SCHEDULES_FILE,
    BROKER_FILE,
];

/// How long a command that is given nothing but an address waits for a connection.
const USUAL_ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long each of its statements may take.
const USUAL_STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// The place of all data of a server, as settings name it.
#[derive(Debug, Clone)]
pub enum Storage {
    /// A folder that no other process uses.
    Folder(PathBuf),
    /// A Postgres database, which other servers may use too.
    Database(Box<Database>),
}

impl fmt::Display for Storage {
    /// In words, for the operator.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "folder {}", folder.display()),
            Self::Database(database) => write!(f, "{database}"),
        }
    }
}

/// A Postgres database, and how it is worked with.
#[derive(Clone)]
pub struct Database {
    /// Where it is and who asks.
    pub connect: PgConnectOptions,
    /// Connections that read, for log and read models together.
    pub connections: u32,
    /// How long a read waits for one of them.
    pub acquire_timeout: Duration,
    /// How long one statement may take.
    pub statement_timeout: Duration,
    /// What the other servers on it are believed with, and shown.
    pub nodes: Trust,
}

impl fmt::Debug for Database {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Database({self})")
    }
}

impl fmt::Display for Database {
    /// Where it is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.connect.get_database();
        let (host, port) = (self.connect.get_host(), self.connect.get_port());
        let name = name.unwrap_or_else(|| self.connect.get_username());
        write!(f, "database {name} at {host}:{port}")
    }
}

impl Database {
    /// Whether both name one database; who asks, and how, may differ.
    fn is_same_as(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }

    /// What the settings name; `None` without a URL.
    ///
    /// # Errors
    /// [`StartError::DatabaseUrl`]: the URL is none of a Postgres database.
    pub fn of(config: &DatabaseConfig) -> Result<Option<Self>, StartError> {
        let Some(url) = &config.url else {
            return Ok(None);
        };
        if url.secret().is_empty() {
            // Perhaps a secret that was not filled in: data must not go to a folder by mistake.
            let reason = "it is empty; leave it out to keep the data in a folder".to_owned();
            return Err(StartError::DatabaseUrl(reason));
        }
        let (scheme, _) = url.secret().split_once("://").unwrap_or_default();
        if !matches!(scheme, "postgres" | "postgresql") {
            let reason = "it does not begin with `postgres://`".to_owned();
            return Err(StartError::DatabaseUrl(reason));
        }
        refuse_unknown_parameters(url.secret())?;
        let connect = PgConnectOptions::from_str(url.secret());
        Ok(Some(Self {
            connect: connect.map_err(|e| StartError::DatabaseUrl(e.to_string()))?,
            connections: config.connections,
            acquire_timeout: config.acquire_timeout,
            statement_timeout: config.statement_timeout,
            nodes: Trust::default(),
        }))
    }

    /// Believes other servers on it by these authorities (PEM) too. `shown` is what this one serves with: it is shown
    /// to the others if it asks its clients for certificates, because then they do so too.
    pub fn among_nodes(&mut self, ca_file: Option<PathBuf>, shown: Option<Arc<Certificates>>) {
        self.nodes = Trust {
            ca_file,
            shown: shown.filter(|shown| shown.asks_clients()),
        };
    }

    /// The database at this address, with the usual settings.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn at(url: &DatabaseUrl) -> Result<Self, StartError> {
        let usual = DatabaseConfig {
            url: Some(url.clone()),
            connections: 2,
            acquire_timeout: USUAL_ACQUIRE_TIMEOUT,
            statement_timeout: USUAL_STATEMENT_TIMEOUT,
        };
        let database = Self::of(&usual)?;
        Ok(database.expect("there is a URL"))
    }

    /// The log in it.
    #[must_use]
    pub fn log(&self, clock: SharedClock) -> postgres::Options {
        postgres::Options {
            connections: self.connections.div_ceil(2),
            acquire_timeout: self.acquire_timeout,
            statement_timeout: self.statement_timeout,
            ..postgres::Options::new(self.connect.clone(), clock)
        }
    }

    /// Takes those of the steps of the server that are missing, and says what was done for each purpose.
    ///
    /// # Errors
    /// [`postgres::OpenError`]: what was not named yet is unchanged.
    pub async fn migrate(
        &self,
        clock: SharedClock,
    ) -> Result<Vec<(&'static str, Migrated)>, postgres::OpenError> {
        let options = self.log(clock);
        let mut migrated = Vec::with_capacity(STEPS.len());
        for steps in STEPS {
            migrated.push((steps.purpose, postgres::take(&options, steps).await?));
        }
        Ok(migrated)
    }

    /// What its user lacks of the rights that a server needs.
    ///
    /// # Errors
    /// [`postgres::OpenError`]: the database cannot be reached, or cannot hold the data of this program.
    pub async fn rights(&self, clock: SharedClock) -> Result<Rights, postgres::OpenError> {
        let needs = Needs {
            steps: &STEPS,
            own: projections::SCHEMA_DEFAULT,
        };
        rights::look(&self.log(clock), needs).await
    }

    /// The read models in it.
    #[must_use]
    pub fn read_models(&self) -> projections::Options {
        let mut options = projections::Options::postgres(self.connect.clone());
        options.readers = self.connections / 2;
        if let Place::Postgres(place) = &mut options.place {
            place.acquire_timeout = self.acquire_timeout;
            place.read_statement_timeout = self.statement_timeout;
        }
        options
    }
}

/// The tables of everything in a database but the read models, which each server makes itself; the log's come first.
const STEPS: [Steps; 8] = [
    postgres::LOG_STEPS,
    nodes::STEPS,
    WEBHOOK_STEPS,
    AUTH_STEPS,
    WORKER_STEPS,
    WORKFLOW_STEPS,
    BROKER_STEPS,
    SCHEDULE_STEPS,
];

/// What the driver takes in the query of a URL. It logs other parameters with their values, which may
/// be secret, and goes on without: a mistyped `sslmode` would leave the connection unencrypted.
const PARAMETERS: [&str; 18] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "password",
    "port",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-mode",
    "ssl-root-cert",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "statement-cache-capacity",
    "user",
];

fn refuse_unknown_parameters(url: &str) -> Result<(), StartError> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let query = query.split('#').next().unwrap_or_default();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let name = pair.split('=').next().unwrap_or_default();
        if !PARAMETERS.contains(&name) {
            return Err(StartError::DatabaseUrl(format!(
                "it has an unknown parameter `{name}`; known are {}",
                PARAMETERS.join(", ")
            )));
        }
    }
    Ok(())
}

impl TryFrom<&StorageConfig> for Storage {
    type Error = StartError;

    fn try_from(config: &StorageConfig) -> Result<Self, StartError> {
        Ok(match Database::of(&config.database)? {
            Some(database) => Self::Database(Box::new(database)),
            None => Self::Folder(config.data_dir.clone()),
        })
    }
}

impl From<&Path> for Storage {
    fn from(folder: &Path) -> Self {
        Self::Folder(folder.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        let config = DatabaseConfig {
            url: Some(url.parse::<DatabaseUrl>().expect("any text")),
            connections: 2,
            acquire_timeout: Duration::from_secs(1),
            statement_timeout: Duration::from_secs(1),
        };
        match Database::of(&config) {
            Err(error) => error.to_string(),
            Ok(taken) => panic!("{url}: {taken:?}"),
        }
    }

    #[test]
    fn a_url_that_is_none_is_refused_without_its_secrets() {
        for url in [
            "mysql://u:hunter2@h/d",
            "hunter2",
            "postgres://u:hunter2@h:port/d",
            "postgres://u@h/d?passwd=hunter2",
            "postgres://u:hunter2@h/d?ssl_mode=verify-full",
            "postgres://u:hunter2@h/d?sslmode=perhaps",
        ] {
            let said = refused(url);
            assert!(said.contains("--database-url"), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
}
