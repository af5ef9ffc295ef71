//! Writes what a batch changed: each row once, many rows in a statement.

use super::attempts::AttemptRow;
use super::held::{Task, Write};
use super::in_sql::CoverInSql;
use super::rows::{self, Placed};
use super::upsert::{insert, upsert};
use super::working_set::WorkingSet;
use crate::Error;
use std::sync::LazyLock;
use taskledger_domain::flow::StatusCounts;
use taskledger_domain::partition;
use taskledger_sql::{Columns, MultiRow, Tx};

/// Writes all changes of `set` and marks them as written. Cost: O(changed rows).
pub(super) async fn flush(set: &mut WorkingSet, tx: &mut Tx<'_>) -> Result<(), Error> {
    delete(set, tx).await?;
    write_tasks(set, tx).await?;
    super::owners::write(set, tx).await?;
    write_attempts(set, tx).await?;
    write_flows(set, tx).await?;
    write_runs(set, tx).await?;
    write_standings(set, tx).await?;
    super::outputs::write(set, tx).await?;
    set.counts.flush(tx).await
}

/// Gives a run to all stored tasks of its ranges and counts those that run something. `set` must be flushed.
/// Cost: O(covered tasks), in SQL.
pub(super) async fn cover(
    set: &mut WorkingSet,
    tx: &mut Tx<'_>,
    cover: &CoverInSql,
) -> Result<(), Error> {
    let Some(flow_no) = set.flows.get(&cover.flow).map(|flow| flow.no) else {
        return Ok(());
    };
    let run = cover.run.run_id;
    COVER
        .execute(tx, &cover.run.covers, |(first, last), args| {
            args.id(run.0);
            args.int(flow_no);
            args.int(i64::from(*first));
            args.int(i64::from(*last));
        })
        .await?;
    let mut args = tx.args();
    args.int(flow_no);
    args.id(run.0);
    let found = tx.fetch_all(COVERED, args).await?;
    let mut counts = StatusCounts::default();
    for row in &found {
        let mut c = Columns::of(row);
        let status = c.status()?;
        *super::flows::count_mut(&mut counts, status) = c.number()?;
    }
    set.covered_in_sql(cover, counts);
    Ok(())
}

async fn delete(set: &mut WorkingSet, tx: &mut Tx<'_>) -> Result<(), Error> {
    let deleted = std::mem::take(&mut set.deleted);
    for statement in [
        &*DELETE_TASKS,
        &*DELETE_BODIES,
        &*super::labels::DELETE,
        &*DELETE_ATTEMPTS,
    ] {
        statement
            .execute(tx, &deleted, |no, args| args.int(*no))
            .await?;
    }
    Ok(())
}

async fn write_tasks(set: &mut WorkingSet, tx: &mut Tx<'_>) -> Result<(), Error> {
    let changed = std::mem::take(&mut set.changed);
    let of = |write: Write| -> Vec<&Placed> {
        changed
            .iter()
            .filter_map(|id| set.tasks.get(id))
            .filter(|task| task.write == write)
            .map(|task| &task.placed)
            .collect()
    };
    let created = of(Write::New);
    INSERT_TASKS
        .execute(tx, &created, |p, args| {
            args.int(p.no());
            rows::bind_figures(p, args);
            rows::bind_state(p, args);
            rows::bind_definition(p, args);
            rows::bind_identity(p, args);
        })
        .await?;
    INSERT_BODIES
        .execute(tx, &created, |p, args| {
            args.int(p.no());
            rows::bind_body(p, args);
        })
        .await?;
    UPDATE_FIGURES
        .execute(tx, &of(Write::Figures), |p, args| {
            args.int(p.no());
            rows::bind_figures(p, args);
        })
        .await?;
    UPDATE_STATE
        .execute(tx, &of(Write::State), |p, args| {
            args.int(p.no());
            rows::bind_figures(p, args);
            rows::bind_state(p, args);
        })
        .await?;
    UPDATE_DEFINITION
        .execute(tx, &of(Write::Definition), |p, args| {
            args.int(p.no());
            rows::bind_figures(p, args);
            rows::bind_state(p, args);
            rows::bind_definition(p, args);
        })
        .await?;
    let bodies = |wanted: fn(&Task) -> bool| -> Vec<&Placed> {
        changed
            .iter()
            .filter_map(|id| set.tasks.get(id))
            .filter(|task| task.write != Write::New && wanted(task))
            .map(|task| &task.placed)
            .collect()
    };
    UPDATE_DEPENDENCIES
        .execute(tx, &bodies(|task| task.dependencies_changed), |p, args| {
            args.int(p.no());
            rows::bind_dependencies(p, args);
        })
        .await?;
    UPDATE_SPECIFICATIONS
        .execute(tx, &bodies(|task| task.specification_changed), |p, args| {
            args.int(p.no());
            rows::bind_specification(p, args);
        })
        .await?;
    super::labels::write(set, &changed, tx).await?;
    for id in &changed {
        if let Some(task) = set.tasks.get_mut(id) {
            task.write = Write::Nothing;
            task.dependencies_changed = false;
            task.specification_changed = false;
            task.labels_changed = false;
            task.placed.row.forget_body();
        }
    }
    Ok(())
}

async fn write_attempts(set: &mut WorkingSet, tx: &mut Tx<'_>) -> Result<(), Error> {
    let attempts: Vec<((i64, u32), AttemptRow)> = set.attempts.drain().collect();
    UPSERT_ATTEMPTS
        .execute(tx, &attempts, |((task_no, attempt), row), args| {
            args.int(*task_no);
            args.int(i64::from(*attempt));
            row.bind(args);
        })
        .await?;
    Ok(())
}

async fn write_flows(set: &mut WorkingSet, tx: &mut Tx<'_>) -> Result<(), Error> {
    let (mut written, mut gone, mut due, mut closed) = (vec![], vec![], vec![], vec![]);
    let (mut rootless, mut forgotten) = (vec![], vec![]);
    for id in std::mem::take(&mut set.changed_flows) {
        let Some(flow) = set.flows.get_mut(&id) else {
            continue;
        };
        flow.changed = false;
        let wanted = if flow.open_runs == 0 {
            None
        } else if flow.only_waits() {
            let mut args = tx.args();
            args.int(flow.no);
            let row = tx.fetch_one(NEXT_ATTEMPT, args).await?;
            Columns::of(&row).opt_int()?
        } else {
            Some(0)
        };
        if wanted != flow.due_written {
            flow.due_written = wanted;
            match wanted {
                Some(at) => due.push((flow.no, flow.id, at)),
                None => closed.push(flow.no),
            }
        }
        if flow.is_gone() {
            gone.push((flow.id, flow.no));
            if flow.rootless {
                forgotten.push(flow.id);
            }
        } else {
            written.push(flow.id);
            if flow.rootless {
                rootless.push((flow.id, flow.no));
            }
        }
    }
    let written: Vec<_> = written.iter().filter_map(|id| set.flows.get(id)).collect();
    UPSERT_FLOWS
        .execute(tx, &written, |flow, args| flow.bind(args))
        .await?;
    UPSERT_OPEN_RUNS
        .execute(tx, &due, |(no, flow, at), args| {
            args.int(*no);
            args.id(flow.0);
            args.int(i64::from(partition(*flow)));
            args.int(*at);
        })
        .await?;
    DELETE_OPEN_RUNS
        .execute(tx, &closed, |no, args| args.int(*no))
        .await?;
    DELETE_FLOWS
        .execute(tx, &gone, |(_, no), args| args.int(*no))
        .await?;
    UPSERT_ROOTLESS
        .execute(tx, &rootless, |(flow, no), args| {
            args.id(flow.0);
            args.int(*no);
        })
        .await?;
    DELETE_ROOTLESS
        .execute(tx, &forgotten, |flow, args| args.id(flow.0))
        .await?;
    for (flow, _) in &gone {
        set.flows.remove(flow);
        set.flow_left = true;
    }
    Ok(())
}

async fn write_runs(set: &mut WorkingSet, tx: &mut Tx<'_>) -> Result<(), Error> {
    let mut changed = std::mem::take(&mut set.changed_runs);
    changed.sort_unstable();
    changed.dedup();
    let changed: Vec<_> = changed.iter().filter_map(|id| set.runs.get(id)).collect();
    UPSERT_RUNS
        .execute(tx, &changed, |run, args| run.bind(args))
        .await?;
    Ok(())
}

async fn write_standings(set: &mut WorkingSet, tx: &mut Tx<'_>) -> Result<(), Error> {
    let mut changed = std::mem::take(&mut set.changed_standings);
    changed.sort_unstable();
    changed.dedup();
    let changed: Vec<_> = changed.iter().filter_map(|id| set.runs.get(id)).collect();
    UPSERT_STANDINGS
        .execute(tx, &changed, |run, args| run.standing.bind(run.no, args))
        .await?;
    let past = std::mem::take(&mut set.past_statuses);
    INSERT_PAST
        .execute(tx, &past, |status, args| status.bind(args))
        .await?;
    let said: Vec<_> = std::mem::take(&mut set.said).into_iter().collect();
    UPSERT_SAID
        .execute(tx, &said, |((run_no, version), said), args| {
            args.int(*run_no);
            args.position(*version);
            said.bind(args);
        })
        .await?;
    Ok(())
}

/// `UPDATE .. FROM (VALUES ..)`: the rows drive, each table row is found by its key.
fn update(table: &str, columns: &[&[&str]]) -> MultiRow {
    let columns = columns.concat();
    let set: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(i, name)| format!("{name} = v.column{}", i + 2))
        .collect();
    let numbered: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(i, name)| format!("{name} = ?{}", i + 2))
        .collect();
    MultiRow::new(
        &format!("UPDATE {table} SET {} FROM (", set.join(", ")),
        columns.len() + 1,
        &format!(") AS v WHERE {table}.created_position = v.column1"),
    )
    .with_each(&format!(
        "UPDATE {table} SET {} WHERE created_position = ?1",
        numbered.join(", ")
    ))
}

fn delete_by(table: &str, key: &str) -> MultiRow {
    MultiRow::new(&format!("DELETE FROM {table} WHERE {key} IN ("), 1, ")")
}

const KEY: [&str; 1] = ["created_position"];

static INSERT_TASKS: LazyLock<MultiRow> = LazyLock::new(|| {
    insert(
        "tasks",
        &[
            &KEY,
            &rows::FIGURES,
            &rows::STATE,
            &rows::DEFINITION,
            &rows::IDENTITY,
        ],
        "",
    )
});
static INSERT_BODIES: LazyLock<MultiRow> = LazyLock::new(|| {
    let columns = ["dependencies", "inputs", "schemas", "params"];
    insert("task_bodies", &[&KEY, &columns], "")
});
static UPDATE_FIGURES: LazyLock<MultiRow> = LazyLock::new(|| update("tasks", &[&rows::FIGURES]));
static UPDATE_STATE: LazyLock<MultiRow> =
    LazyLock::new(|| update("tasks", &[&rows::FIGURES, &rows::STATE]));
static UPDATE_DEFINITION: LazyLock<MultiRow> =
    LazyLock::new(|| update("tasks", &[&rows::FIGURES, &rows::STATE, &rows::DEFINITION]));
static UPDATE_DEPENDENCIES: LazyLock<MultiRow> =
    LazyLock::new(|| update("task_bodies", &[&["dependencies"]]));
static UPDATE_SPECIFICATIONS: LazyLock<MultiRow> =
    LazyLock::new(|| update("task_bodies", &[&["inputs", "schemas", "params"]]));
static DELETE_TASKS: LazyLock<MultiRow> = LazyLock::new(|| delete_by("tasks", "created_position"));
static DELETE_BODIES: LazyLock<MultiRow> =
    LazyLock::new(|| delete_by("task_bodies", "created_position"));
static DELETE_ATTEMPTS: LazyLock<MultiRow> = LazyLock::new(|| delete_by("attempts", "task_no"));
static UPSERT_ATTEMPTS: LazyLock<MultiRow> = LazyLock::new(|| {
    upsert(
        "attempts",
        "task_no, attempt",
        &[
            "task_no",
            "attempt",
            "run_id",
            "started_at",
            "ended_at",
            "outcome",
            "reason",
            "error",
        ],
    )
});
static UPSERT_FLOWS: LazyLock<MultiRow> = LazyLock::new(|| {
    upsert(
        "flow_summary",
        "flow_no",
        &[
            "flow_no",
            "flow_id",
            "pending",
            "in_progress",
            "completed",
            "failed",
            "cancelled",
            "progress_sum",
            "waiting",
            "deadlines",
            "open_runs",
            "last_position",
            "rootless",
        ],
    )
});
static DELETE_FLOWS: LazyLock<MultiRow> = LazyLock::new(|| delete_by("flow_summary", "flow_no"));
static UPSERT_ROOTLESS: LazyLock<MultiRow> =
    LazyLock::new(|| upsert("rootless_flows", "flow_id", &["flow_id", "flow_no"]));
static DELETE_ROOTLESS: LazyLock<MultiRow> =
    LazyLock::new(|| delete_by("rootless_flows", "flow_id"));
static UPSERT_OPEN_RUNS: LazyLock<MultiRow> = LazyLock::new(|| {
    upsert(
        "open_runs",
        "flow_no",
        &["flow_no", "flow_id", "partition", "next_due_at"],
    )
});
static DELETE_OPEN_RUNS: LazyLock<MultiRow> = LazyLock::new(|| delete_by("open_runs", "flow_no"));
static UPSERT_RUNS: LazyLock<MultiRow> = LazyLock::new(|| {
    upsert(
        "runs",
        "run_no",
        &[
            "run_no",
            "run_id",
            "flow_id",
            "task_id",
            "kind",
            "state",
            "pending",
            "in_progress",
            "completed",
            "failed",
            "cancelled",
            "started_at",
            "ended_at",
        ],
    )
});

static UPSERT_STANDINGS: LazyLock<MultiRow> = LazyLock::new(|| {
    upsert(
        "run_status",
        "run_no",
        &[
            "run_no",
            "flow_no",
            "version",
            "has_origin",
            "owner",
            "context",
            "stage",
            "status_at",
            "status_position",
            "waiting",
        ],
    )
});
static INSERT_PAST: LazyLock<MultiRow> = LazyLock::new(|| {
    let columns = [
        "run_no",
        "left_position",
        "owner",
        "stage",
        "status_at",
        "status_position",
        "asked",
    ];
    insert("run_past", &[&columns], "")
});
static UPSERT_SAID: LazyLock<MultiRow> = LazyLock::new(|| {
    upsert(
        "run_said",
        "run_no, version",
        &["run_no", "version", "kind", "ordinal", "waits"],
    )
});

/// Relies on the index tasks_flow_ordinal.
static COVER: LazyLock<MultiRow> = LazyLock::new(|| {
    MultiRow::new(
        "UPDATE tasks SET run_id = v.column1 FROM (",
        4,
        ") AS v WHERE tasks.flow_no = v.column2 AND tasks.ordinal BETWEEN v.column3 AND v.column4",
    )
});
/// Relies on the index tasks_flow_ordinal.
const COVERED: &str = "SELECT status, COUNT(*)
    FROM tasks
    WHERE flow_no = $1 AND run_id = $2 AND method IS NOT NULL
    GROUP BY status";
/// Relies on the index tasks_waiting.
const NEXT_ATTEMPT: &str = "SELECT MIN(next_attempt_at)
    FROM tasks
    WHERE flow_no = $1 AND next_attempt_at IS NOT NULL";

#[cfg(test)]
mod tests;
