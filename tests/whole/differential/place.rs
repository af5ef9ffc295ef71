//! Where the tested server keeps its data.

use clap::Parser;
use taskledger::config::StorageConfig;
use taskledger::server::Storage;
use taskledger_testkit::postgres::Database;
use tempfile::TempDir;

/// What a server can keep its data in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Sqlite,
    Postgres,
}

impl Backend {
    pub(crate) const BOTH: [Self; 2] = [Self::Sqlite, Self::Postgres];
}

/// A storage of its own for each server, which goes with the value.
pub(crate) struct Place {
    folder: TempDir,
    database: Option<Database>,
}

/// Settings as they are read from the command line, so that all others are the usual ones.
#[derive(Parser)]
struct Settings {
    #[command(flatten)]
    storage: StorageConfig,
}

impl Place {
    pub(crate) async fn on(backend: Backend) -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder for the test"),
            database: match backend {
                Backend::Sqlite => None,
                Backend::Postgres => Some(Database::create().await),
            },
        }
    }

    pub(crate) fn storage(&self) -> Storage {
        let folder = self.folder.path().to_str().expect("a path in ASCII");
        let words = match &self.database {
            Some(database) => ["server", "--database-url", database.url()],
            None => ["server", "--data-dir", folder],
        };
        let settings = Settings::try_parse_from(words).expect("the options exist");
        Storage::try_from(&settings.storage).expect("the URL is one")
    }
}
