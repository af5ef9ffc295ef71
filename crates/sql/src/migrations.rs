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
    use super::migrator;

    #[test]
    fn a_step_has_the_number_and_the_words_of_its_name() {
        let migrator = migrator(&[("0001_read_models", "SELECT 1"), ("0002_more", "SELECT 2")]);
        let steps: Vec<_> = migrator
            .iter()
            .map(|step| (step.version, step.description.to_string(), step.no_tx))
            .collect();
        let expected = [(1, "read models", false), (2, "more", false)];
        assert_eq!(
            steps,
            expected.map(|(n, words, no_tx)| (n, words.to_owned(), no_tx))
        );
    }
}
