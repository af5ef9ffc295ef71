//! `taskledger workers methods`

use super::{Output, Params, Request};
use crate::output::{Column, Style, Text, list, member, show_table, time};
use serde_json::Value;
use std::io;

pub(super) fn request() -> Request {
    Request {
        method: "workers.methods",
        params: Params::default().build(),
        show,
    }
}

const COLUMNS: [Column<'static>; 8] = [
    Column::short("METHOD"),
    Column::whole("DECLARED").extra(),
    Column::whole("WORKERS"),
    Column::whole("RUNNING"),
    Column::whole("LIMIT").extra(),
    Column::whole("WAITING"),
    Column::whole("LAST ASKED"),
    Column::wraps("DESCRIPTION"),
];

fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    let rows: Vec<_> = list(result, "methods")
        .iter()
        .map(|it| row(it, out))
        .collect();
    show_table(&COLUMNS, &rows, out)
}

fn row(method: &Value, out: &Output) -> Vec<Text> {
    let is_declared = method.get("declared").and_then(Value::as_bool) == Some(true);
    let text = |name| Text::from(member(method, name));
    vec![
        text("method"),
        Text::from(if is_declared { "yes" } else { "no" }),
        text("workers"),
        text("running"),
        text("limit"),
        text("waiting"),
        time(out, method, "last_asked_at"),
        Text::of(Style::Dim, member(method, "description")),
    ]
}
