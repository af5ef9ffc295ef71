//! Steps of a schema, compiled in. Built here and not by the macro of `sqlx`, which would compile the
//! drivers a second time for the machine that builds.

use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use std::borrow::Cow;

/// A step: the name of its file without the ending, `NNNN_words`, and its text.
pub type Step = (&'static str, &'static str);

/// The migrator of these steps.
///
/// # Panics
/// A name does not begin with a number: a fault of the program, found at start.
#[must_use]
pub fn migrator(steps: &[Step]) -> Migrator {
    let migration = |(name, sql): &Step| {
        let (number, words) = name.split_once('_').unwrap_or((name, ""));
        let number = number
            .parse()
            .expect("the name of a step begins with its number");
        Migration::new(
            number,
            Cow::Owned(words.replace('_', " ")),
            MigrationType::Simple,
            sql.into_sql_str(),
            false,
        )
    };
    Migrator::with_migrations(steps.iter().map(migration).collect())
}

#[cfg(test)]
mod tests {
    use super::{Step, migrator};
    use sqlx::migrate::MigrateError;
    use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
    use sqlx::{ConnectOptions, Connection};
    use std::path::Path;

    const FIRST: Step = (
        "0001_first",
        "CREATE TABLE t (a INTEGER NOT NULL); INSERT INTO t (a) VALUES (1)",
    );
    const SECOND: Step = (
        "0002_second",
        "ALTER TABLE t ADD COLUMN b INTEGER NOT NULL DEFAULT 2",
    );

    async fn connection(path: &Path) -> SqliteConnection {
        let options = SqliteConnectOptions::new().filename(path);
        let connected = options.create_if_missing(true).connect().await;
        connected.expect("the file can be opened")
    }

    /// Takes the steps that the file at `path` lacks.
    async fn take(path: &Path, steps: &[Step]) -> Result<(), MigrateError> {
        let mut connection = connection(path).await;
        let taken = migrator(steps)
            .run_direct(None, &mut connection, false)
            .await;
        connection.close().await.expect("it closes");
        taken
    }

    #[tokio::test]
    async fn steps_are_taken_once_and_in_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.db");

        take(&path, &[FIRST]).await.expect("one step");
        for _ in 0..2 {
            take(&path, &[FIRST, SECOND]).await.expect("both steps");
        }

        let mut connection = connection(&path).await;
        let rows: Vec<(i64, i64)> = sqlx::query_as("SELECT a, b FROM t")
            .fetch_all(&mut connection)
            .await
            .expect("the table has both columns");
        assert_eq!(rows, [(1, 2)]);
    }

    #[tokio::test]
    async fn a_file_with_a_step_that_is_not_known_or_was_edited_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.db");
        take(&path, &[FIRST, SECOND]).await.expect("both steps");

        let unknown = take(&path, &[FIRST]).await;
        let edited = take(&path, &[FIRST, ("0002_second", "SELECT 2")]).await;

        assert!(
            matches!(unknown, Err(MigrateError::VersionMissing(2))),
            "{unknown:?}"
        );
        assert!(
            matches!(edited, Err(MigrateError::VersionMismatch(2))),
            "{edited:?}"
        );
    }

    #[test]
    fn a_step_has_the_number_and_the_words_of_its_name() {
        let migrator = migrator(&[("0001_two_words", "SELECT 1"), ("0002_more", "SELECT 2")]);
        let steps: Vec<_> = migrator
            .iter()
            .map(|step| (step.version, step.description.to_string(), step.no_tx))
            .collect();
        let expected = [(1, "two words", false), (2, "more", false)];
        assert_eq!(
            steps,
            expected.map(|(n, words, no_tx)| (n, words.to_owned(), no_tx))
        );
    }
}
