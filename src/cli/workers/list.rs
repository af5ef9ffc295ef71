//! `taskledger workers list`

use super::{Output, Params, Request};
use crate::cli::output::{member, printable, table};
use serde_json::Value;
use std::io;

pub(super) fn request() -> Request {
    Request {
        method: "workers.list",
        params: Params::default().build(),
        show,
    }
}

fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    let workers = result.get("workers").and_then(Value::as_array);
    let rows: Vec<Vec<String>> = workers.into_iter().flatten().map(row).collect();
    out.lines(table(
        &[
            "WORKER",
            "STATE",
            "HELD",
            "CONNECTION",
            "SINCE",
            "LAST SEEN",
            "METHODS",
        ],
        &rows,
    ))
}

fn row(worker: &Value) -> Vec<String> {
    let methods = worker.get("methods").and_then(Value::as_array);
    let methods: Vec<&str> = methods
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let is_draining = worker.get("draining").and_then(Value::as_bool) == Some(true);
    let held = member(worker, "held");
    let state = match (is_draining, held.as_str()) {
        (true, "0") => "drained",
        (true, _) => "draining",
        (false, "0") => "idle",
        (false, _) => "working",
    };
    vec![
        member(worker, "worker"),
        state.to_owned(),
        held.clone(),
        member(worker, "connection"),
        member(worker, "since"),
        member(worker, "last_seen_at"),
        printable(&methods.join(",")),
    ]
}
