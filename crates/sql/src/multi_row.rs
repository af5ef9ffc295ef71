//! Statements that carry many rows.
//!
//! Through `sqlx` each statement on SQLite is a hop to the connection's thread, so rows travel in groups;
//! only four group sizes exist per statement, so that the cache of prepared statements stays small. The
//! fold, which is without that hop, has a statement for each row. On PostgreSQL each statement is a round
//! trip, and one array for each column carries any number of rows under one text.

use crate::args::{Args, Bound};
use crate::engine::Engine;
use crate::error::{Error, mismatch};
use crate::postgres;
use crate::row::Row;
use crate::tx::{Inner, Tx};
use sqlx::AssertSqlSafe;
use std::sync::Arc;

/// Rows in one statement of SQLite, largest group first. 128 rows of 26 columns stay far below its
/// 32,766 parameters, and a hop of about 20 µs is shared by 128 rows.
const GROUPS: [usize; 4] = [128, 32, 8, 1];

/// Rows in one statement of PostgreSQL: a batch of the feed goes in one round trip, and the
/// parameters of one statement stay at some megabytes.
const ROWS_MAX: usize = 4096;

/// A statement `head rows tail`, where `rows` is a query of the rows given, whose columns are called
/// `column1`, `column2` and so on.
#[derive(Debug)]
pub struct MultiRow {
    columns: usize,
    sqlite: [Arc<str>; GROUPS.len()],
    /// For one row, where nothing is read.
    each: Arc<str>,
    postgres: Arc<str>,
}

impl MultiRow {
    /// `columns` parameters for each row.
    #[must_use]
    pub fn new(head: &str, columns: usize, tail: &str) -> Self {
        Self::with_tails(head, columns, tail, tail)
    }

    /// As [`Self::new`], where SQLite and PostgreSQL say it in different ways.
    #[must_use]
    pub fn with_tails(head: &str, columns: usize, sqlite: &str, postgres: &str) -> Self {
        let row = format!("({})", vec!["?"; columns].join(","));
        let numbered = |prefix: &str| {
            let all: Vec<String> = (1..=columns).map(|n| format!("{prefix}{n}")).collect();
            all.join(", ")
        };
        let arrays = format!(
            "SELECT * FROM UNNEST({}) AS u({})",
            numbered("$"),
            numbered("column")
        );
        let grouped = GROUPS
            .map(|n| format!("{head} VALUES {} {sqlite}", vec![row.as_str(); n].join(",")).into());
        let [.., one]: &[Arc<str>; GROUPS.len()] = &grouped;
        Self {
            columns,
            each: Arc::clone(one),
            sqlite: grouped,
            postgres: format!("{head} {arrays} {postgres}").into(),
        }
    }

    /// The same, with a shorter text for one row on SQLite; its parameters are `?1`, `?2` and so on.
    #[must_use]
    pub fn with_each(mut self, text: &str) -> Self {
        self.each = text.into();
        self
    }

    /// Its text on an engine; on SQLite that of its largest group.
    #[must_use]
    pub fn text(&self, engine: Engine) -> &str {
        match engine {
            Engine::Sqlite => &self.sqlite[0],
            Engine::Postgres => &self.postgres,
        }
    }

    /// PostgreSQL's plan for a row of integers (`i`), texts (`t`) and ids (`b`), which are all null. For tests
    /// of the indexes; SQLite's plans need no parameters.
    ///
    /// # Errors
    /// [`Error::Damaged`] on SQLite, [`Error::Unavailable`].
    pub async fn plan(&self, tx: &mut Tx<'_>, kinds: &str) -> Result<Vec<String>, Error> {
        assert_eq!(kinds.len(), self.columns, "{}", self.postgres);
        let args = self.bound(tx, &[kinds], &|kinds, args: &mut Args| {
            for kind in kinds.chars() {
                match kind {
                    'i' => args.int(None),
                    't' => args.name(None),
                    _ => args.opt_id(None),
                }
            }
        });
        let (Inner::Postgres(tx), Bound::Postgres(columns)) = (&mut tx.inner, args.0) else {
            return Err(mismatch());
        };
        let sql = AssertSqlSafe(format!("EXPLAIN {}", self.postgres));
        let plan = sqlx::query_scalar_with(sql, columns.into_arrays()?);
        Ok(plan.fetch_all(&mut **tx).await?)
    }

    /// Runs it for all `rows`; `bind` gives each row's parameters in order.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn execute<T>(
        &self,
        tx: &mut Tx<'_>,
        rows: &[T],
        bind: impl Fn(&T, &mut Args),
    ) -> Result<(), Error> {
        // Most batches leave most tables alone, and to find a prepared statement costs a thousand instructions.
        if rows.is_empty() {
            return Ok(());
        }
        if let Inner::Direct(tx) = &mut tx.inner {
            return tx.execute_each(&self.each, rows, bind);
        }
        for (sql, part) in self.parts(tx.engine(), rows) {
            let args = self.bound(tx, part, &bind);
            let query = AssertSqlSafe(Arc::clone(sql));
            match (&mut tx.inner, args.0) {
                (Inner::Sqlite(tx), Bound::Sqlite(args)) => {
                    sqlx::query_with(query, args).execute(&mut **tx).await?;
                }
                (Inner::Postgres(tx), Bound::Postgres(columns)) => {
                    sqlx::query_with(query, columns.into_arrays()?)
                        .execute(&mut **tx)
                        .await?;
                }
                // Readers do not write.
                (Inner::Reading(_), _)
                | (Inner::Sqlite(_) | Inner::Direct(_) | Inner::Postgres(_), _) => {
                    return Err(mismatch());
                }
            }
        }
        Ok(())
    }

    /// Runs it for all `rows` and collects what it returns.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn fetch<T>(
        &self,
        tx: &mut Tx<'_>,
        rows: &[T],
        bind: impl Fn(&T, &mut Args),
    ) -> Result<Vec<Row>, Error> {
        let mut found = Vec::new();
        let mut together = Vec::new();
        for (sql, part) in self.parts(tx.engine(), rows) {
            let args = self.bound(tx, part, &bind);
            let query = AssertSqlSafe(Arc::clone(sql));
            match (&mut tx.inner, args.0) {
                (Inner::Sqlite(tx), Bound::Sqlite(args)) => {
                    let rows = sqlx::query_with(query, args).fetch_all(&mut **tx).await?;
                    found.extend(rows.into_iter().map(Row::Sqlite));
                }
                (Inner::Direct(tx), Bound::Direct(params)) => {
                    found.extend(tx.fetch_all(sql, &params)?.into_iter().map(Row::Direct));
                }
                (Inner::Reading(_), Bound::Direct(params)) => {
                    together.push((Arc::clone(sql), params));
                }
                (Inner::Postgres(tx), Bound::Postgres(columns)) => {
                    let rows = sqlx::query_with(query, columns.into_arrays()?)
                        .fetch_all(&mut **tx)
                        .await?;
                    found.extend(rows.into_iter().map(Row::Postgres));
                }
                (
                    Inner::Sqlite(_) | Inner::Direct(_) | Inner::Reading(_) | Inner::Postgres(_),
                    _,
                ) => {
                    return Err(mismatch());
                }
            }
        }
        // One trip to another thread for all of them.
        if let Inner::Reading(reader) = &mut tx.inner
            && !together.is_empty()
        {
            let rows = reader.fetch(together).await?;
            found.extend(rows.into_iter().map(Row::Direct));
        }
        Ok(found)
    }

    fn parts<'a, T>(&'a self, engine: Engine, rows: &'a [T]) -> Parts<'a, T> {
        Parts {
            statement: self,
            engine,
            rows,
        }
    }

    fn bound<T>(&self, tx: &Tx<'_>, rows: &[T], bind: &impl Fn(&T, &mut Args)) -> Args {
        let mut args = match &tx.inner {
            Inner::Sqlite(_) | Inner::Direct(_) | Inner::Reading(_) => tx.args(),
            Inner::Postgres(_) => Args(Bound::Postgres(postgres::Columns::rows(self.columns))),
        };
        for row in rows {
            bind(row, &mut args);
        }
        args
    }
}

/// Rows as they travel, each part with its text.
struct Parts<'a, T> {
    statement: &'a MultiRow,
    engine: Engine,
    rows: &'a [T],
}

impl<'a, T> Iterator for Parts<'a, T> {
    type Item = (&'a Arc<str>, &'a [T]);

    fn next(&mut self) -> Option<Self::Item> {
        let left = self.rows.len();
        let (size, sql) = match self.engine {
            Engine::Sqlite => GROUPS
                .into_iter()
                .zip(&self.statement.sqlite)
                .find(|(size, _)| *size <= left)?,
            Engine::Postgres => (left.min(ROWS_MAX), &self.statement.postgres),
        };
        if size == 0 {
            return None;
        }
        let (now, later) = self.rows.split_at(size);
        self.rows = later;
        Some((sql, now))
    }
}
