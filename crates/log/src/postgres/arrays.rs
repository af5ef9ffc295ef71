//! A batch, column by column, as `taskledger.append_chained` takes it.
//!
//! Owns: the order of events and claims in the arrays. Texts go as bytes, because Postgres refuses
//! the character NUL in a text; `data` is JSON, where it can only stand escaped.

use super::batch::Batch;
use crate::NewEvent;
use crate::row::{Row, claim_columns};
use taskledger_domain::{FlowId, Version};
use uuid::Uuid;

/// Parameters that say what to write, borrowed from a batch.
#[derive(Debug, Default)]
pub(super) struct Arrays<'a> {
    pub(super) flows: Vec<Uuid>,
    pub(super) expected: Vec<i64>,
    pub(super) counts: Vec<i32>,
    pub(super) fence_names: Vec<Option<&'a [u8]>>,
    pub(super) fence_tokens: Vec<Option<i64>>,
    pub(super) claims: Claims<'a>,
    pub(super) events: Events<'a>,
}

#[derive(Debug, Default)]
pub(super) struct Claims<'a> {
    pub(super) appends: Vec<i32>,
    pub(super) kinds: Vec<i16>,
    pub(super) keys: Vec<&'a [u8]>,
    pub(super) values: Vec<&'a [u8]>,
    pub(super) expiries: Vec<Option<i64>>,
}

#[derive(Debug, Default)]
pub(super) struct Events<'a> {
    pub(super) appends: Vec<i32>,
    pub(super) offsets: Vec<i32>,
    pub(super) ids: Vec<Uuid>,
    pub(super) times: Vec<i64>,
    pub(super) kinds: Vec<&'a str>,
    pub(super) schema_versions: Vec<i32>,
    pub(super) actors: Vec<&'a [u8]>,
    pub(super) correlations: Vec<&'a [u8]>,
    pub(super) causations: Vec<Option<Uuid>>,
    pub(super) traces: Vec<Option<&'a [u8]>>,
    pub(super) checksums: Vec<i64>,
    pub(super) bodies: Vec<&'a str>,
    pub(super) contents: Vec<Vec<u8>>,
}

impl<'a> Arrays<'a> {
    /// Cost: O(bytes), for checksums and contents.
    pub(super) fn of(batch: &'a Batch) -> Self {
        let mut arrays = Self::default();
        for (n, waiting) in (1..).zip(&batch.waiting) {
            let append = &waiting.append;
            arrays.flows.push(append.stream.0);
            arrays.expected.push(append.expected.cast_signed());
            arrays.counts.push(index(append.events.len()));
            let fence = append.fence.as_ref();
            arrays.fence_names.push(fence.map(|f| f.name.as_bytes()));
            arrays
                .fence_tokens
                .push(fence.map(|f| i64::try_from(f.token).unwrap_or(i64::MAX)));
            for claim in &append.claims {
                let (kind, key) = claim_columns(&claim.key);
                arrays.claims.appends.push(n);
                arrays.claims.kinds.push(kind);
                arrays.claims.keys.push(key);
                arrays.claims.values.push(claim.value.as_bytes());
                arrays.claims.expiries.push(claim.expires_at.map(|at| at.0));
            }
            for (offset, event) in (1..).zip(&append.events) {
                arrays
                    .events
                    .push(n, offset, append.stream, append.expected, event);
            }
        }
        arrays
    }
}

impl<'a> Events<'a> {
    fn push(&mut self, n: i32, offset: i32, flow: FlowId, expected: Version, new: &'a NewEvent) {
        let version = expected.wrapping_add(u64::from(offset.unsigned_abs()));
        let row = Row::new(flow, version, new);
        let content = row.content();
        self.appends.push(n);
        self.offsets.push(offset);
        self.ids.push(row.id.0);
        self.times.push(row.time.0);
        self.kinds.push(row.kind);
        self.schema_versions.push(i32::from(row.schema_version));
        self.actors.push(row.actor.as_bytes());
        self.correlations.push(row.correlation.as_bytes());
        self.causations.push(row.causation.map(|id| id.0));
        self.traces
            .push(new.metadata.trace.as_deref().map(str::as_bytes));
        self.checksums.push(i64::from(row.checksum()));
        self.bodies.push(&new.encoded.data);
        self.contents.push(content.as_bytes().to_vec());
    }
}

/// A count of what fits into an append, whose bytes are bounded.
fn index(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
