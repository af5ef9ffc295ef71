//! `taskledger workers list`

use super::{Output, Params, Request};
use crate::output::{Column, Text, list, member, show_table, style, time, words};
use serde_json::Value;
use std::io;

pub(super) fn request() -> Request {
    Request {
        method: "workers.list",
        params: Params::default().build(),
        show,
    }
}

const COLUMNS: [Column<'static>; 7] = [
    Column::whole("WORKER"),
    Column::whole("STATE"),
    Column::whole("HELD"),
    Column::whole("CONNECTION").extra(),
    Column::whole("SINCE").extra(),
    Column::whole("LAST SEEN"),
    Column::wraps("METHODS"),
];

pub(crate) fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    let rows: Vec<_> = list(result, "workers")
        .iter()
        .map(|it| row(it, out))
        .collect();
    show_table(&COLUMNS, &rows, out)
}

fn row(worker: &Value, out: &Output) -> Vec<Text> {
    let is_draining = worker.get("draining").and_then(Value::as_bool) == Some(true);
    let held = member(worker, "held");
    let state = match (is_draining, held.as_str()) {
        (true, "0") => "drained",
        (true, _) => "draining",
        (false, "0") => "idle",
        (false, _) => "working",
    };
    // On a terminal they are broken at blanks.
    let between = if out.look().columns.is_some() {
        ", "
    } else {
        ","
    };
    vec![
        Text::from(member(worker, "worker")),
        Text::of(style(state), state),
        Text::from(held),
        Text::from(member(worker, "connection")),
        time(out, worker, "since"),
        time(out, worker, "last_seen_at"),
        Text::from(words(worker, "methods").replace(',', between)),
    ]
}
