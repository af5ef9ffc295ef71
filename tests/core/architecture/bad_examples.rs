//! Small pieces of source that break a rule: what looks for them must find them.

use super::{code, misnumbered, present, silent, wrong_lengths};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

fn file(path: &str, text: &str) -> (String, String) {
    (path.to_owned(), text.to_owned())
}

#[test]
fn comments_and_unit_tests_are_no_code() {
    let text = "//! SELECT\nfn f() {} // stays\n    // UPDATE\n\n#[cfg(test)]\nmod tests {\n    x.unwrap()\n}\n";
    let found = code(text);
    assert!(found.contains("fn f() {}"), "{found}");
    for gone in ["SELECT", "UPDATE", "unwrap"] {
        assert!(!found.contains(gone), "{found}");
    }
    let declared = "#[cfg(test)]\nmod tests;\nfn f() { todo!() }\n";
    assert!(
        code(declared).contains("todo!"),
        "only modules end the code"
    );
}

#[test]
fn a_banned_word_is_found_in_code_only_and_outside_of_exceptions() {
    let files = [
        file("src/a.rs", "// new_v4\nlet id = Uuid::new_v4();\n"),
        file("src/clock/b.rs", "Uuid::new_v4()\n"),
        file("src/a/tests.rs", "Uuid::new_v4()\n"),
    ];
    let found = present(&files, &["new_v4"], &[("src/clock/", "it is the clock")]);
    assert_eq!(found, ["src/a.rs:2: `new_v4`"]);
}

#[test]
fn a_long_file_and_a_needless_exception_are_found() {
    let long = "x\n".repeat(801);
    let files = [
        file("a.rs", &long),
        file("b.rs", "x\n"),
        file("c.rs", &long),
    ];
    let found = wrong_lengths(&files, &[("b.rs", ""), ("c.rs", ""), ("d.rs", "")]);
    assert_eq!(
        found,
        [
            "a.rs has 801 lines, at most 800 are allowed",
            "b.rs is short enough now; it needs no exception",
            "d.rs has an exception and does not exist",
        ]
    );
}

#[test]
fn a_module_without_a_comment_is_found() {
    let files = [
        file("a.rs", "//! What it is for.\n"),
        file("b.rs", "// x\n"),
    ];
    assert_eq!(silent(&files), ["b.rs"]);
}

#[test]
fn a_gap_and_a_difference_of_migrations_are_found() {
    let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
    let found: BTreeMap<PathBuf, BTreeSet<String>> = [
        ("sqlite/log", names(&["0001_a.sql", "0003_b.sql"])),
        ("postgres/log", names(&["0001_a.sql"])),
        ("sqlite/rows", names(&["0001_a.sql"])),
    ]
    .map(|(folder, names)| (PathBuf::from(folder), names))
    .into();
    assert_eq!(
        misnumbered(&found),
        [
            "sqlite/log/0003_b.sql is not number 2",
            "postgres/log differs from sqlite/log",
        ]
    );
}
