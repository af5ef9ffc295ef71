//! Checks the whole log, for `events verify`.
//!
//! Walks it in short reads, so servers may be running on it, and names every row that breaks a rule
//! instead of stopping at the first. Pages and indexes are the database's to check.

use super::queries::HEAD;
use super::row::{self, columns};
use super::{OpenError, Options, open, retention};
use crate::chain::Mark;
use crate::retention::Dropped;
use crate::row::snapshot_checksum;
use crate::verify::snapshots::{FORMAT, Replay};
use crate::verify::{
    DroppedFlow, PAGE_ROWS_MAX, PAGE_STREAMS_MAX, Report, StreamEntry, StreamRow, Walk,
    count_dropped, name_missing_versions,
};
use sqlx::postgres::PgRow;
use sqlx::{Encode, PgConnection, Postgres, Row as _, Type};
use taskledger_domain::{FlowId, Position};
use uuid::Uuid;

/// By the primary key.
pub(super) const EVENTS: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM taskledger.events AS e
      LEFT JOIN taskledger.streams AS s ON s.number = e.stream
      WHERE e.position > $1 AND e.position <= $2
      ORDER BY e.position"
);
/// By the primary key of `streams`, then `events_by_stream`.
pub(super) const STREAMS: &str = "SELECT s.number, s.flow, s.version, s.last_position,
          count(e.version), coalesce(min(e.version), 0), coalesce(max(e.version), 0),
          coalesce(max(e.position), 0)
      FROM (
          SELECT * FROM taskledger.streams WHERE number > $1 ORDER BY number LIMIT $2
      ) AS s
      LEFT JOIN taskledger.events AS e ON e.stream = s.number
      GROUP BY s.number, s.flow, s.version, s.last_position
      ORDER BY s.number";
/// By `events_by_stream`.
pub(super) const STREAM_VERSIONS: &str =
    "SELECT version, position, kind = 'FlowArchived' FROM taskledger.events
      WHERE stream = $1
      ORDER BY version";

/// By the ends of both primary keys; one statement sees one state.
pub(super) const END: &str = "SELECT h.position,
          coalesce((SELECT max(e.position) FROM taskledger.events AS e), 0), h.streams,
          coalesce((SELECT max(s.number) FROM taskledger.streams AS s), 0),
          h.hash IS NOT DISTINCT FROM
              (SELECT e.hash FROM taskledger.events AS e ORDER BY e.position DESC LIMIT 1)
      FROM taskledger.head AS h";

/// By `dropped_by_flow`, then the keys of `streams` and `events`.
pub(super) const DROPPED_FLOWS: &str =
    "SELECT d.flow, d.count, d.version, d.position, s.version, s.last_position,
          coalesce(e.kind = 'FlowArchived', false),
          (SELECT count(*) FROM taskledger.events AS f WHERE f.stream = s.number)
      FROM (
          SELECT flow, count(*) AS count, max(version) AS version, max(position) AS position
          FROM taskledger.dropped_events
          WHERE flow > $1
          GROUP BY flow
          ORDER BY flow
          LIMIT $2
      ) AS d
      LEFT JOIN taskledger.streams AS s ON s.flow = d.flow
      LEFT JOIN taskledger.events AS e ON e.position = s.last_position AND e.stream = s.number
      ORDER BY d.flow";
/// One statement sees one state.
pub(super) const DROPPED_COUNTS: &str =
    "SELECT events, (SELECT count(*) FROM taskledger.dropped_events) FROM taskledger.dropped";

/// By the primary keys.
pub(super) const SNAPSHOTS: &str = "SELECT n.stream, s.flow, n.version, n.checksum, n.bytes
      FROM taskledger.snapshots AS n
      JOIN taskledger.streams AS s ON s.number = n.stream
      WHERE n.stream > $1 AND n.format = $2
      ORDER BY n.stream
      LIMIT 1";
/// By `events_by_stream`.
pub(super) const STREAM_EVENTS: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM taskledger.events AS e
      LEFT JOIN taskledger.streams AS s ON s.number = e.stream
      WHERE e.stream = $1 AND e.version > $2 AND e.version <= $3
      ORDER BY e.version
      LIMIT $4"
);

/// Checks the log: dense positions, checksums, the hash chain, which must go through `kept` if that is
/// given, events that this program can read, times that do not run backwards, dense versions in each
/// stream, the table of streams. `progress` is told the
/// position reached and the head, now and then. Cost: O(log), in constant memory.
///
/// # Errors
/// [`OpenError`]: there is no log, or it cannot be read any more. Damage is not an error but a
/// `Fault` of the report.
pub async fn verify(
    options: &Options,
    kept: Option<Mark>,
    mut progress: impl FnMut(Position, Position) + Send,
) -> Result<Report, OpenError> {
    let place = open::place(&options.connect);
    let unusable = |source| OpenError::of_reading(&place, source);
    let connected = open::connect(options).await;
    let mut connection = connected.map_err(|error| OpenError::unreachable(&place, &error))?;
    let head: i64 = sqlx::query_scalar(HEAD)
        .fetch_one(&mut connection)
        .await
        .map_err(unusable)?;
    let mut report = Report {
        head: head.cast_unsigned(),
        ..Report::default()
    };
    let mut walk = Walk::with(kept);
    let mut dropped = Dropped::default();
    while walk.after < report.head {
        let after = walk.after;
        let last = after.saturating_add(PAGE_ROWS_MAX).min(report.head);
        let rows = sqlx::query(EVENTS)
            .bind(after.cast_signed())
            .bind(last.cast_signed())
            .fetch_all(&mut connection)
            .await
            .map_err(unusable)?;
        for sql in &rows {
            walk.row(row::read(sql, 0), &mut report);
        }
        walk.skip_to(last + 1);
        dropped = retention::dropped(&mut connection)
            .await
            .map_err(unusable)?;
        let remains = retention::remains(&mut connection, after, walk.after, usize::MAX).await;
        walk.page_ends(dropped, remains.map_err(unusable)?, &mut report);
        progress(walk.after, report.head);
    }
    walk.ends(dropped, &mut report);
    streams(&mut connection, &mut report)
        .await
        .map_err(unusable)?;
    dropped_flows(&mut connection, &mut report)
        .await
        .map_err(unusable)?;
    snapshots(&mut connection, &mut report)
        .await
        .map_err(unusable)?;
    end(&mut connection, &mut report).await.map_err(unusable)?;
    Ok(report)
}

/// The head row says where the next event goes; were it wrong, no append would succeed.
async fn end(connection: &mut PgConnection, report: &mut Report) -> Result<(), sqlx::Error> {
    let (position, last, streams, number, is_hash): (i64, i64, i64, i64, bool) =
        sqlx::query_as(END).fetch_one(connection).await?;
    if position != last || streams != number {
        let reason = format!(
            "the head says position {position} and {streams} streams, the tables end with \
             {last} and {number}"
        );
        report.add(Some(last.cast_unsigned()), None, reason);
    }
    if !is_hash {
        let reason = "the head does not have the hash of the last event".to_owned();
        report.add(Some(last.cast_unsigned()), None, reason);
    }
    Ok(())
}

/// The next rows of a statement that takes the key behind which they begin and how many are read at most.
async fn page<K>(
    connection: &mut PgConnection,
    statement: &'static str,
    after: K,
) -> Result<Vec<PgRow>, sqlx::Error>
where
    K: for<'q> Encode<'q, Postgres> + Type<Postgres> + Send,
{
    let query = sqlx::query(statement).bind(after).bind(PAGE_STREAMS_MAX);
    query.fetch_all(connection).await
}

/// Whether each event that was dropped belongs to a flow that was archived.
async fn dropped_flows(
    connection: &mut PgConnection,
    report: &mut Report,
) -> Result<(), sqlx::Error> {
    let (events, left): (i64, i64) = sqlx::query_as(DROPPED_COUNTS)
        .fetch_one(&mut *connection)
        .await?;
    count_dropped(events, left, report);
    let mut after = Uuid::nil();
    loop {
        let rows = page(connection, DROPPED_FLOWS, after).await?;
        if rows.is_empty() {
            return Ok(());
        }
        for row in &rows {
            after = row.try_get(0)?;
            let stream: (Option<i64>, Option<i64>) = (row.try_get(4)?, row.try_get(5)?);
            let flow = DroppedFlow {
                flow: Some(FlowId(after)),
                dropped: (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?),
                stream: stream.0.zip(stream.1),
                is_archived: row.try_get(6)?,
                events: row.try_get(7)?,
            };
            flow.check(report);
        }
    }
}

/// Whether each snapshot is the state that the events of its flow make. Those with a wrong checksum are never loaded.
async fn snapshots(connection: &mut PgConnection, report: &mut Report) -> Result<(), sqlx::Error> {
    let mut after = 0_i64;
    loop {
        let found: Option<(i64, Uuid, i64, i64, Vec<u8>)> = sqlx::query_as(SNAPSHOTS)
            .bind(after)
            .bind(i64::from(FORMAT))
            .fetch_optional(&mut *connection)
            .await?;
        let Some((stream, flow, version, checksum, bytes)) = found else {
            return Ok(());
        };
        after = stream;
        let (flow, version) = (FlowId(flow), version.cast_unsigned());
        if checksum != i64::from(snapshot_checksum(flow, FORMAT, version, &bytes)) {
            continue;
        }
        let mut replay = Replay::new(flow, version, bytes);
        while let Some((from, to)) = replay.wants() {
            let rows = sqlx::query(STREAM_EVENTS)
                .bind(stream)
                .bind(from.cast_signed())
                .bind(to.cast_signed())
                .bind(PAGE_ROWS_MAX.cast_signed())
                .fetch_all(&mut *connection)
                .await?;
            if rows.is_empty() {
                replay.stop();
            }
            rows.iter().for_each(|sql| replay.row(row::read(sql, 0)));
        }
        replay.finish(report);
    }
}

async fn streams(connection: &mut PgConnection, report: &mut Report) -> Result<(), sqlx::Error> {
    let mut after = 0_i64;
    loop {
        let rows = page(connection, STREAMS, after).await?;
        if rows.is_empty() {
            return Ok(());
        }
        for sql in &rows {
            after = sql.try_get(0)?;
            let stream = StreamRow {
                flow: Some(FlowId(sql.try_get(1)?)),
                version: sql.try_get(2)?,
                last_position: sql.try_get(3)?,
                events: (
                    sql.try_get(4)?,
                    sql.try_get(5)?,
                    sql.try_get(6)?,
                    sql.try_get(7)?,
                ),
            };
            if stream.check(report) {
                let found: Vec<(i64, i64, bool)> = sqlx::query_as(STREAM_VERSIONS)
                    .bind(after)
                    .fetch_all(&mut *connection)
                    .await?;
                let found = found
                    .into_iter()
                    .map(|(version, position, is_end)| StreamEntry {
                        version: version.cast_unsigned(),
                        position: position.cast_unsigned(),
                        is_end,
                    });
                name_missing_versions(found, stream.flow, report);
            }
        }
    }
}
