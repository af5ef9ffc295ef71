//! A session of the test's own beside the stores: it looks, locks, ends and changes.

use crate::postgres::Database;
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, PgConnection};
use std::str::FromStr;
use std::time::Duration;

/// The session; ends with the value.
pub struct Admin(PgConnection);

impl Admin {
    /// In this database.
    pub async fn of(database: &Database) -> Self {
        Self::at(database.url()).await
    }

    /// In the database at `url`.
    pub async fn at(url: &str) -> Self {
        let options = sqlx::postgres::PgConnectOptions::from_str(url).unwrap();
        // Its name sets it apart from what it looks at.
        let options = options.application_name("admin");
        Self(options.connect().await.unwrap())
    }

    /// Runs statements, of which none may fail.
    pub async fn run(&mut self, sql: &str) {
        self.try_run(sql).await.unwrap();
    }

    /// Runs statements, of which one may fail.
    pub async fn try_run(&mut self, sql: &str) -> Result<(), sqlx::Error> {
        self.0.execute(AssertSqlSafe(sql.to_owned())).await?;
        Ok(())
    }

    /// The first column of all rows of a query.
    pub async fn numbers(&mut self, sql: &str) -> Vec<i64> {
        let sql = AssertSqlSafe(sql.to_owned());
        sqlx::query_scalar(sql)
            .fetch_all(&mut self.0)
            .await
            .unwrap()
    }

    /// The first column of the first row of a query.
    pub async fn number(&mut self, sql: &str) -> i64 {
        self.numbers(sql).await[0]
    }

    /// Replaces parts of a function of ours by others. Each must be there.
    pub async fn change_function(&mut self, name: &str, changes: &[(&str, &str)]) {
        let sql = "SELECT pg_get_functiondef($1::regproc)";
        let query = sqlx::query_scalar::<_, String>(sql).bind(name);
        let mut text = query.fetch_one(&mut self.0).await.unwrap();
        for (from, to) in changes {
            assert!(text.contains(from), "`{from}` is part of {name}");
            text = text.replace(from, to);
        }
        self.run(&text).await;
    }

    /// Ends every session of a store in this database; how many there were.
    pub async fn end_sessions(&mut self) -> i64 {
        self.number(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
             WHERE datname = current_database() AND application_name = 'taskledger'",
        )
        .await
    }
}

/// Returns when `count` sessions in the database wait for a lock.
pub async fn waits(admin: &mut Admin, count: i64) {
    let sql = "SELECT count(*) FROM pg_stat_activity
               WHERE datname = current_database() AND wait_event_type = 'Lock'";
    // Nobody tells when a session begins to wait, so it is asked for.
    while admin.number(sql).await < count {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
