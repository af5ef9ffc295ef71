//! Removes the rows of flows that have left the log. Owns how much one transaction removes; which flows these are, the
//! caller knows.

use crate::{BrokerStore, Error};
use std::sync::LazyLock;
use taskledger_domain::FlowId;
use taskledger_sql::{Args, MultiRow, in_slices};

/// Flows that are looked at in one transaction.
const FLOWS_AT_ONCE: usize = 128;
/// Rows of each table that one transaction removes: others wait for it.
const SLICE: i64 = 1_000;

impl BrokerStore {
    /// Forgets the tasks and outcomes of flows that retention has removed, delivered or not. Returns how many rows.
    /// Call it when the last event of each flow was taken in: a task that was created in a later one would stay. Cost:
    /// O(flows + rows), in transactions of bounded size.
    ///
    /// # Errors
    /// [`Error`]: what was removed is removed; do it again.
    pub async fn sweep(&self, flows: &[FlowId]) -> Result<u64, Error> {
        if self.passed.is_used() == Some(false) {
            return Ok(0);
        }
        let mut removed = 0;
        self.recent.forget(flows);
        for flows in flows.chunks(FLOWS_AT_ONCE) {
            // First the tasks: without them no outcomes are added meanwhile.
            for statement in [&*PUBLISHED, &*OUTCOMES] {
                removed += in_slices(SLICE, || self.remove(statement, flows)).await?;
            }
        }
        if removed > 0 {
            self.passed.unblocked();
        }
        Ok(removed)
    }

    async fn remove(&self, statement: &MultiRow, flows: &[FlowId]) -> Result<u64, Error> {
        let work = async {
            let (mut tx, _) = self.hold().await?;
            let bind = |flow: &FlowId, args: &mut Args| args.id(flow.0);
            let rows = statement.fetch(&mut tx, flows, bind).await?;
            tx.commit().await?;
            Ok(rows.len() as u64)
        };
        self.order(work).await
    }
}

// By `outcomes_flow`.
static OUTCOMES: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "DELETE FROM outcomes WHERE number IN (
           SELECT number FROM outcomes WHERE flow_id IN (",
        1,
        &format!(") LIMIT {SLICE}) RETURNING number"),
    )
});
// By the id and `published_below`.
static PUBLISHED: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "WITH gone (flow) AS (",
        1,
        &format!(
            ") DELETE FROM published WHERE task_id IN (
               SELECT p.task_id FROM gone CROSS JOIN published p WHERE p.task_id = gone.flow AND p.flow_id = gone.flow
               UNION ALL
               SELECT p.task_id FROM gone CROSS JOIN published p
               WHERE p.flow_id = gone.flow AND p.flow_id <> p.task_id
               LIMIT {SLICE}) RETURNING task_id"
        ),
    )
});
