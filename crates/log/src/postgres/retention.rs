//! Records which events were dropped, and drops more.
//!
//! Owns: the only statements that delete events. They take no lock that an append needs but those of
//! the rows: the head, by which appends take turns, is left alone.

use super::PostgresStore;
use super::reads::Reads;
use super::{failure, open, row};
use crate::Error;
use crate::chain::Remains;
use crate::retention::{Dropped, Undropped, created_task, not_archived};
use sqlx::{Connection, PgConnection, Row as _};
use taskledger_domain::{FlowId, Position, Timestamp};

/// The one row.
pub(super) const DROPPED: &str = "SELECT horizon, events FROM taskledger.dropped";
/// By the primary key.
pub(super) const NEXT: &str = "SELECT min(position) FROM taskledger.events WHERE position > $1";
/// By the unique index of `streams.flow`, then by `events_by_stream`.
pub(super) const IS_ARCHIVED: &str = "SELECT count(*)
      FROM taskledger.streams AS s
      JOIN taskledger.events AS e ON e.stream = s.number AND e.version = s.version
      WHERE s.flow = $1 AND e.kind = 'FlowArchived'";
/// By `events_archived`, then by `events_by_stream`: a stream is dropped down to its first event.
pub(super) const UNDROPPED: &str = "SELECT e.stream, s.flow, e.position
      FROM taskledger.events AS e
      JOIN taskledger.streams AS s ON s.number = e.stream
      WHERE e.kind = 'FlowArchived' AND e.stream > $1
        AND EXISTS (
            SELECT FROM taskledger.events AS f WHERE f.stream = e.stream AND f.version = 1)
      ORDER BY e.stream
      LIMIT $2";
/// By the unique index of `streams.flow`, then by `events_by_stream`. Two that drop the same stream
/// take turns at the row of `dropped`.
pub(super) const LAST: &str = "SELECT e.stream, e.position, e.version,
          CASE e.kind WHEN 'TaskCreated' THEN e.data END
      FROM taskledger.streams AS s
      JOIN taskledger.events AS e ON e.stream = s.number AND e.version < s.version
      WHERE s.flow = $1
      ORDER BY e.version DESC
      LIMIT $2";
/// By the primary key.
pub(super) const REMAINS: &str = "SELECT position, recorded_at, flow, version, body
      FROM taskledger.dropped_events
      WHERE position > $1 AND position <= $2
      ORDER BY position
      LIMIT $3";
/// For a log that is made from lines.
pub(super) const PUT_REMAINS: &str =
    "INSERT INTO taskledger.dropped_events (position, recorded_at, flow, version, body)
      SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::bigint[], $5::bytea[])";
pub(super) const LOCK: &str = "SELECT events FROM taskledger.dropped FOR UPDATE";
/// By the primary key. What others hold under the same id is theirs.
pub(super) const DELETE_CLAIMS: &str = "DELETE FROM taskledger.claims AS c
      WHERE c.kind = 1 AND c.key = ANY ($1) AND c.value = $2";
/// By the primary key. A trigger keeps what the hash chain needs of them.
pub(super) const DELETE_EVENTS: &str =
    "DELETE FROM taskledger.events AS e WHERE e.position = ANY ($1)";
/// By the primary key.
pub(super) const DELETE_SNAPSHOT: &str =
    "DELETE FROM taskledger.snapshots AS n WHERE n.stream = $1";
pub(super) const COUNT: &str = "UPDATE taskledger.dropped
      SET horizon = greatest(horizon, $1), events = events + $2";
/// For a log that is made from lines.
pub(super) const SET: &str = "UPDATE taskledger.dropped SET horizon = $1, events = $2";

/// See [`crate::EventStore::dropped`].
pub(super) async fn dropped(connection: &mut PgConnection) -> Result<Dropped, sqlx::Error> {
    let (horizon, events): (i64, i64) = sqlx::query_as(DROPPED).fetch_one(connection).await?;
    Ok(Dropped {
        horizon: horizon.cast_unsigned(),
        events: events.cast_unsigned(),
    })
}

/// Where the next event behind a gap is; `None` when there is none.
pub(super) async fn next_position(
    connection: &mut PgConnection,
    after: Position,
) -> Result<Option<Position>, sqlx::Error> {
    let asked = sqlx::query_scalar(NEXT).bind(after.cast_signed());
    let next: Option<i64> = asked.fetch_one(connection).await?;
    Ok(next.map(i64::cast_unsigned))
}

/// What stayed of up to `limit` dropped events with positions in `after + 1 ..= last`.
pub(super) async fn remains(
    connection: &mut PgConnection,
    after: Position,
    last: Position,
    limit: usize,
) -> Result<Vec<Remains>, sqlx::Error> {
    let rows = sqlx::query(REMAINS)
        .bind(after.cast_signed())
        .bind(last.cast_signed())
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(connection)
        .await?;
    let remains = rows.iter().map(|sql| {
        let body = row::hash(sql.try_get(4)?);
        Ok(Remains {
            position: sql.try_get::<i64, _>(0)?.cast_unsigned(),
            recorded_at: Timestamp(sql.try_get(1)?),
            flow_id: FlowId(sql.try_get(2)?),
            version: sql.try_get::<i64, _>(3)?.cast_unsigned(),
            body: body.map_err(sqlx::Error::Protocol)?,
        })
    });
    remains.collect()
}

/// Writes what stayed of dropped events.
pub(super) async fn put_remains(
    connection: &mut PgConnection,
    remains: &[Remains],
) -> Result<(), sqlx::Error> {
    let positions: Vec<_> = remains.iter().map(|r| r.position.cast_signed()).collect();
    let times: Vec<_> = remains.iter().map(|r| r.recorded_at.0).collect();
    let flows: Vec<_> = remains.iter().map(|r| r.flow_id.0).collect();
    let versions: Vec<_> = remains.iter().map(|r| r.version.cast_signed()).collect();
    let bodies: Vec<_> = remains.iter().map(|r| r.body.as_bytes()).collect();
    let put = sqlx::query(PUT_REMAINS).bind(&positions).bind(&times);
    let put = put.bind(&flows).bind(&versions).bind(&bodies);
    put.execute(connection).await?;
    Ok(())
}

impl Reads {
    /// See [`crate::EventStore::dropped`].
    pub(super) async fn dropped(&self) -> Result<Dropped, sqlx::Error> {
        let rows = self.rows(|| sqlx::query(DROPPED)).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        Ok(Dropped {
            horizon: row.try_get::<i64, _>(0)?.cast_unsigned(),
            events: row.try_get::<i64, _>(1)?.cast_unsigned(),
        })
    }

    /// Where the next event behind a gap is.
    pub(super) async fn next_position(
        &self,
        after: Position,
    ) -> Result<Option<Position>, sqlx::Error> {
        let rows = self
            .rows(|| sqlx::query(NEXT).bind(after.cast_signed()))
            .await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        Ok(row.try_get::<Option<i64>, _>(0)?.map(i64::cast_unsigned))
    }

    /// Whether the stream ends with the event that says that it was archived.
    pub(super) async fn is_archived(&self, flow: FlowId) -> Result<bool, sqlx::Error> {
        let rows = self.rows(|| sqlx::query(IS_ARCHIVED).bind(flow.0)).await?;
        let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
        Ok(row.try_get::<i64, _>(0)? > 0)
    }

    /// See [`crate::EventStore::undropped`].
    pub(super) async fn undropped(
        &self,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Undropped>, sqlx::Error> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.rows(|| sqlx::query(UNDROPPED).bind(after.cast_signed()).bind(limit));
        let rows = rows.await?;
        rows.iter()
            .map(|row| {
                Ok(Undropped {
                    number: row.try_get::<i64, _>(0)?.cast_unsigned(),
                    flow: FlowId(row.try_get(1)?),
                    end: row.try_get::<i64, _>(2)?.cast_unsigned(),
                })
            })
            .collect()
    }
}

/// See [`crate::EventStore::drop_archived`]. One transaction on a connection of its own.
pub(super) async fn drop_archived(
    store: &PostgresStore,
    flow: FlowId,
    limit: usize,
) -> Result<u64, Error> {
    match store.reads.is_archived(flow).await {
        Ok(true) => {}
        Ok(false) => return Err(not_archived(flow)),
        Err(error) => return Err(failure::of_read(&error, 0)),
    }
    let mut lent = store.reads.lend().await.map_err(failed)?;
    let dropped = drop_some(lent.connection(), flow, limit);
    let answer = open::within(store.reads.patience(), dropped).await;
    let answer = answer.map_err(failed)?;
    lent.came_back();
    answer
}

fn failed(error: sqlx::Error) -> Error {
    failure::of_read(&error, 0)
}

async fn drop_some(
    connection: &mut PgConnection,
    flow: FlowId,
    limit: usize,
) -> Result<u64, Error> {
    let mut transaction = connection.begin().await.map_err(failed)?;
    let locked = sqlx::query(LOCK).fetch_one(&mut *transaction).await;
    locked.map_err(failed)?;
    let rows = sqlx::query(LAST)
        .bind(flow.0)
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(&mut *transaction)
        .await
        .map_err(failed)?;
    let (mut positions, mut tasks, mut stream, mut first) = (Vec::new(), Vec::new(), 0_i64, 1_i64);
    for row in &rows {
        let position: i64 = row.try_get(1).map_err(failed)?;
        (stream, first) = (
            row.try_get(0).map_err(failed)?,
            row.try_get(2).map_err(failed)?,
        );
        positions.push(position);
        if let Some(data) = row.try_get::<Option<&str>, _>(3).map_err(failed)? {
            tasks.push(
                created_task(position.cast_unsigned(), data)?
                    .0
                    .as_bytes()
                    .to_vec(),
            );
        }
    }
    let Some(horizon) = positions.iter().max().copied() else {
        return Ok(0);
    };
    let statements = [
        sqlx::query(DELETE_CLAIMS)
            .bind(&tasks)
            .bind(flow.to_string().into_bytes()),
        sqlx::query(DELETE_EVENTS).bind(&positions),
        sqlx::query(DELETE_SNAPSHOT).bind(stream),
        sqlx::query(COUNT)
            .bind(horizon)
            .bind(i64::try_from(positions.len()).unwrap_or(i64::MAX)),
    ];
    for statement in statements {
        statement.execute(&mut *transaction).await.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)?;
    Ok((first - 1).cast_unsigned())
}
