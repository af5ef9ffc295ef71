//! `taskledger workers methods`

use super::{Output, Params, Request};
use crate::cli::output::{member, table};
use serde_json::Value;
use std::io;

pub(super) fn request() -> Request {
    Request {
        method: "workers.methods",
        params: Params::default().build(),
        show,
    }
}

fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    let methods = result.get("methods").and_then(Value::as_array);
    let rows: Vec<Vec<String>> = methods.into_iter().flatten().map(row).collect();
    let head = [
        "METHOD",
        "DECLARED",
        "WORKERS",
        "RUNNING",
        "LIMIT",
        "WAITING",
        "LAST ASKED",
        "DESCRIPTION",
    ];
    out.lines(table(&head, &rows))
}

fn row(method: &Value) -> Vec<String> {
    let is_declared = method.get("declared").and_then(Value::as_bool) == Some(true);
    vec![
        member(method, "method"),
        if is_declared { "yes" } else { "no" }.to_owned(),
        member(method, "workers"),
        member(method, "running"),
        member(method, "limit"),
        member(method, "waiting"),
        member(method, "last_asked_at"),
        member(method, "description"),
    ]
}
