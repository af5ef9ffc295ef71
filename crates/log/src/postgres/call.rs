//! The one statement that appends.
//!
//! Owns: its parameters, and the way from its verdicts to outcomes.
//! The answer is taken only when the server has said that it is ready again: rows arrive before the
//! commit that follows them.

use super::arrays::Arrays;
use super::batch::{Batch, Waiting};
use crate::ring::Fresh;
use crate::{Append, NewEvent, Outcome};
use sqlx::{PgConnection, Row as _};
use std::sync::Arc;
use taskledger_domain::{Position, Recorded, Timestamp};
use uuid::Uuid;

/// One probe of an index for each flow, claim and fence; see the function.
pub(super) const APPEND: &str = "SELECT last_position, recorded, verdicts, numbers, taken, held \
     FROM taskledger.append_chained($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, \
     $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27)";

/// The identity of the writer, and the time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Writer {
    pub(super) node: Uuid,
    pub(super) epoch: i64,
    pub(super) now: Timestamp,
    /// Expired claims to delete on the way.
    pub(super) sweep: i32,
}

/// The verdicts of the database, in the order of the batch.
#[derive(Debug)]
pub(super) struct Verdicts {
    pub(super) head: Position,
    recorded_at: Timestamp,
    verdicts: Vec<i16>,
    numbers: Vec<Option<i64>>,
    taken: Vec<Option<i32>>,
    held: Vec<Option<Vec<u8>>>,
}

const APPENDED: i16 = 0;
const CONFLICT: i16 = 1;
const TAKEN: i16 = 2;
const FENCED: i16 = 3;

/// Sends a batch. When this returns `Ok` the transaction is over.
pub(super) async fn append(
    connection: &mut PgConnection,
    writer: Writer,
    arrays: &Arrays<'_>,
) -> Result<Verdicts, sqlx::Error> {
    let (claims, events) = (&arrays.claims, &arrays.events);
    let query = sqlx::query(APPEND)
        .bind(writer.node)
        .bind(writer.epoch)
        .bind(writer.now.0)
        .bind(writer.sweep)
        .bind(&arrays.flows)
        .bind(&arrays.expected)
        .bind(&arrays.counts)
        .bind(&arrays.fence_names)
        .bind(&arrays.fence_tokens)
        .bind(&claims.appends)
        .bind(&claims.kinds)
        .bind(&claims.keys)
        .bind(&claims.values)
        .bind(&claims.expiries)
        .bind(&events.appends)
        .bind(&events.offsets)
        .bind(&events.ids)
        .bind(&events.times)
        .bind(&events.kinds)
        .bind(&events.schema_versions)
        .bind(&events.actors)
        .bind(&events.correlations)
        .bind(&events.causations)
        .bind(&events.traces)
        .bind(&events.checksums)
        .bind(&events.bodies)
        .bind(&events.contents);
    // Not `fetch_one`: that returns with the row, before the commit.
    let rows = query.fetch_all(connection).await?;
    let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
    let answer = Verdicts {
        head: row.try_get::<i64, _>(0)?.cast_unsigned(),
        recorded_at: Timestamp(row.try_get(1)?),
        verdicts: row.try_get(2)?,
        numbers: row.try_get(3)?,
        taken: row.try_get(4)?,
        held: row.try_get(5)?,
    };
    let count = arrays.flows.len();
    let lengths = [
        answer.verdicts.len(),
        answer.numbers.len(),
        answer.taken.len(),
        answer.held.len(),
    ];
    if lengths.iter().any(|length| *length != count) {
        return Err(sqlx::Error::Protocol(format!(
            "{count} appends were sent, the verdicts are {lengths:?}"
        )));
    }
    Ok(answer)
}

/// An answer and whom to give it to.
pub(super) struct Answered {
    pub(super) outcome: Outcome,
    pub(super) waiting: Sent,
}

/// What is left of an append that has been judged.
pub(super) struct Sent {
    pub(super) reply: tokio::sync::oneshot::Sender<Result<Outcome, crate::Error>>,
    _share: tokio::sync::OwnedSemaphorePermit,
}

impl Verdicts {
    /// The outcomes in the order of the batch, and the new events in the order of the log.
    /// Cost: O(events).
    pub(super) fn outcomes(self, batch: Batch) -> (Vec<Answered>, Vec<Fresh>) {
        let mut fresh = Vec::new();
        let mut answered = Vec::with_capacity(batch.waiting.len());
        let mut claims = 0;
        let each = self.verdicts.into_iter().zip(self.numbers);
        let each = each.zip(self.taken).zip(self.held);
        for (waiting, (((verdict, number), taken), held)) in batch.waiting.into_iter().zip(each) {
            let Waiting {
                append,
                reply,
                share,
                ..
            } = waiting;
            let first_claim = claims;
            claims += append.claims.len();
            let number = number.map(i64::cast_unsigned);
            let outcome = match (verdict, number) {
                (APPENDED, Some(base)) => {
                    Outcome::Appended(recorded(append, base, self.recorded_at, &mut fresh))
                }
                (CONFLICT, Some(actual)) => Outcome::Conflict { actual },
                (TAKEN, _) => exists(&append, first_claim, taken, held),
                (FENCED, _) => Outcome::Fenced,
                // The function knows no other verdict; whatever it meant can be looked up.
                (_, _) => Outcome::Unknown,
            };
            answered.push(Answered {
                outcome,
                waiting: Sent {
                    reply,
                    _share: share,
                },
            });
        }
        (answered, fresh)
    }
}

fn recorded(
    append: Append,
    base: Position,
    recorded_at: Timestamp,
    fresh: &mut Vec<Fresh>,
) -> Vec<Arc<Recorded>> {
    let stream = append.stream;
    let places = (base + 1..).zip(append.expected + 1..);
    let events = append.events.into_iter().zip(places);
    events
        .map(|(new, (position, version))| {
            let NewEvent {
                id,
                time,
                metadata,
                event,
                encoded,
            } = new;
            let event = Arc::new(Recorded {
                position,
                flow: stream,
                version,
                id,
                time,
                recorded_at,
                metadata,
                event,
            });
            fresh.push(Fresh {
                event: event.clone(),
                data_len: encoded.data.len(),
            });
            event
        })
        .collect()
}

/// `taken` counts the claims of the whole batch, from 1.
fn exists(
    append: &Append,
    first_claim: usize,
    taken: Option<i32>,
    held: Option<Vec<u8>>,
) -> Outcome {
    let claim = taken
        .and_then(|n| usize::try_from(n).ok())
        .and_then(|n| n.checked_sub(first_claim + 1))
        .and_then(|index| append.claims.get(index));
    let value = held.and_then(|bytes| String::from_utf8(bytes).ok());
    match (claim, value) {
        (Some(claim), Some(value)) => Outcome::Exists {
            key: claim.key.clone(),
            value: Arc::from(value),
        },
        // Only a database that was changed by hand answers so.
        (_, _) => Outcome::Unknown,
    }
}
