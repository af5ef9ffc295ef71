//! Postgres: what a dropped future leaves on a connection is not handed on with it.

use sqlx::postgres::PgConnectOptions;
use std::str::FromStr;
use std::time::Duration;
use taskledger_sql::beside::{Connections, Settings, Survives};
use taskledger_sql::{Columns, Tx};
use taskledger_testkit::postgres::Database;
use tokio::time::timeout;

/// Microseconds between two moments at which a transaction is dropped while it begins.
const STEP_US: u64 = 20;
const MOMENTS: u64 = 100;
const SETTINGS: Settings = Settings {
    schema: "public",
    application_name: "taskledger test",
    connections: 1,
    acquire_timeout: Duration::from_secs(30),
    statement_timeout_ms: 30_000,
    lock_timeout_ms: 30_000,
    statements_kept: 10,
    file_survives: Survives::PowerCut,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_is_dropped_while_it_begins_does_not_stay_open() {
    let database = Database::create().await;
    let place = PgConnectOptions::from_str(database.url()).unwrap();
    let connections = Connections::of_database(&place, SETTINGS);
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

#[tokio::test]
async fn only_a_transaction_that_may_be_lost_does_not_wait_for_the_disk() {
    let database = Database::create().await;
    let place = PgConnectOptions::from_str(database.url()).unwrap();
    let connections = Connections::of_database(&place, SETTINGS);
    for _ in 0..2 {
        let unsynced = connections.write_unsynced().await.unwrap();
        assert_eq!(synchronous_commit(unsynced).await, "off");
        let synced = connections.write().await.unwrap();
        assert_eq!(synchronous_commit(synced).await, "on");
    }
}

async fn synchronous_commit(mut tx: Tx<'_>) -> String {
    let args = tx.args();
    let row = tx.fetch_one("SHOW synchronous_commit", args).await.unwrap();
    let value = Columns::of(&row).word().unwrap().to_owned();
    tx.commit().await.unwrap();
    value
}
