//! Flows that are folded no further, because one of their events cannot be read or folded.
//!
//! Their rows stay as they were before that event, and reads of them are refused; all other flows go on. Kept in a
//! table that changes with the rows, so that every server and the next start know them.

use crate::Error;
use std::collections::BTreeMap;
use std::sync::Arc;
use taskledger_domain::{FlowId, Position};
use taskledger_sql::{Columns, Tx};

/// Flows of which this may be said. A log with more is not a matter of single flows: the projection stops.
pub const DAMAGED_FLOWS_MAX: usize = 10_000;
/// Bytes of a reason that are kept.
const REASON_BYTES_MAX: usize = 500;

/// A flow that is folded no further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedFlow {
    /// Its id.
    pub flow: FlowId,
    /// Position of the first event that is not folded.
    pub position: Position,
    /// Whether that event could be read, and contradicts those before it; else it could not be read.
    pub is_readable: bool,
    /// Why it is not folded, in words for people.
    pub reason: Arc<str>,
}

/// Damaged flows, by id.
pub type DamagedFlows = BTreeMap<FlowId, DamagedFlow>;

/// All of them. Cost: O(damaged flows).
pub(crate) async fn load(tx: &mut Tx<'_>) -> Result<DamagedFlows, Error> {
    let args = tx.args();
    let rows = tx.fetch_all(LOAD, args).await?;
    rows.iter()
        .map(|row| {
            let mut c = Columns::of(row);
            let found = DamagedFlow {
                flow: FlowId(c.id()?),
                position: c.number()?,
                is_readable: c.int()? != 0,
                reason: c.text()?,
            };
            Ok((found.flow, found))
        })
        .collect()
}

/// Adds one, unless it is known.
pub(crate) async fn add(tx: &mut Tx<'_>, damaged: &DamagedFlow) -> Result<(), Error> {
    let mut args = tx.args();
    args.id(damaged.flow.0);
    args.position(damaged.position);
    args.int(i64::from(damaged.is_readable));
    args.text(Some(shortened(&damaged.reason)));
    tx.execute(ADD, args).await?;
    Ok(())
}

fn shortened(reason: &Arc<str>) -> Arc<str> {
    match reason.len() {
        0..=REASON_BYTES_MAX => reason.clone(),
        _ => Arc::from(&reason[..reason.floor_char_boundary(REASON_BYTES_MAX)]),
    }
}

const LOAD: &str = "SELECT flow, position, is_readable, reason
    FROM damaged_flows";
const ADD: &str = "INSERT INTO damaged_flows (flow, position, is_readable, reason)
    VALUES ($1, $2, $3, $4)
    ON CONFLICT (flow) DO NOTHING";
