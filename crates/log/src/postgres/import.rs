//! Creates a log from an export, for `events import`: one transaction, so that an interrupted import leaves nothing.

use super::export::Export;
use super::retention::{self, SET};
use super::row::{self, Row};
use super::{OpenError, Options, failure, migrate, open};
use crate::chain::{Hash, Remains};
use crate::row::claim_columns;
use crate::transfer::{Checked, ExportedKey, Gaps, Source, StreamEnd, Target};
use crate::{ClaimKey, Error};
use async_trait::async_trait;
use sqlx::{Executor, PgConnection};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::{FlowId, Timestamp};
use uuid::Uuid;

/// How long one statement of an import may take; none of them has more than a page to write but the
/// one for the streams.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(600);
/// Streams that are written at a time.
const STREAMS_AT_A_TIME: usize = 10_000;

/// Keeps all writers out until the import has ended.
pub(super) const LOCK: &str = "SELECT position FROM taskledger.head FOR UPDATE";
pub(super) const INSERT_EVENTS: &str =
    "INSERT INTO taskledger.events (position, stream, version, id, time,
          recorded_at, kind, schema_version, actor, correlation, causation, trace, checksum, data,
          hash)
      SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::uuid[], $5::bigint[],
          $6::bigint[], $7::text[], $8::integer[], $9::bytea[], $10::bytea[], $11::uuid[],
          $12::bytea[], $13::bigint[], $14::text[], $15::bytea[])";
pub(super) const INSERT_CLAIMS: &str =
    "INSERT INTO taskledger.claims (kind, key, value, expires_at)
      SELECT * FROM unnest($1::smallint[], $2::bytea[], $3::bytea[], $4::bigint[])";
pub(super) const INSERT_STREAMS: &str =
    "INSERT INTO taskledger.streams (number, flow, version, last_position)
      SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::bigint[])";
pub(super) const MOVE_HEAD: &str =
    "UPDATE taskledger.head SET position = $1, recorded_at = $2, streams = $3,
      hash = $4";
/// Servers that run on the empty database learn of it at once.
pub(super) const TELL: &str = "SELECT pg_notify('taskledger', $1::text)";
/// Why no log can be made here.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// There is one already; choose another database.
    #[error(
        "{place} exists already, with {events} events; a log is imported into an empty database"
    )]
    Exists {
        /// Host, port and database.
        place: String,
        /// How many events it has.
        events: i64,
    },
    /// The database cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// A log that is being imported.
#[derive(Debug)]
pub struct Import {
    connection: Box<PgConnection>,
    streams: BTreeMap<u64, (FlowId, StreamEnd)>,
    gaps: Gaps,
    recorded_at: Timestamp,
    /// Hash of the last event.
    hash: Option<Hash>,
    concluded: bool,
}

impl Import {
    /// Begins to make the log of a database, whose schema is made if need be. Servers that run on it
    /// cannot write meanwhile.
    ///
    /// # Errors
    /// [`ImportError`].
    pub async fn begin(options: &Options) -> Result<Self, ImportError> {
        migrate(options).await?;
        let place = open::place(&options.connect);
        let patient = Options {
            statement_timeout: STATEMENT_TIMEOUT,
            ..options.clone()
        };
        let unusable = |source| OpenError::Unusable {
            place: place.clone(),
            source,
        };
        let connected = open::connect(&patient).await;
        let mut connection = connected.map_err(&unusable)?;
        connection.execute("BEGIN").await.map_err(&unusable)?;
        let head = sqlx::query_scalar(LOCK).fetch_one(&mut connection).await;
        let head: i64 = head.map_err(&unusable)?;
        if head > 0 {
            return Err(ImportError::Exists {
                place,
                events: head,
            });
        }
        Ok(Self {
            connection: Box::new(connection),
            streams: BTreeMap::new(),
            gaps: Gaps::default(),
            recorded_at: Timestamp(0),
            hash: None,
            concluded: false,
        })
    }

    async fn write_claims<'k>(
        &mut self,
        claims: impl Iterator<Item = (&'k ClaimKey, &'k str, Option<Timestamp>)>,
    ) -> Result<(), sqlx::Error> {
        let (mut kinds, mut keys, mut values, mut expiries) = (vec![], vec![], vec![], vec![]);
        for (key, value, expires_at) in claims {
            let (kind, key) = claim_columns(key);
            kinds.push(kind);
            keys.push(key);
            values.push(value.as_bytes());
            expiries.push(expires_at.map(|at| at.0));
        }
        sqlx::query(INSERT_CLAIMS)
            .bind(&kinds)
            .bind(&keys)
            .bind(&values)
            .bind(&expiries)
            .execute(&mut *self.connection)
            .await?;
        Ok(())
    }

    /// Streams and head, once all events are there.
    async fn conclude(&mut self) -> Result<(), sqlx::Error> {
        if std::mem::replace(&mut self.concluded, true) {
            return Ok(());
        }
        let mut position = 0;
        let all: Vec<_> = self.streams.values().copied().collect();
        for some in all.chunks(STREAMS_AT_A_TIME) {
            let numbers: Vec<i64> = some.iter().map(|s| s.1.number.cast_signed()).collect();
            let flows: Vec<Uuid> = some.iter().map(|s| s.0.0).collect();
            let versions: Vec<i64> = some.iter().map(|s| s.1.version.cast_signed()).collect();
            let positions: Vec<i64> = some.iter().map(|s| s.1.position.cast_signed()).collect();
            position = positions.iter().copied().fold(position, i64::max);
            sqlx::query(INSERT_STREAMS)
                .bind(&numbers)
                .bind(&flows)
                .bind(&versions)
                .bind(&positions)
                .execute(&mut *self.connection)
                .await?;
        }
        sqlx::query(MOVE_HEAD)
            .bind(position)
            .bind(self.recorded_at.0)
            .bind(i64::try_from(all.len()).unwrap_or(i64::MAX))
            .bind(self.hash.as_ref().map(Hash::as_bytes))
            .execute(&mut *self.connection)
            .await?;
        let dropped = self.gaps.dropped();
        sqlx::query(SET)
            .bind(dropped.horizon.cast_signed())
            .bind(dropped.events.cast_signed())
            .execute(&mut *self.connection)
            .await?;
        sqlx::query(TELL)
            .bind(position.to_string())
            .execute(&mut *self.connection)
            .await?;
        Ok(())
    }
}

fn failed(error: sqlx::Error) -> Error {
    failure::of_read(&error, 0)
}

#[async_trait]
impl Target for Import {
    async fn write(&mut self, events: &[Checked]) -> Result<(), Error> {
        let mut columns = Columns::default();
        for event in events {
            let line = &event.line;
            let end = StreamEnd {
                number: event.stream,
                version: line.version,
                position: line.position,
                is_archived: false,
            };
            self.gaps.next(line.position);
            self.streams.insert(event.stream, (line.flow_id, end));
            self.recorded_at = line.recorded_at;
            self.hash = line.hash;
            columns.push(event);
        }
        columns.insert(&mut self.connection).await.map_err(failed)?;
        let claimed: Vec<(ClaimKey, String)> = events
            .iter()
            .filter_map(|e| Some((ClaimKey::Task(e.claims?), e.line.flow_id.to_string())))
            .collect();
        let claims = claimed.iter().map(|(key, flow)| (key, flow.as_str(), None));
        self.write_claims(claims).await.map_err(failed)
    }

    async fn write_remains(&mut self, remains: &[Remains]) -> Result<(), Error> {
        let put = retention::put_remains(&mut self.connection, remains).await;
        put.map_err(failed)
    }

    async fn write_keys(&mut self, keys: &[ExportedKey]) -> Result<(), Error> {
        let named: Vec<_> = keys
            .iter()
            .map(|k| ClaimKey::Request(Arc::from(k.request_key.as_str())))
            .collect();
        let claims = named
            .iter()
            .zip(keys)
            .map(|(key, k)| (key, k.value.as_str(), Some(k.expires_at)));
        self.write_claims(claims).await.map_err(failed)
    }

    async fn read_back(&mut self) -> Result<Box<dyn Source + '_>, Error> {
        self.conclude().await.map_err(failed)?;
        let export = Export::through(&mut *self.connection, 0).await;
        Ok(Box::new(export.map_err(failed)?))
    }

    async fn finish(mut self: Box<Self>) -> Result<(), Error> {
        self.conclude().await.map_err(failed)?;
        self.connection.execute("COMMIT").await.map_err(failed)?;
        let analyze = "ANALYZE taskledger.events, taskledger.streams, taskledger.claims";
        if let Err(error) = self.connection.execute(analyze).await {
            tracing::warn!(%error, "the imported log was not analyzed; the database will do so by itself");
        }
        Ok(())
    }
}

/// Events column by column, borrowed.
#[derive(Default)]
struct Columns<'a> {
    positions: Vec<i64>,
    streams: Vec<i64>,
    versions: Vec<i64>,
    ids: Vec<Uuid>,
    times: Vec<i64>,
    recorded: Vec<i64>,
    kinds: Vec<&'a str>,
    schema_versions: Vec<i32>,
    actors: Vec<&'a [u8]>,
    correlations: Vec<&'a [u8]>,
    causations: Vec<Option<Uuid>>,
    traces: Vec<Option<&'a [u8]>>,
    checksums: Vec<i64>,
    bodies: Vec<&'a str>,
    hashes: Vec<Option<Vec<u8>>>,
}

impl<'a> Columns<'a> {
    fn push(&mut self, event: &'a Checked) {
        let row = Row::of(&event.line);
        self.positions.push(row.position.cast_signed());
        self.streams.push(event.stream.cast_signed());
        self.versions.push(row.version.cast_signed());
        self.ids.push(row.id.0);
        self.times.push(row.time.0);
        self.recorded.push(row.recorded_at.0);
        self.kinds.push(row.kind);
        self.schema_versions.push(i32::from(row.schema_version));
        self.actors.push(row.actor.as_bytes());
        self.correlations.push(row.correlation.as_bytes());
        self.causations.push(row.causation.map(|id| id.0));
        self.traces.push(row.trace.map(str::as_bytes));
        self.checksums.push(row::checksum(&row));
        self.bodies.push(row.data);
        self.hashes
            .push(row.hash.map(|hash| hash.as_bytes().to_vec()));
    }

    async fn insert(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        sqlx::query(INSERT_EVENTS)
            .bind(&self.positions)
            .bind(&self.streams)
            .bind(&self.versions)
            .bind(&self.ids)
            .bind(&self.times)
            .bind(&self.recorded)
            .bind(&self.kinds)
            .bind(&self.schema_versions)
            .bind(&self.actors)
            .bind(&self.correlations)
            .bind(&self.causations)
            .bind(&self.traces)
            .bind(&self.checksums)
            .bind(&self.bodies)
            .bind(&self.hashes)
            .execute(connection)
            .await?;
        Ok(())
    }
}
