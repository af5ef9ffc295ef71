//! Decides which messages wait for earlier ones.

use super::Error;
use super::deliveries::promote;
use crate::endpoint::Ordering;
use taskledger_domain::{TaskId, Timestamp};
use taskledger_sql::{Columns, Tx};
use uuid::Uuid;

/// Messages of one lane wait for each other.
pub(super) fn lane(ordering: Ordering, task: Option<TaskId>) -> Option<Uuid> {
    match ordering {
        Ordering::None => None,
        Ordering::Task => task.map(|task| task.0),
        Ordering::Endpoint => Some(Uuid::nil()),
    }
}

/// Finds the first open message of each lane of an endpoint anew, after its ordering has changed.
/// The endpoint is held. Cost: O(open deliveries).
pub(super) async fn reorder(
    tx: &mut Tx<'_>,
    endpoint: i64,
    ordering: Ordering,
    now: Timestamp,
) -> Result<(), Error> {
    let mut args = tx.args();
    args.int(endpoint);
    let text = match ordering {
        Ordering::None => {
            args.time(now);
            UNORDER
        }
        Ordering::Task => {
            args.time(now);
            ORDER_BY_TASK
        }
        Ordering::Endpoint => {
            args.id(Uuid::nil());
            ORDER_ALL
        }
    };
    tx.execute(text, args).await?;
    let mut args = tx.args();
    args.int(endpoint);
    let rows = tx.fetch_all(LANES, args).await?;
    for row in &rows {
        promote(tx, endpoint, Columns::of(row).id()?, now).await?;
    }
    Ok(())
}

const UNORDER: &str = "UPDATE deliveries SET lane = NULL, next_at = coalesce(next_at, $2)
    WHERE endpoint = $1 AND state = 'waiting'";
const ORDER_BY_TASK: &str = "UPDATE deliveries SET lane = task_id,
        next_at = CASE WHEN task_id IS NULL THEN coalesce(next_at, $2) ELSE NULL END
    WHERE endpoint = $1 AND state = 'waiting'";
const ORDER_ALL: &str = "UPDATE deliveries SET lane = $2, next_at = NULL
    WHERE endpoint = $1 AND state = 'waiting'";
const LANES: &str = "SELECT DISTINCT lane FROM deliveries
    WHERE endpoint = $1 AND state = 'waiting' AND lane IS NOT NULL";
