//! The columns of a task row: one list for reading and for writing.

use crate::task_row::dependencies_text;
use crate::{Error, TaskRow};
use std::sync::Arc;
use taskledger_domain::{FlowId, RunId, TaskId};
use taskledger_sql::{Args, Columns, Row, json};

/// Written when only figures moved: progress, and the sums over the children. No index holds them.
pub(super) const FIGURES: [&str; 5] = [
    "progress",
    "child_count",
    "child_progress_sum",
    "updated_at",
    "last_position",
];
/// Written, with the figures, when an attempt or a run changed the task.
pub(super) const STATE: [&str; 9] = [
    "status",
    "result",
    "error",
    "started_at",
    "completed_at",
    "next_attempt_at",
    "attempt",
    "run_id",
    "suspension",
];
/// Written, with all of the above, when somebody edited the task.
pub(super) const DEFINITION: [&str; 9] = [
    "parent_id",
    "parent_no",
    "user_id",
    "name",
    "priority",
    "method",
    "start_at",
    "deadline",
    "labels",
];
/// Written once, with all of the above.
pub(super) const IDENTITY: [&str; 6] = [
    "id",
    "flow_id",
    "flow_no",
    "ordinal",
    "created_at",
    // Written again, for all tasks of a flow at once, when its root gets another user.
    "owner",
];

/// The columns of a row without its body, for [`read`]; `t` is the table's alias.
pub(crate) const COLUMNS: &str = "t.created_position, t.flow_no, t.parent_no,
    t.id, t.flow_id, t.ordinal, t.parent_id, t.user_id, t.name, t.status, t.priority,
    t.method, t.start_at, t.deadline, t.progress, t.child_count, t.child_progress_sum, t.attempt,
    t.run_id, t.next_attempt_at, t.created_at, t.started_at, t.updated_at, t.completed_at,
    t.last_position, t.error, t.result, t.owner, t.suspension, t.labels";
/// The columns of the body, for [`read_with_body`]; `b` is the table's alias.
pub(crate) const BODY_COLUMNS: &str = "b.dependencies, b.inputs, b.schemas, b.params";

/// A row and its place in the tables.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) flow_no: i64,
    pub(crate) parent_no: Option<i64>,
    pub(crate) row: TaskRow,
}

impl Placed {
    /// Its key.
    pub(crate) fn no(&self) -> i64 {
        taskledger_sql::int(self.row.created_position)
    }
}

/// Reads [`COLUMNS`]; the body stays empty.
pub(crate) fn read(row: &Row) -> Result<Placed, Error> {
    head(&mut Columns::of(row))
}

/// Reads [`COLUMNS`] and then [`BODY_COLUMNS`].
pub(crate) fn read_with_body(row: &Row) -> Result<Placed, Error> {
    let mut c = Columns::of(row);
    let mut placed = head(&mut c)?;
    let dependencies = c.word()?;
    if dependencies != "[]" {
        placed.row.dependencies = json(dependencies)?;
    }
    placed.row.inputs = c.payload()?;
    placed.row.schemas = c.opt_payload()?;
    placed.row.params = c.opt_payload()?;
    Ok(placed)
}

fn head(c: &mut Columns<'_>) -> Result<Placed, Error> {
    let created_position = c.number()?;
    let flow_no = c.int()?;
    let parent_no = c.opt_int()?;
    let row = TaskRow {
        created_position,
        id: TaskId(c.id()?),
        flow_id: FlowId(c.id()?),
        ordinal: c.number()?,
        parent_id: c.opt_id()?.map(TaskId),
        user_id: c.opt_text()?,
        name: c.text()?,
        status: c.status()?,
        priority: c.priority()?,
        method: c.opt_text()?,
        start_at: c.opt_time()?,
        deadline: c.opt_time()?,
        progress: c.progress()?,
        child_count: c.number()?,
        child_progress_sum: c.number()?,
        attempt: c.number()?,
        run_id: c.opt_id()?.map(RunId),
        next_attempt_at: c.opt_time()?,
        created_at: c.time()?,
        started_at: c.opt_time()?,
        updated_at: c.time()?,
        completed_at: c.opt_time()?,
        position: c.number()?,
        error: c.opt_text()?,
        result: c.opt_payload()?,
        owner: c.opt_text()?,
        suspension: c.opt_payload()?,
        labels: c.opt_word()?.map(json).transpose()?.unwrap_or_default(),
        inputs: crate::task_row::empty_payload(),
        schemas: None,
        params: None,
        dependencies: Vec::new(),
    };
    Ok(Placed {
        flow_no,
        parent_no,
        row,
    })
}

/// Gives the values of [`FIGURES`].
pub(super) fn bind_figures(p: &Placed, args: &mut Args) {
    let r = &p.row;
    args.int(i64::from(r.progress.millionths()));
    args.int(i64::from(r.child_count));
    args.position(r.child_progress_sum);
    args.time(r.updated_at);
    args.position(r.position);
}

/// Gives the values of [`STATE`].
pub(super) fn bind_state(p: &Placed, args: &mut Args) {
    let r = &p.row;
    args.name(r.status.as_str());
    args.payload(r.result.as_ref());
    args.text(r.error.clone());
    args.time(r.started_at);
    args.time(r.completed_at);
    args.time(r.next_attempt_at);
    args.int(i64::from(r.attempt));
    args.opt_id(r.run_id.map(|id| id.0));
    args.payload(r.suspension.as_ref());
}

/// Gives the values of [`DEFINITION`].
pub(super) fn bind_definition(p: &Placed, args: &mut Args) {
    let r = &p.row;
    args.opt_id(r.parent_id.map(|id| id.0));
    args.int(p.parent_no);
    args.text(r.user_id.clone());
    args.text(Arc::clone(&r.name));
    args.int(i64::from(r.priority.get()));
    args.text(r.method.clone());
    args.time(r.start_at);
    args.time(r.deadline);
    args.text(r.labels.text().map(Arc::from));
}

/// Gives the values of [`IDENTITY`].
pub(super) fn bind_identity(p: &Placed, args: &mut Args) {
    let r = &p.row;
    args.id(r.id.0);
    args.id(r.flow_id.0);
    args.int(p.flow_no);
    args.int(i64::from(r.ordinal));
    args.time(r.created_at);
    args.text(r.owner.clone());
}

/// Gives dependencies, inputs, schemas and params.
pub(super) fn bind_body(p: &Placed, args: &mut Args) {
    bind_dependencies(p, args);
    bind_specification(p, args);
}

/// Gives the dependency list.
pub(super) fn bind_dependencies(p: &Placed, args: &mut Args) {
    args.owned(dependencies_text(&p.row.dependencies));
}

/// Gives inputs, schemas and params.
pub(super) fn bind_specification(p: &Placed, args: &mut Args) {
    args.payload(Some(&p.row.inputs));
    args.payload(p.row.schemas.as_ref());
    args.payload(p.row.params.as_ref());
}
