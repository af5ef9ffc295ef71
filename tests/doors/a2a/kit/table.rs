//! `docs/reference/a2a-requirements.md` names every requirement once, and only tests that exist and show it where it
//! says.

use std::collections::BTreeMap;
use std::path::Path;
use taskledger_testkit::evidence;

const TABLE: &str = include_str!("../../../../docs/reference/a2a-requirements.md");
/// Obligations of this project, numbered from 1.
const OBLIGATIONS: usize = 53;
/// What a test calls that asks over all bindings.
const OVER_ALL: [&str; 6] = [
    "all(&",
    "all_as(",
    "over_rpc(",
    "answered(&agent",
    "grpc(&agent",
    "assert_foreign_is_absent(",
];
/// Tests of the matrix and of scopes, whose rows ask over all bindings.
const MATRIX: [&str; 2] = [
    "tests/doors/isolation/matrix.rs",
    "tests/doors/isolation/scopes.rs",
];

/// A row: its id, what stands between, and the tests that show it.
#[derive(Debug, PartialEq)]
struct Row<'t> {
    id: &'t str,
    said: Vec<&'t str>,
    /// A file, and names of functions in it.
    tests: Vec<(&'t str, Vec<&'t str>)>,
}

/// The rows of the tables whose last column is `shown by`.
fn rows(text: &str) -> Vec<Row<'_>> {
    let mut is_shown = false;
    let mut rows = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with("|-")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [id, said @ .., shown] = &cells[..] else {
            is_shown = false;
            continue;
        };
        if *shown == "shown by" {
            is_shown = true;
        } else if is_shown && line.starts_with("| ") {
            rows.push(Row {
                id,
                said: said.to_vec(),
                tests: evidence::named(shown),
            });
        }
    }
    rows
}

/// What is wrong with the rows, given what each file holds.
fn faults(rows: &[Row<'_>], source: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut sources = BTreeMap::new();
    let found: Vec<(&str, &str)> = rows
        .iter()
        .filter(|row| !row.id.starts_with("A2-"))
        .map(|row| (row.id, row.said[0]))
        .collect();
    if found != REQUIREMENTS {
        let odd = found.iter().zip(REQUIREMENTS).find(|(a, b)| *a != b);
        faults.push(format!(
            "the requirements are others: {} of them, {odd:?}",
            found.len()
        ));
    }
    let found = rows
        .iter()
        .map(|row| row.id)
        .filter(|id| id.starts_with("A2-"));
    if !found.eq((1..=OBLIGATIONS).map(|n| format!("A2-{n}"))) {
        faults.push("the obligations are others".to_owned());
    }
    for row in rows {
        let mut is_over_all = false;
        for (file, names) in &row.tests {
            let source = sources.entry(*file).or_insert_with(|| source(file));
            let Some(source) = source else {
                faults.push(format!("{}: there is no file `{file}`", row.id));
                continue;
            };
            if names.is_empty() {
                faults.push(format!("{}: no test of `{file}` is named", row.id));
            }
            for name in names {
                match evidence::body(source, name) {
                    Some(body) => {
                        is_over_all |=
                            MATRIX.contains(file) || OVER_ALL.iter().any(|it| body.contains(it));
                    }
                    None => faults.push(format!("{}: `{file}` has no test `{name}`", row.id)),
                }
            }
        }
        if row.said.get(1) == Some(&"all") && !is_over_all {
            faults.push(format!("{}: no test of it asks over all bindings", row.id));
        }
    }
    faults
}

#[test]
fn every_requirement_is_in_the_table_and_every_test_of_it_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = |file: &str| std::fs::read_to_string(root.join(file)).ok();
    let faults = faults(&rows(TABLE), source);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_table_that_has_rotten_is_found() {
    let mut sound = "| id | level | where | shown by |\n|---|---|---|---|\n".to_owned();
    for (id, level) in REQUIREMENTS {
        sound += &format!("| {id} | {level} | all | `a.rs`: `one`; `b.rs`: `two` |\n");
    }
    sound += "\n| id | kept | shown by |\n|---|---|---|\n";
    for n in 1..=OBLIGATIONS {
        sound += &format!("| A2-{n} | something | `b.rs`: `two` |\n");
    }
    let a = "#[tokio::test]\nasync fn one() {\n    all(&url)\n}\nfn three() {}\n";
    let b = "#[test]\n/// Why.\nfn two() {\n}\n";
    let source = |file: &str| match file {
        "a.rs" => Some(a.to_owned()),
        "b.rs" => Some(b.to_owned()),
        _ => None,
    };
    let found = |text: &str| faults(&rows(text), source);
    assert_eq!(found(&sound), [""; 0]);
    let first = REQUIREMENTS[0].0;
    for (from, to, expected) in [
        ("`one`", "`on`", format!("{first}: `a.rs` has no test `on`")),
        (
            "`one`",
            "`three`",
            format!("{first}: `a.rs` has no test `three`"),
        ),
        (
            "`b.rs`",
            "`c.rs`",
            format!("{first}: there is no file `c.rs`"),
        ),
        (
            "`a.rs`: `one`; ",
            "",
            format!("{first}: no test of it asks over all bindings"),
        ),
        (
            ": `one`",
            "",
            format!("{first}: no test of `a.rs` is named"),
        ),
    ] {
        let told = found(&sound.replacen(from, to, 1));
        assert!(told.contains(&expected), "{from} -> {to}: {told:?}");
    }
    for (from, to) in [
        ("| MUST |", "| MAY |"),
        ("| A2-7 |", "| A2-8 |"),
        (first, "CORE-0"),
    ] {
        assert!(
            !found(&sound.replacen(from, to, 1)).is_empty(),
            "{from} -> {to}"
        );
    }
}

/// The requirements of the kit and their levels.
const REQUIREMENTS: [(&str, &str); 129] = [
    ("CORE-SEND-001", "MUST"),
    ("CORE-SEND-002", "MUST"),
    ("CORE-SEND-003", "MUST"),
    ("CORE-STREAM-001", "MUST"),
    ("CORE-STREAM-002", "MUST"),
    ("CORE-STREAM-003", "MUST"),
    ("CORE-GET-001", "MUST"),
    ("CORE-GET-002", "MUST"),
    ("CORE-LIST-001", "MUST"),
    ("CORE-LIST-002", "MUST"),
    ("CORE-LIST-003", "MUST"),
    ("CORE-LIST-004", "MUST"),
    ("CORE-LIST-005", "MUST"),
    ("CORE-CANCEL-001", "MUST"),
    ("CORE-CANCEL-002", "MUST"),
    ("CORE-CANCEL-003", "MUST"),
    ("CORE-EXECUTION-MODE-001", "MUST"),
    ("CORE-EXECUTION-MODE-002", "MUST"),
    ("CORE-ERR-001", "MUST"),
    ("CORE-ERR-002", "MUST"),
    ("CORE-CAP-001", "MUST"),
    ("CORE-CAP-002", "MUST"),
    ("CORE-CAP-003", "MUST"),
    ("CORE-CAP-004", "MUST"),
    ("CORE-MULTI-001", "MAY"),
    ("CORE-MULTI-001a", "MUST"),
    ("CORE-MULTI-002", "MAY"),
    ("CORE-MULTI-002a", "MUST"),
    ("CORE-MULTI-003", "MUST"),
    ("CORE-MULTI-004", "MUST"),
    ("CORE-MULTI-005", "MUST"),
    ("CORE-MULTI-006", "MUST"),
    ("CORE-HIST-001", "SHOULD"),
    ("CORE-HIST-002", "MUST"),
    ("CORE-HIST-003", "SHOULD"),
    ("CORE-HIST-004", "MAY"),
    ("CORE-HIST-005", "SHOULD"),
    ("CORE-HIST-006", "SHOULD"),
    ("STREAM-ORDER-001", "MUST"),
    ("STREAM-ORDER-002", "MUST"),
    ("STREAM-ORDER-003", "MUST"),
    ("STREAM-ORDER-004", "MUST"),
    ("STREAM-SUB-001", "MUST"),
    ("STREAM-SUB-002", "MUST"),
    ("STREAM-SUB-003", "MUST"),
    ("STREAM-SUB-004", "MUST"),
    ("DM-TASK-001", "MUST"),
    ("DM-TASK-002", "MUST"),
    ("DM-MSG-001", "MUST"),
    ("DM-MSG-002", "MUST"),
    ("DM-PART-001", "MUST"),
    ("DM-ART-001", "MUST"),
    ("DM-STATUS-001", "MUST"),
    ("DM-SERIAL-001", "MUST"),
    ("DM-SERIAL-002", "MUST"),
    ("DM-SERIAL-003", "MUST"),
    ("DM-SERIAL-004", "MUST"),
    ("DM-SERIAL-005", "SHOULD"),
    ("PUSH-CREATE-001", "MUST"),
    ("PUSH-CREATE-002", "MUST"),
    ("PUSH-GET-001", "MUST"),
    ("PUSH-GET-002", "MUST"),
    ("PUSH-LIST-001", "MUST"),
    ("PUSH-DEL-001", "MUST"),
    ("PUSH-DEL-002", "MUST"),
    ("PUSH-DELIVER-001", "MUST"),
    ("PUSH-DELIVER-002", "MUST"),
    ("PUSH-DELIVER-003", "MUST"),
    ("CARD-DISC-001", "MUST"),
    ("CARD-PROTO-001", "MUST"),
    ("CARD-PROTO-002", "MUST"),
    ("CARD-STRUCT-001", "MUST"),
    ("CARD-EXT-001", "MUST"),
    ("CARD-EXT-002", "MUST"),
    ("CARD-SIGN-001", "MUST"),
    ("CARD-SIGN-002", "MUST"),
    ("CARD-SIGN-003", "MUST"),
    ("CARD-SIGN-004", "MUST"),
    ("CARD-CACHE-001", "SHOULD"),
    ("CARD-CACHE-002", "SHOULD"),
    ("CARD-CACHE-003", "MAY"),
    ("JSONRPC-FMT-001", "MUST"),
    ("JSONRPC-FMT-002", "MUST"),
    ("JSONRPC-SVC-001", "MUST"),
    ("JSONRPC-SVC-002", "MUST"),
    ("JSONRPC-ERR-001", "MUST"),
    ("JSONRPC-ERR-002", "MUST"),
    ("JSONRPC-ERR-003", "MUST"),
    ("JSONRPC-SSE-001", "MUST"),
    ("JSONRPC-SSE-002", "MUST"),
    ("HTTP_JSON-URL-001", "MUST"),
    ("HTTP_JSON-URL-002", "MUST"),
    ("HTTP_JSON-SVC-001", "SHOULD"),
    ("HTTP_JSON-SVC-002", "MUST"),
    ("HTTP_JSON-QP-001", "MUST"),
    ("HTTP_JSON-ERR-001", "MUST"),
    ("HTTP_JSON-ERR-002", "MUST"),
    ("HTTP_JSON-STATUS-001", "MUST"),
    ("HTTP_JSON-SSE-001", "MUST"),
    ("GRPC-SVC-001", "MUST"),
    ("GRPC-SVC-002", "MUST"),
    ("GRPC-SVC-003", "MUST"),
    ("GRPC-META-001", "MUST"),
    ("GRPC-ERR-001", "MUST"),
    ("GRPC-ERR-002", "MUST"),
    ("GRPC-ERR-003", "MUST"),
    ("VER-CLIENT-001", "MUST"),
    ("VER-SERVER-001", "MUST"),
    ("VER-SERVER-002", "MUST"),
    ("VER-SERVER-003", "MUST"),
    ("VER-CLIENT-002", "MUST"),
    ("BIND-EQUIV-001", "MUST"),
    ("BIND-EQUIV-002", "MUST"),
    ("BIND-EQUIV-003", "MUST"),
    ("BIND-EQUIV-004", "MUST"),
    ("BIND-FIELD-001", "MUST"),
    ("AUTH-TLS-001", "MUST"),
    ("AUTH-TLS-002", "SHOULD"),
    ("AUTH-SERVER-001", "SHOULD"),
    ("AUTH-SERVER-002", "MUST"),
    ("AUTH-INTASK-001", "MUST"),
    ("AUTH-INTASK-002", "MUST"),
    ("AUTH-INTASK-003", "MUST"),
    ("AUTH-INTASK-004", "MUST"),
    ("AUTH-INTASK-005", "SHOULD"),
    ("AUTH-INTASK-006", "SHOULD"),
    ("AUTH-SCOPE-001", "MUST"),
    ("AUTH-SCOPE-002", "MUST"),
    ("AUTH-SCOPE-003", "MUST"),
];
