//! `docs/workflow-obligations.md` names every obligation of RFC-0024 once, and only tests that exist.

use std::collections::BTreeMap;
use std::path::Path;
use taskledger_testkit::evidence;

const TABLE: &str = include_str!("../../../docs/workflow-obligations.md");
/// Obligations, numbered from 1.
const COUNT: usize = 32;

/// A row: its first cell, what is kept, and the tests that show it.
#[derive(Debug, PartialEq)]
struct Row<'t> {
    name: &'t str,
    kept: &'t str,
    /// A file, and names of functions in it.
    tests: Vec<(&'t str, Vec<&'t str>)>,
}

/// The rows of all tables, without their heads.
fn rows(text: &str) -> Vec<Row<'_>> {
    let lines = text.lines().filter(|line| line.starts_with("| "));
    let rows = lines.filter_map(|line| {
        let line = line.trim_matches('|');
        let (rest, shown) = line.rsplit_once(" | ")?;
        let (name, kept) = rest.split_once(" | ").unwrap_or(("", rest));
        let is_head = shown.trim() == "shown by";
        (!is_head).then(|| Row {
            name: name.trim(),
            kept: kept.trim(),
            tests: evidence::named(shown),
        })
    });
    rows.collect()
}

/// What is wrong with the rows, given what each file holds.
fn faults(rows: &[Row<'_>], source: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut sources = BTreeMap::new();
    let numbered: Vec<&str> = rows
        .iter()
        .map(|row| row.name)
        .filter(|it| !it.is_empty())
        .collect();
    let expected: Vec<String> = (1..=COUNT).map(|i| format!("N{i}")).collect();
    if numbered != expected {
        faults.push(format!("the rows are {numbered:?}"));
    }
    for row in rows {
        let tests: usize = row.tests.iter().map(|(_, names)| names.len()).sum();
        if row.kept.is_empty() || tests == 0 {
            faults.push(format!("`{} {}` says too little", row.name, row.kept));
        }
        for (file, names) in &row.tests {
            let source = sources.entry(*file).or_insert_with(|| source(file));
            let Some(source) = source else {
                faults.push(format!("there is no file `{file}`"));
                continue;
            };
            let gone = names
                .iter()
                .filter(|name| evidence::body(source, name).is_none());
            faults.extend(gone.map(|name| format!("`{file}` has no test `{name}`")));
        }
    }
    faults
}

#[test]
fn every_obligation_is_in_the_table_and_every_test_of_it_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let source = |file: &str| std::fs::read_to_string(root.join(file)).ok();
    let faults = faults(&rows(TABLE), source);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_table_that_has_rotten_is_found() {
    let row = |i: usize| format!("| N{i} | kept `x` | `a.rs`: `one`, `two`; `b.rs`: `three` |\n");
    let sound: String = (1..=COUNT).map(row).collect();
    let a = "#[test]\nfn one() {}\n#[tokio::test(start_paused = true)]\nasync fn two() {}\nfn four() {}\n";
    let b = "proptest! {\n    /// Why.\n    #[test]\n    /// More.\n    fn three(x in any::<u8>()) {}\n    // fn five() {}\n}\n";
    let source = |file: &str| match file {
        "a.rs" => Some(a.to_owned()),
        "b.rs" => Some(b.to_owned()),
        _ => None,
    };
    let found = |text: &str| faults(&rows(text), source);
    assert_eq!(found(&sound), [""; 0]);
    assert_eq!(found(&format!("| | kept | shown by |\n{sound}")), [""; 0]);
    for (from, to, expected) in [
        ("`one`", "`on`", "`a.rs` has no test `on`"),
        ("`one`", "`four`", "`a.rs` has no test `four`"),
        ("`three`", "`five`", "`b.rs` has no test `five`"),
        ("`b.rs`", "`c.rs`", "there is no file `c.rs`"),
        ("kept `x`", "", "`N1 ` says too little"),
        (
            ": `one`, `two`; `b.rs`: `three`",
            "",
            "`N1 kept `x`` says too little",
        ),
    ] {
        let found = found(&sound.replacen(from, to, 1));
        assert_eq!(found, [expected], "{from} -> {to}");
    }
    let without = sound.replacen("| N7 |", "| N8 |", 1);
    assert!(found(&without)[0].starts_with("the rows are "));
}
