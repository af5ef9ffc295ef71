//! The rows of `task_labels` by which tasks are found: two for each label.

use super::held::Write;
use super::working_set::WorkingSet;
use crate::Error;
use std::sync::{Arc, LazyLock};
use taskledger_domain::TaskId;
use taskledger_sql::{MultiRow, Tx};

/// Writes the labels of those of the `changed` tasks that are new or have got others.
/// Cost: O(labels of these).
pub(super) async fn write(
    set: &WorkingSet,
    changed: &[TaskId],
    tx: &mut Tx<'_>,
) -> Result<(), Error> {
    let (mut stored, mut terms) = (Vec::new(), Vec::new());
    for task in changed.iter().filter_map(|id| set.tasks.get(id)) {
        let no = task.placed.no();
        if task.write != Write::New {
            if !task.labels_changed {
                continue;
            }
            stored.push(no);
        }
        let row = &task.placed.row;
        terms.extend(row.labels.terms().map(|term| (term, no, row.owner.clone())));
    }
    DELETE
        .execute(tx, &stored, |no, args| args.int(*no))
        .await?;
    INSERT
        .execute(tx, &terms, |(term, no, owner), args| {
            args.text(Arc::<str>::from(term.as_str()));
            args.int(*no);
            args.text(owner.clone());
        })
        .await
        .map_err(Error::from)
}

static INSERT: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "INSERT INTO task_labels (term, task_no, label_owner)",
        3,
        "",
    )
});
/// By the index task_labels_task, on PostgreSQL by primary key.
pub(super) static DELETE: LazyLock<MultiRow> =
    LazyLock::new(|| MultiRow::new("DELETE FROM task_labels WHERE task_no IN (", 1, ")"));
/// By the indexes tasks_flow_ordinal and task_labels_task.
pub(super) static UPDATE_OWNERS: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "UPDATE task_labels SET label_owner = v.column2 FROM tasks t, (",
        2,
        ") AS v WHERE t.flow_no = v.column1 AND task_labels.task_no = t.created_position",
    )
    .with_each(
        "UPDATE task_labels SET label_owner = ?2 WHERE task_no IN (
            SELECT t.created_position FROM tasks t WHERE t.flow_no = ?1)",
    )
});
