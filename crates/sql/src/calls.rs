//! Wrappers of sqlx calls behind a pointer, which keep their futures small.
//!
//! A future of an `async fn` is compiled in each crate that awaits it. Those of sqlx are large, and eight crates
//! of the program await them: all of their code was in the program eight times. These functions are compiled here
//! only; what each costs is one allocation beside a way to a database.

use sqlx::postgres::{PgArguments, PgConnection, PgPool, PgRow};
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqlitePool, SqliteRow};
use sqlx::{Error, Executor, Postgres, SqlStr, Sqlite, Transaction};
use std::pin::Pin;

/// What a database will answer.
pub(crate) type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

pub(crate) fn execute_on_postgres<'a>(
    db: &'a mut PgConnection,
    sql: SqlStr,
    args: PgArguments,
) -> Answer<'a, u64> {
    Box::pin(async move {
        let done = sqlx::query_with(sql, args).execute(db).await?;
        Ok(done.rows_affected())
    })
}

pub(crate) fn execute_on_sqlite<'a>(
    db: &'a mut SqliteConnection,
    sql: SqlStr,
    args: SqliteArguments,
) -> Answer<'a, u64> {
    Box::pin(async move {
        let done = sqlx::query_with(sql, args).execute(db).await?;
        Ok(done.rows_affected())
    })
}

pub(crate) fn fetch_from_postgres<'a>(
    db: &'a mut PgConnection,
    sql: SqlStr,
    args: PgArguments,
) -> Answer<'a, Vec<PgRow>> {
    Box::pin(sqlx::query_with(sql, args).fetch_all(db))
}

pub(crate) fn fetch_from_sqlite<'a>(
    db: &'a mut SqliteConnection,
    sql: SqlStr,
    args: SqliteArguments,
) -> Answer<'a, Vec<SqliteRow>> {
    Box::pin(sqlx::query_with(sql, args).fetch_all(db))
}

pub(crate) fn execute_all_on_postgres<'a>(
    db: &'a mut PgConnection,
    sql: &'static str,
) -> Answer<'a, ()> {
    Box::pin(async move {
        db.execute(sql).await?;
        Ok(())
    })
}

pub(crate) fn execute_all_on_sqlite<'a>(
    db: &'a mut SqliteConnection,
    sql: &'static str,
) -> Answer<'a, ()> {
    Box::pin(async move {
        db.execute(sql).await?;
        Ok(())
    })
}

pub(crate) fn begin_on_postgres<'a>(
    pool: &'a PgPool,
    begin: &'static str,
) -> Answer<'a, Transaction<'static, Postgres>> {
    Box::pin(pool.begin_with(begin))
}

pub(crate) fn begin_on_sqlite<'a>(
    pool: &'a SqlitePool,
    begin: &'static str,
) -> Answer<'a, Transaction<'static, Sqlite>> {
    Box::pin(pool.begin_with(begin))
}

pub(crate) fn commit_on_postgres<'a>(tx: Transaction<'a, Postgres>) -> Answer<'a, ()> {
    Box::pin(tx.commit())
}

pub(crate) fn commit_on_sqlite<'a>(tx: Transaction<'a, Sqlite>) -> Answer<'a, ()> {
    Box::pin(tx.commit())
}

pub(crate) fn rollback_on_postgres<'a>(tx: Transaction<'a, Postgres>) -> Answer<'a, ()> {
    Box::pin(tx.rollback())
}

pub(crate) fn rollback_on_sqlite<'a>(tx: Transaction<'a, Sqlite>) -> Answer<'a, ()> {
    Box::pin(tx.rollback())
}
