//! Keeps the owner of a flow on the rows of its tasks: the `user_id` of its root, as it is now.
//!
//! Owns: what follows when the root gets another user. All tasks of the flow change in the transaction
//! of that event, with the totals. A child takes the owner of its parent when it is created.

use super::archive::{CELLS, Group};
use super::contradiction::Contradiction;
use super::facets::Facets;
use super::held::Write;
use super::in_sql::{InSql, OwnerChange};
use super::labels;
use super::working_set::WorkingSet;
use crate::Error;
use std::sync::{Arc, LazyLock};
use taskledger_domain::{Recorded, TaskId};
use taskledger_sql::{MultiRow, Tx};

impl WorkingSet {
    /// Gives the root another user, and with it all tasks of the flow another owner.
    /// Cost: O(tasks of the flow in memory), when the owner changes.
    pub(super) fn change_owner(
        &mut self,
        recorded: &Recorded,
    ) -> Result<Option<InSql>, Contradiction> {
        let root = recorded.flow.root();
        let from = self.task(root)?.placed.row.owner.clone();
        self.change(recorded, Write::Definition)?;
        let to = self.task(root)?.placed.row.owner.clone();
        if from == to {
            return Ok(None);
        }
        let flow = self.flow(recorded.flow)?;
        if !flow.is_whole() {
            let flow = flow.id;
            return Ok(Some(InSql::Owner(OwnerChange { flow, from, to })));
        }
        let no = flow.no;
        let others: Vec<TaskId> = flow.tasks.values().copied().collect();
        for id in others.into_iter().filter(|id| *id != root) {
            let row = &mut self.task_mut(id)?.placed.row;
            let before = Facets::of(row);
            row.apply(recorded);
            let after = Facets::of(row);
            self.account(recorded.flow, Some(&before), Some(&after))?;
        }
        self.own_runs(no, to.as_ref());
        self.owners.insert(no, to);
        Ok(None)
    }

    /// Gives the runs of a flow that are in memory its owner. Cost: O(runs in memory).
    fn own_runs(&mut self, flow_no: i64, owner: Option<&Arc<str>>) {
        let runs = self.runs.values_mut().map(|run| &mut run.standing);
        for standing in runs.filter(|it| it.flow_no == flow_no) {
            standing.owner = owner.cloned();
        }
        let past = self.past_statuses.iter_mut();
        for status in past.filter(|it| it.flow_no == flow_no) {
            status.owner = owner.cloned();
        }
    }
}

/// Writes the owners of flows that changed. New rows have theirs. Cost: O(tasks of these flows), in SQL.
pub(super) async fn write(set: &mut WorkingSet, tx: &mut Tx<'_>) -> Result<(), Error> {
    let owners: Vec<_> = std::mem::take(&mut set.owners).into_iter().collect();
    for statement in [
        &*UPDATE_OWNERS,
        &*labels::UPDATE_OWNERS,
        &*UPDATE_RUN_OWNERS,
        &*UPDATE_PAST_OWNERS,
    ] {
        statement
            .execute(tx, &owners, |(flow_no, owner), args| {
                args.int(*flow_no);
                args.text(owner.clone());
            })
            .await?;
    }
    Ok(())
}

/// Gives all tasks of a flow another owner. `set` must be flushed. Cost: O(tasks of the flow), in SQL.
pub(super) async fn change(
    set: &mut WorkingSet,
    tx: &mut Tx<'_>,
    change: OwnerChange,
) -> Result<(), Error> {
    let Some(flow) = set.flows.get(&change.flow) else {
        return Ok(());
    };
    let no = flow.no;
    for id in flow.tasks.values() {
        if let Some(task) = set.tasks.get_mut(id) {
            task.placed.row.owner.clone_from(&change.to);
        }
    }
    let groups = CELLS.fetch(tx, &[no], |no, args| args.int(*no)).await?;
    for row in &groups {
        let group = Group::read(row)?;
        // The root counts for its new owner.
        if !group.is_root() {
            group.add(change.from.as_ref(), -1, &mut set.counts);
            group.add(change.to.as_ref(), 1, &mut set.counts);
        }
    }
    set.own_runs(no, change.to.as_ref());
    set.owners.insert(no, change.to);
    write(set, tx).await
}

/// Relies on the index tasks_flow_ordinal.
pub(super) static UPDATE_OWNERS: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "UPDATE tasks SET owner = v.column2 FROM (",
        2,
        ") AS v WHERE tasks.flow_no = v.column1",
    )
    .with_each("UPDATE tasks SET owner = ?2 WHERE flow_no = ?1")
});
/// Relies on the index run_status_flow.
pub(super) static UPDATE_RUN_OWNERS: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "UPDATE run_status SET owner = v.column2 FROM (",
        2,
        ") AS v WHERE run_status.flow_no = v.column1",
    )
    .with_each("UPDATE run_status SET owner = ?2 WHERE flow_no = ?1")
});
/// Relies on the index run_status_flow, then by key.
pub(super) static UPDATE_PAST_OWNERS: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "UPDATE run_past SET owner = v.column2 FROM (",
        2,
        ") AS v JOIN run_status s ON s.flow_no = v.column1 WHERE run_past.run_no = s.run_no",
    )
    .with_each(
        "UPDATE run_past SET owner = ?2
        WHERE run_no IN (SELECT s.run_no FROM run_status s WHERE s.flow_no = ?1)",
    )
});
