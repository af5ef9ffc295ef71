//! What the storage can do at best, measured in the same run: rows like those of the log, inserted
//! by the plain driver in durable batches, without checks, read models or HTTP. And what HTTP does at
//! best without storage (`door`).

pub(crate) mod door;

use crate::args::Args;
use crate::place::Place;
use crate::report::{Report, percentile};
use rusqlite::params;
use sqlx::{Connection, Executor, PgConnection};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Rows in a batch: what a committer gathers from so many callers that wait.
const BATCHES: [usize; 5] = [1, 16, 64, 256, 1_000];
/// The payload: the size of the event of the measured task.
const PAYLOAD_BYTES: usize = 420;

const TABLE: &str = "CREATE TABLE rows_like_the_log (
    position BIGINT PRIMARY KEY, stream BIGINT NOT NULL, version BIGINT NOT NULL, id {bytes} NOT NULL,
    time BIGINT NOT NULL, recorded_at BIGINT NOT NULL, kind TEXT NOT NULL, schema_version INTEGER NOT NULL,
    actor TEXT NOT NULL, correlation TEXT NOT NULL, causation {bytes}, trace TEXT,
    checksum BIGINT NOT NULL, data TEXT NOT NULL)";
const INDEX: &str = "CREATE UNIQUE INDEX by_stream ON rows_like_the_log (stream, version)";

/// One batch after the other for so long, by `insert`, which is told the first position.
struct Measured {
    per_second: f64,
    p50_ms: f64,
}

fn measured(mut times: Vec<f64>, batch: usize, took: Duration) -> Measured {
    Measured {
        per_second: (times.len() * batch) as f64 / took.as_secs_f64(),
        p50_ms: percentile(&mut times, 50.0),
    }
}

/// The row that says how many rows a second batches of this size make.
pub(crate) fn rate_name(args: &Args, batch: usize) -> String {
    let driver = match args.database_url {
        Some(_) => "Postgres",
        None => "SQLite",
    };
    format!("limit: {driver}, plain inserts of {batch} rows, rate")
}

/// Rates of durable batches of each size.
pub(crate) async fn limit(args: &Args, report: &mut Report) -> Result<(), String> {
    let place = Place::fresh(args, "limit").await?;
    for batch in BATCHES {
        let (mut rate, mut p50) = (Vec::new(), Vec::new());
        for _ in 0..args.rounds() {
            let round = match place.database() {
                Some(url) => postgres(url, batch, args.seconds())
                    .await
                    .map_err(|e| e.to_string())?,
                None => {
                    let file = place.folder().join("limit.db");
                    sqlite(&file, batch, args.seconds()).map_err(|e| e.to_string())?
                }
            };
            rate.push(round.per_second);
            p50.push(round.p50_ms);
        }
        let name = rate_name(args, batch);
        report.row(name.replace("rate", "p50"), "ms", &p50);
        report.row(name, "rows/s", &rate);
    }
    place.remove().await?;
    door::door(args, report).await
}

async fn postgres(url: &str, batch: usize, seconds: f64) -> Result<Measured, sqlx::Error> {
    let mut db = PgConnection::connect(url).await?;
    db.execute("DROP TABLE IF EXISTS rows_like_the_log").await?;
    let table = TABLE.replace("{bytes}", "BYTEA");
    db.execute(sqlx::AssertSqlSafe(table)).await?;
    db.execute(INDEX).await?;
    let payload = "x".repeat(PAYLOAD_BYTES);
    let (mut times, mut position) = (Vec::new(), 0_i64);
    let (began, limit) = (Instant::now(), Duration::from_secs_f64(seconds));
    while began.elapsed() < limit {
        let sent = Instant::now();
        let positions: Vec<i64> = (0..batch as i64).map(|n| position + n).collect();
        let ids: Vec<Vec<u8>> = positions
            .iter()
            .map(|n| Uuid::from_u128(n.unsigned_abs().into()).as_bytes().to_vec())
            .collect();
        let payloads = vec![payload.as_str(); batch];
        sqlx::query(
            "INSERT INTO rows_like_the_log SELECT p, p, 1, i, 0, 0, 'TaskCreated', 1, 'anonymous',
                 '0f8fad5b-d9cb-469f-a165-70867728950e', NULL, NULL, 0, d
             FROM UNNEST($1::bigint[], $2::bytea[], $3::text[]) AS rows(p, i, d)",
        )
        .bind(&positions)
        .bind(&ids)
        .bind(&payloads)
        .execute(&mut db)
        .await?;
        position += batch as i64;
        times.push(sent.elapsed().as_secs_f64() * 1e3);
    }
    let took = began.elapsed();
    db.close().await?;
    Ok(measured(times, batch, took))
}

fn sqlite(file: &std::path::Path, batch: usize, seconds: f64) -> rusqlite::Result<Measured> {
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", file.display()));
    }
    let mut db = rusqlite::Connection::open(file)?;
    db.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.execute_batch(&TABLE.replace("{bytes}", "BLOB"))?;
    db.execute_batch(INDEX)?;
    let payload = "x".repeat(PAYLOAD_BYTES);
    let (mut times, mut position) = (Vec::new(), 0_i64);
    let (began, limit) = (Instant::now(), Duration::from_secs_f64(seconds));
    while began.elapsed() < limit {
        let sent = Instant::now();
        let transaction = db.transaction()?;
        {
            let mut insert = transaction.prepare(
                "INSERT INTO rows_like_the_log VALUES (?1, ?1, 1, ?2, 0, 0, 'TaskCreated', 1,
                 'anonymous', '0f8fad5b-d9cb-469f-a165-70867728950e', NULL, NULL, 0, ?3)",
            )?;
            for _ in 0..batch {
                let id = Uuid::from_u128(position.unsigned_abs().into());
                insert.execute(params![position, id.as_bytes(), payload])?;
                position += 1;
            }
        }
        transaction.commit()?;
        times.push(sent.elapsed().as_secs_f64() * 1e3);
    }
    Ok(measured(times, batch, began.elapsed()))
}
