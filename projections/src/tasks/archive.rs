//! Drops the rows of flows that were archived, with everything that was counted of them.

use super::counts::{self, BUCKET_MICROS};
use super::working_set::WorkingSet;
use crate::Error;
use std::sync::{Arc, LazyLock};
use taskledger_domain::flow::Event;
use taskledger_domain::{Recorded, RunId, Timestamp};
use taskledger_sql::{Columns, MultiRow, Row, Tx};

/// Flows that were archived one after the other, whose rows are dropped together.
#[derive(Default)]
pub(super) struct Gone<'e> {
    events: Vec<&'e Recorded>,
}

impl<'e> Gone<'e> {
    /// Takes the event if it ends a flow.
    pub(super) fn takes(&mut self, recorded: &'e Recorded) -> bool {
        let ends = matches!(*recorded.event, Event::FlowArchived(_));
        if ends {
            self.events.push(recorded);
        }
        ends
    }

    /// Whether one of them has rows that a new task may be in the way of: its ids are free.
    pub(super) fn leaves_rows(&self, set: &WorkingSet) -> bool {
        self.events
            .iter()
            .any(|recorded| set.flows.contains_key(&recorded.flow))
    }

    /// Drops their rows. `set` must be flushed. Flows that are not there were dropped before, or are
    /// new to read models that were made when their events had gone. Cost: O(rows).
    pub(super) async fn drop_rows(
        &mut self,
        set: &mut WorkingSet,
        tx: &mut Tx<'_>,
    ) -> Result<(), Error> {
        let (mut flows, mut runs) = (Vec::new(), Vec::<RunId>::new());
        for recorded in self.events.drain(..) {
            let Some(flow) = set.flows.remove(&recorded.flow) else {
                continue;
            };
            flows.push((flow.no, recorded.flow));
            if let Event::FlowArchived(archived) = &*recorded.event {
                runs.extend(&archived.runs);
            }
        }
        if flows.is_empty() {
            return Ok(());
        }
        set.forget_flows(|flow| flows.iter().any(|(_, gone)| *gone == flow));
        let cells = CELLS
            .fetch(tx, &flows, |(no, _), args| args.int(*no))
            .await?;
        for row in &cells {
            let group = Group::read(row)?;
            group.add(group.owner.as_ref(), -1, &mut set.counts);
        }
        // Bodies, labels and attempts are found through the tasks, which go last.
        for statement in [
            &*BODIES,
            &*LABELS,
            &*ATTEMPTS,
            &*TASKS,
            &*SUMMARIES,
            &*OPEN_RUNS,
            &*SAID,
            &*PAST,
            &*OUTPUT,
            &*STANDINGS,
        ] {
            statement
                .execute(tx, &flows, |(no, _), args| args.int(*no))
                .await?;
        }
        RUNS.execute(tx, &runs, |run, args| args.id(run.0)).await?;
        ROOTLESS
            .execute(tx, &flows, |(_, flow), args| args.id(flow.0))
            .await?;
        set.counts.flush(tx).await
    }
}

/// Tasks of flows that count in the same places.
pub(super) struct Group {
    user: Option<Arc<str>>,
    pub(super) owner: Option<Arc<str>>,
    bucket: i64,
    cell: counts::Cell,
    count: i64,
}

impl Group {
    /// Reads [`CELLS`].
    pub(super) fn read(row: &Row) -> Result<Self, Error> {
        let mut c = Columns::of(row);
        Ok(Self {
            user: c.opt_text()?,
            owner: c.opt_text()?,
            bucket: c.int()?,
            cell: counts::Cell {
                status: c.status()?,
                priority: c.priority()?,
                root: c.int()? != 0,
            },
            count: c.int()?,
        })
    }

    /// Whether they are roots.
    pub(super) const fn is_root(&self) -> bool {
        self.cell.root
    }

    /// Adds them (`times` 1) or takes them away (-1), as if `owner` were their owner.
    pub(super) fn add(&self, owner: Option<&Arc<str>>, times: i64, counts: &mut counts::Deltas) {
        let user = self.user.as_ref();
        let created_at = Timestamp(self.bucket * BUCKET_MICROS);
        let names = counts::Names { user, owner };
        counts.add(names, created_at, self.cell, times * self.count);
    }
}

const _: () = assert!(BUCKET_MICROS == 600_000_000, "the text below says so too");

/// By the index tasks_flow_ordinal. The divisor is [`BUCKET_MICROS`].
pub(super) static CELLS: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "SELECT c.user_id, c.owner, c.bucket, c.status, c.priority, c.is_root, COUNT(*)
        FROM (
            SELECT t.user_id, t.owner, t.created_at / 600000000 AS bucket, t.status, t.priority,
                CAST(CASE WHEN t.parent_no IS NULL THEN 1 ELSE 0 END AS BIGINT) AS is_root
            FROM tasks t
            WHERE t.flow_no IN (",
        1,
        ")) c
        GROUP BY c.user_id, c.owner, c.bucket, c.status, c.priority, c.is_root",
    )
});
/// By primary key; the tasks by the index tasks_flow_ordinal.
static BODIES: LazyLock<MultiRow> = LazyLock::new(|| below("task_bodies", "created_position"));
static LABELS: LazyLock<MultiRow> = LazyLock::new(|| below("task_labels", "task_no"));
static ATTEMPTS: LazyLock<MultiRow> = LazyLock::new(|| below("attempts", "task_no"));
/// By the index tasks_flow_ordinal.
static TASKS: LazyLock<MultiRow> = LazyLock::new(|| by("tasks", "flow_no"));
/// By primary key.
static SUMMARIES: LazyLock<MultiRow> = LazyLock::new(|| by("flow_summary", "flow_no"));
static OPEN_RUNS: LazyLock<MultiRow> = LazyLock::new(|| by("open_runs", "flow_no"));
static ROOTLESS: LazyLock<MultiRow> = LazyLock::new(|| by("rootless_flows", "flow_id"));
/// By the indexes run_status_flow and the primary key.
static SAID: LazyLock<MultiRow> = LazyLock::new(|| {
    let head = "DELETE FROM run_said WHERE run_no IN (
            SELECT s.run_no FROM run_status s WHERE s.flow_no IN (";
    MultiRow::new(head, 1, "))")
});
static PAST: LazyLock<MultiRow> = LazyLock::new(|| {
    let head = "DELETE FROM run_past WHERE run_no IN (
            SELECT s.run_no FROM run_status s WHERE s.flow_no IN (";
    MultiRow::new(head, 1, "))")
});
static OUTPUT: LazyLock<MultiRow> = LazyLock::new(|| {
    let head = "DELETE FROM run_output WHERE run_no IN (
            SELECT s.run_no FROM run_status s WHERE s.flow_no IN (";
    MultiRow::new(head, 1, "))")
});
/// By the index run_status_flow.
static STANDINGS: LazyLock<MultiRow> = LazyLock::new(|| by("run_status", "flow_no"));
/// By the index runs_id.
static RUNS: LazyLock<MultiRow> = LazyLock::new(|| by("runs", "run_id"));

fn by(table: &str, key: &str) -> MultiRow {
    MultiRow::new(&format!("DELETE FROM {table} WHERE {key} IN ("), 1, ")")
}

fn below(table: &str, key: &str) -> MultiRow {
    let head = format!(
        "DELETE FROM {table} WHERE {key} IN (
            SELECT t.created_position FROM tasks t WHERE t.flow_no IN ("
    );
    MultiRow::new(&head, 1, "))")
}

/// All of them with the kinds of their parameters, the one that counts first.
#[cfg(test)]
pub(super) fn statements() -> [(&'static MultiRow, &'static str); 13] {
    [
        (&CELLS, "i"),
        (&BODIES, "i"),
        (&LABELS, "i"),
        (&ATTEMPTS, "i"),
        (&TASKS, "i"),
        (&SUMMARIES, "i"),
        (&OPEN_RUNS, "i"),
        (&SAID, "i"),
        (&PAST, "i"),
        (&OUTPUT, "i"),
        (&STANDINGS, "i"),
        (&RUNS, "b"),
        (&ROOTLESS, "b"),
    ]
}
