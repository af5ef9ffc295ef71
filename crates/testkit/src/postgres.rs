//! A fresh database on the PostgreSQL that `.ci/with-postgres` started.

pub mod admin;
pub mod server;

use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection};
use std::str::FromStr;

/// Names the throwaway server.
const SERVER: &str = "TASKLEDGER_TEST_POSTGRES";

/// Whether this run does without PostgreSQL (`./test.sh --fast`). For properties that look at all
/// engines in one test; the profile leaves out tests of PostgreSQL alone.
#[must_use]
pub fn is_left_out() -> bool {
    std::env::var("NEXTEST_PROFILE").is_ok_and(|profile| profile == "fast")
}

/// An empty database, dropped with the value.
#[derive(Debug)]
pub struct Database {
    name: String,
    url: String,
}

impl Database {
    /// Makes one on the server of the tests.
    #[allow(clippy::disallowed_methods, reason = "a name that nobody else has")]
    pub async fn create() -> Self {
        let name = format!("test_{}", uuid::Uuid::new_v4().simple());
        let mut admin = admin().await;
        let sql = format!("CREATE DATABASE {name}");
        admin
            .execute(AssertSqlSafe(sql))
            .await
            .expect("a database can be created");
        let options = sqlx::postgres::PgConnectOptions::from_str(&server()).expect("a URL");
        let url = options.database(&name).to_url_lossy().to_string();
        admin.close().await.expect("closes");
        Self { name, url }
    }

    /// `postgres://..`
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let sql = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        // On a thread of its own, because a test's runtime cannot be entered twice.
        let dropped = std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime")
                .block_on(async { admin().await.execute(AssertSqlSafe(sql)).await })
        });
        // The server goes away with its data in any case.
        let _ = dropped.join();
    }
}

fn server() -> String {
    std::env::var(SERVER)
        .unwrap_or_else(|_| panic!("{SERVER} is not set: run the tests with `.ci/with-postgres`"))
}

async fn admin() -> PgConnection {
    PgConnection::connect(&server())
        .await
        .expect("the server of the tests answers")
}
