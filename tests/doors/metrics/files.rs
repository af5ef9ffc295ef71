//! The guide, the board and the alerts use the names of the table, and the guide shows all of it.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use taskledger::metrics::table::{Kind, On, TABLE};

fn file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Names under which Prometheus keeps a row.
fn series() -> BTreeSet<String> {
    let of_row = TABLE.iter().flat_map(|row| {
        let suffixes: &[&str] = match row.kind {
            Kind::Histogram => &["_bucket", "_sum", "_count"],
            Kind::Counter | Kind::Gauge | Kind::Info => &[""],
        };
        suffixes
            .iter()
            .map(|suffix| format!("{}{suffix}", row.name))
    });
    of_row.collect()
}

/// Words of an expression that begin like a metric.
fn named(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let prefixes = ["taskledger_", "process_", "rpc_server_"];
    let is_name = |word: &&str| prefixes.iter().any(|prefix| word.starts_with(prefix));
    words.filter(is_name).map(str::to_owned).collect()
}

/// Labels in the selectors and groupings of an expression.
fn labels(expression: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for selector in expression.split('{').skip(1) {
        let selector = selector.split('}').next().unwrap();
        let labels = selector
            .split(',')
            .filter_map(|part| part.split(['=', '!']).next());
        found.extend(labels.map(|label| label.trim().to_owned()));
    }
    for grouping in expression.split("by (").skip(1) {
        let grouping = grouping.split(')').next().unwrap();
        found.extend(grouping.split(',').map(|label| label.trim().to_owned()));
    }
    found
}

fn assert_known(expression: &str) {
    let unknown: Vec<_> = named(expression).difference(&series()).cloned().collect();
    assert!(unknown.is_empty(), "{unknown:?} in {expression}");
    let mut known: BTreeSet<&str> = TABLE.iter().flat_map(|row| row.labels).copied().collect();
    known.extend(["le", "instance", "job"]);
    let labels = labels(expression);
    let unknown: Vec<_> = labels
        .iter()
        .filter(|l| !known.contains(l.as_str()))
        .collect();
    assert!(unknown.is_empty(), "labels {unknown:?} in {expression}");
}

fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value.as_str() {
                    Some(text) if name == "expr" || name == "query" => found.push(text.to_owned()),
                    _ => expressions(value, found),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| expressions(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn the_board_asks_for_nothing_that_a_server_does_not_show() {
    let board: Value = serde_json::from_str(&file("deploy/grafana/taskledger.json")).unwrap();
    let mut found = Vec::new();
    expressions(&board, &mut found);
    assert!(found.len() > 20, "{found:?}");
    found.iter().for_each(|expression| assert_known(expression));
}

#[test]
fn alerts_ask_for_nothing_that_a_server_does_not_show() {
    let text = file("deploy/prometheus/alerts.yaml");
    let expressions = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("expr: "));
    let expressions: Vec<_> = expressions.collect();
    assert!(expressions.len() >= 8, "{expressions:?}");
    for expression in &expressions {
        assert!(!named(expression).is_empty(), "{expression}");
        assert_known(expression);
    }
    let alerts = text
        .lines()
        .filter(|line| line.trim().starts_with("- alert: "));
    assert_eq!(alerts.count(), expressions.len());
}

#[test]
fn the_guide_shows_the_table_of_the_program() {
    let mut table = "| metric | kind | labels | meaning |\n|---|---|---|---|\n".to_owned();
    for row in TABLE {
        let labels: Vec<_> = row
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect();
        let on = match row.on {
            On::Every => "",
            On::Folder => " With a data folder only.",
            On::Database => " With a database only.",
            On::Tls => " With TLS only.",
            On::Expiring => " Absent if no valid token expires.",
        };
        writeln!(
            table,
            "| `{}` | {} | {} | {}{on} |",
            row.name,
            row.kind.as_str(),
            labels.join(" "),
            row.help
        )
        .unwrap();
    }
    let guide = file("docs/guides/metrics.md");
    assert!(
        guide.contains(&table),
        "docs/guides/metrics.md must contain this table:\n{table}"
    );
}
