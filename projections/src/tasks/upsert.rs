//! Statements that write many rows.

use taskledger_sql::MultiRow;

pub(super) fn insert(table: &str, columns: &[&[&str]], tail: &str) -> MultiRow {
    let columns = columns.concat();
    let head = format!("INSERT INTO {table} ({})", columns.join(", "));
    MultiRow::new(&head, columns.len(), tail)
}

pub(super) fn upsert(table: &str, key: &str, columns: &[&str]) -> MultiRow {
    let set: Vec<String> = columns
        .iter()
        .filter(|name| !key.split(", ").any(|k| k == **name))
        .map(|name| format!("{name} = excluded.{name}"))
        .collect();
    let tail = format!("ON CONFLICT ({key}) DO UPDATE SET {}", set.join(", "));
    insert(table, &[columns], &tail)
}
