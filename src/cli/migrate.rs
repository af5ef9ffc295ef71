//! `taskledger migrate`

use super::{CliError, storage};
use crate::config::StorageConfig;
use crate::server::Storage;
use crate::store::lock::DataDirLock;
use crate::store::sqlite::{self, SqliteStore};
use serde_json::{Value, json};
use std::process::ExitCode;
use taskledger_cli::output::Output;

/// Bring the schema of a log up to date
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger migrate --database-url postgres://owner@h/ledger
  taskledger migrate --data-dir ./taskledger-data

A server does the same when it starts; this is for a database whose servers may not change its
schema. Several may run at once: they take turns. A log of a newer program is refused.
It does not change the tables that queries read: a server rebuilds them when their version differs.

Such a server's user needs, in the database and once `migrate` has run:
  GRANT CREATE ON DATABASE ledger TO server;
  GRANT USAGE ON SCHEMA taskledger TO server;
  GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA taskledger TO server;
  GRANT USAGE ON ALL SEQUENCES IN SCHEMA taskledger TO server;
  GRANT USAGE ON SCHEMA taskledger_webhooks TO server;
  GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA taskledger_webhooks TO server;
  GRANT USAGE ON ALL SEQUENCES IN SCHEMA taskledger_webhooks TO server;
  GRANT USAGE ON SCHEMA taskledger_auth TO server;
  GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA taskledger_auth TO server;
  GRANT USAGE ON ALL SEQUENCES IN SCHEMA taskledger_auth TO server;
  GRANT USAGE ON SCHEMA taskledger_workers TO server;
  GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA taskledger_workers TO server;
  GRANT USAGE ON SCHEMA taskledger_workflows TO server;
  GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA taskledger_workflows TO server;
  GRANT USAGE ON SCHEMA taskledger_broker TO server;
  GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA taskledger_broker TO server;
  GRANT USAGE ON SCHEMA taskledger_schedules TO server;
  GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA taskledger_schedules TO server;")]
pub(super) struct Args {
    #[command(flatten)]
    storage: StorageConfig,
}

/// Takes the steps that are missing, and says which.
pub(super) async fn migrate(args: Args, out: &mut Output) -> Result<ExitCode, CliError> {
    let storage = storage::storage(&args.storage)?;
    let said = match &storage {
        Storage::Folder(folder) => {
            // Opening it would make one.
            storage::log_in(folder)
                .map_err(|why| CliError::Failed(format!("there is nothing to migrate: {why}")))?;
            let _lock = DataDirLock::acquire(folder).map_err(|e| CliError::failed(&e))?;
            let options = sqlite::Options::new(folder, storage::clock());
            let store = SqliteStore::open(options).map_err(|e| CliError::failed(&e))?;
            store.close().await;
            json!({"log": {"steps": []}})
        }
        Storage::Database(database) => {
            let migrated = database.migrate(storage::clock()).await;
            let migrated = migrated.map_err(|e| CliError::failed(&e))?;
            let said = migrated.into_iter().map(|(of, m)| {
                (
                    of.to_owned(),
                    json!({"from": m.from, "to": m.to, "steps": m.taken}),
                )
            });
            Value::Object(said.into_iter().collect())
        }
    };
    if out.is_json() {
        out.value(&said)?;
    } else {
        let of_all = said.as_object().into_iter().flatten();
        for (of, migrated) in of_all {
            let steps = migrated["steps"].as_array().into_iter().flatten();
            out.lines(steps.map(|step| format!("{of}: {}", step.as_str().unwrap_or_default())))?;
        }
        out.line(format!("up to date: {storage}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Args as _;
    use std::path::{Path, PathBuf};

    /// Files with SQL below a folder.
    fn migrations(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).expect("the folder can be read");
        let paths = entries.map(|entry| entry.expect("it can be read").path());
        let found = paths.flat_map(|path| match path.is_dir() {
            true => migrations(&path),
            false => vec![path],
        });
        found.collect()
    }

    #[test]
    fn the_grants_are_for_every_schema_that_is_made() {
        let help = Args::augment_args(clap::Command::new("migrate"))
            .render_long_help()
            .to_string();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        // Where the first schema is made.
        let mut files = migrations(&root.join("migrations/postgres"));
        files.push(root.join("crates/log/src/postgres/migrations.rs"));
        let mut schemas = Vec::new();
        for file in files {
            let text = std::fs::read_to_string(&file).expect("the file can be read");
            let made = text.lines().filter_map(|line| {
                let name = line.strip_prefix("CREATE SCHEMA ")?;
                let name = name.trim_start_matches("IF NOT EXISTS ");
                Some(name.trim_end_matches(';').to_owned())
            });
            let counts = text.contains("AS IDENTITY") || text.contains("CREATE SEQUENCE");
            schemas.extend(made.map(|name| (name, counts)));
        }
        assert!(schemas.len() >= 7, "{schemas:?}");
        for (schema, counts) in schemas {
            let on = [
                format!("USAGE ON SCHEMA {schema}"),
                format!("SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema}"),
                format!("USAGE ON ALL SEQUENCES IN SCHEMA {schema}"),
            ];
            for right in &on[..if counts { 3 } else { 2 }] {
                assert!(
                    help.contains(&format!("GRANT {right} TO server;")),
                    "{right}"
                );
            }
        }
    }
}
