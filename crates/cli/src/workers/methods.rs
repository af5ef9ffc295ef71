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

/// The columns, and that of the owner if there are several: every row says then for whose tasks it is declared, those
/// that are shared nothing.
const COLUMNS: [Column<'static>; 9] = [
    Column::short("METHOD"),
    Column::short("OWNER"),
    Column::whole("DECLARED").extra(),
    Column::whole("WORKERS"),
    Column::whole("RUNNING"),
    Column::whole("LIMIT").extra(),
    Column::whole("WAITING"),
    Column::whole("LAST ASKED"),
    Column::wraps("DESCRIPTION"),
];

fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    let methods = list(result, "methods");
    let mut owners = methods.iter().map(|it| it.get("owner"));
    let first = owners.next();
    let is_of_several = owners.any(|owner| Some(owner) != first);
    let rows = methods.iter().map(|it| row(it, out));
    if is_of_several {
        return show_table(&COLUMNS, &rows.collect::<Vec<_>>(), out);
    }
    let without = |mut row: Vec<Text>| {
        row.remove(OWNER);
        row
    };
    let mut columns = COLUMNS.to_vec();
    columns.remove(OWNER);
    show_table(&columns, &rows.map(without).collect::<Vec<_>>(), out)
}

/// The place of the owner among the columns.
const OWNER: usize = 1;

fn row(method: &Value, out: &Output) -> Vec<Text> {
    let is_declared = method.get("declared").and_then(Value::as_bool) == Some(true);
    let text = |name| Text::from(member(method, name));
    vec![
        text("method"),
        text("owner"),
        Text::from(if is_declared { "yes" } else { "no" }),
        text("workers"),
        text("running"),
        text("limit"),
        text("waiting"),
        time(out, method, "last_asked_at"),
        Text::of(Style::Dim, member(method, "description")),
    ]
}
