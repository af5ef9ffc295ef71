//! Where the data is: a folder of one's own, or a Postgres database.

use super::seconds;
use clap::Args;
use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Where the log and the read models are.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct StorageConfig {
    /// Folder of the log and the read models; created if it is missing
    #[arg(
        long,
        value_name = "DIR",
        env = "TASKLEDGER_DATA_DIR",
        default_value = "./taskledger-data"
    )]
    pub data_dir: PathBuf,

    /// Postgres instead of the folder.
    #[command(flatten)]
    pub database: DatabaseConfig,
}

impl StorageConfig {
    /// The data folder, unless a database is used instead.
    #[must_use]
    pub const fn folder(&self) -> Option<&PathBuf> {
        match self.database.url {
            Some(_) => None,
            None => Some(&self.data_dir),
        }
    }
}

/// Settings of Postgres.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct DatabaseConfig {
    /// Postgres database of the log and the read models, instead of the folder:
    /// postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full&sslrootcert=FILE. The password may also come
    /// from PGPASSWORD or a .pgpass file
    #[arg(
        id = "database_url", // `run` has a `--url` too
        conflicts_with = "data_dir", // also when one of them comes from the environment
        long = "database-url",
        value_name = "URL",
        env = "TASKLEDGER_DATABASE_URL",
        hide_env_values = true
    )]
    pub url: Option<DatabaseUrl>,

    /// Connections for reading, half of them for the log; a few more are opened for writing
    #[arg(
        long = "database-connections",
        value_name = "N",
        env = "TASKLEDGER_DATABASE_CONNECTIONS",
        default_value = "16",
        value_parser = clap::value_parser!(u32).range(2..=1000)
    )]
    pub connections: u32,

    /// Seconds that a read waits for a free connection before it is answered as busy
    #[arg(
        long = "database-acquire-timeout",
        value_name = "SECONDS",
        env = "TASKLEDGER_DATABASE_ACQUIRE_TIMEOUT",
        default_value = "5",
        value_parser = |text: &str| seconds(text, 60)
    )]
    pub acquire_timeout: Duration,

    /// Seconds that one statement may take in the database
    #[arg(
        long = "database-statement-timeout",
        value_name = "SECONDS",
        env = "TASKLEDGER_DATABASE_STATEMENT_TIMEOUT",
        default_value = "30",
        value_parser = |text: &str| seconds(text, 3600)
    )]
    pub statement_timeout: Duration,
}

/// A connection string, which may hold a password: it is read where it is used, and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// The string itself.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.0
    }
}

impl FromStr for DatabaseUrl {
    type Err = Infallible;

    // What is wrong with it is said by whoever connects: clap would repeat the value, password
    // included.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DatabaseUrl(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::StorageConfig;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        storage: StorageConfig,
    }

    #[test]
    fn a_password_is_never_shown() {
        let given = ["x", "--database-url", "postgres://u:hunter2@h/d"];
        let command = Command::try_parse_from(given).unwrap();
        assert!(!format!("{:?}", command.storage).contains("hunter2"));
        let url = command.storage.database.url.unwrap();
        assert_eq!(url.secret(), "postgres://u:hunter2@h/d");
    }

    #[test]
    fn a_folder_and_a_database_are_not_taken_together() {
        let both = ["x", "--data-dir", "d", "--database-url", "postgres://h/d"];
        assert!(Command::try_parse_from(both).is_err());
        assert!(Command::try_parse_from(["x", "--data-dir", "d"]).is_ok());
    }

    #[test]
    fn the_settings_are_bounded() {
        for bad in [
            ["--database-connections", "1"],
            ["--database-acquire-timeout", "0"],
            ["--database-statement-timeout", "3601"],
        ] {
            let words = ["x"].into_iter().chain(bad);
            assert!(Command::try_parse_from(words).is_err(), "{bad:?}");
        }
    }
}
