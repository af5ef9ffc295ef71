//! Postgres: what a dropped future leaves on a connection is not handed on with it.

use sqlx::postgres::PgConnectOptions;
use std::str::FromStr;
use std::time::Duration;
use taskledger_sql::beside::{Connections, Settings};
use taskledger_testkit::postgres::Database;
use tokio::time::timeout;

/// Microseconds between two moments at which a transaction is dropped while it begins.
const STEP_US: u64 = 20;
const MOMENTS: u64 = 100;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_is_dropped_while_it_begins_does_not_stay_open() {
    let database = Database::create().await;
    let place = PgConnectOptions::from_str(database.url()).unwrap();
    let settings = Settings {
        schema: "public",
        application_name: "taskledger test",
        connections: 1,
        acquire_timeout: Duration::from_secs(30),
        statement_timeout_ms: 30_000,
        lock_timeout_ms: 30_000,
        statements_kept: 10,
    };
    let connections = Connections::of_database(&place, settings);
    let mut tx = connections.write().await.unwrap();
    let args = tx.args();
    let made = tx.execute("CREATE TABLE written (moment BIGINT)", args);
    made.await.unwrap();
    tx.commit().await.unwrap();

    for moment in 0..MOMENTS {
        let after = Duration::from_micros(moment * STEP_US);
        let dropped = timeout(after, connections.read()).await;
        drop(dropped);
        let mut tx = connections.write().await.unwrap();
        let mut args = tx.args();
        args.int(i64::try_from(moment).unwrap());
        let written = tx.execute("INSERT INTO written VALUES ($1)", args).await;
        assert!(written.is_ok(), "after {after:?}: {written:?}");
        tx.commit().await.unwrap();
    }
}
