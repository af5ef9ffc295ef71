//! Which folders of `src` use which, which doors, and which crates of this repository. The lists hold what is used
//! today: what is not in them is refused, and what nobody uses any more is taken out.

use super::names::paths;
use super::rust_files;
use std::collections::BTreeMap;

/// What each may use.
type Listed = &'static [(&'static str, &'static [&'static str])];

/// The folders and files of `src`, and the parts of the crate that each may use. Some parts are crates of their own,
/// known by these names (`src/lib.rs`). `server` and `main` put everything together.
const EDGES: Listed = &[
    (
        "application",
        &[
            "clock",
            "meters",
            "runtime",
            "sealing",
            "store",
            "subscription",
            "webhooks",
        ],
    ),
    // Whose credentials they are, for all doors.
    ("auth", &["application", "clock"]),
    (
        "cli",
        &[
            "application",
            "clock",
            "config",
            "egress",
            "engine",
            "private",
            "retention",
            "sealing",
            "secret_file",
            "server",
            "store",
            "subscription",
            "telemetry",
            "tls",
            "transport",
            "webhooks",
        ],
    ),
    // Settings end as the options of what they configure.
    (
        "config",
        &[
            "egress",
            "engine",
            "retention",
            "tls",
            "transport",
            "webhooks",
        ],
    ),
    (
        "engine",
        &[
            "application",
            "clock",
            "egress",
            "meters",
            "sealing",
            "store",
        ],
    ),
    ("lib", &[]),
    ("main", &["cli"]),
    // Reads what everybody counts, and writes it as text. Nobody but `server` knows it.
    (
        "metrics",
        &[
            "application",
            "engine",
            "meters",
            "nodes",
            "store",
            "tls",
            "transport",
            "webhooks",
        ],
    ),
    // Leases and calls between nodes, behind the ports of those who need them.
    ("nodes", &["application", "meters", "store", "tls"]),
    // Flows that leave the log.
    (
        "retention",
        &["application", "clock", "private", "store", "subscription"],
    ),
    ("runtime", &[]),
    (
        "server",
        &[
            "application",
            "auth",
            "clock",
            "config",
            "egress",
            "engine",
            "metrics",
            "nodes",
            "private",
            "retention",
            "sealing",
            "store",
            "subscription",
            "tls",
            "transport",
            "webhooks",
        ],
    ),
    ("telemetry", &["config"]),
    (
        "transport",
        &[
            "application",
            "clock",
            "meters",
            "runtime",
            "subscription",
            "tls",
        ],
    ),
];

/// The crates of this repository that each folder names by themselves, without `taskledger_`. Which of their names
/// doors may use is said in `doors.rs`.
const CRATES: Listed = &[
    (
        "application",
        &[
            "auth",
            "beside",
            "broker",
            "documents",
            "domain",
            "projections",
            "schedules",
            "workers",
            "workflows",
            "zones",
        ],
    ),
    ("auth", &["auth"]),
    (
        "cli",
        &[
            "a2a",
            "auth",
            "cli",
            "domain",
            "projections",
            "sealing",
            "zones",
        ],
    ),
    ("config", &["a2a", "auth", "domain"]),
    (
        "engine",
        &[
            "a2a",
            "a2a_client",
            "auth",
            "domain",
            "private",
            "process",
            "projections",
            "workers",
        ],
    ),
    // Gives them the names by which the rest of `src` knows them.
    (
        "lib",
        &[
            "clock",
            "log",
            "meters",
            "net",
            "private",
            "sealing",
            "subscription",
            "webhooks",
        ],
    ),
    ("main", &["terminal"]),
    ("metrics", &["auth", "domain"]),
    ("nodes", &["domain", "sql"]),
    ("retention", &["auth", "domain", "projections"]),
    ("runtime", &[]),
    (
        "server",
        &[
            "auth",
            "beside",
            "broker",
            "documents",
            "domain",
            "projections",
            "schedules",
            "workers",
            "zones",
        ],
    ),
    ("telemetry", &[]),
    (
        "transport",
        &["a2a", "auth", "domain", "eventbus", "workers"],
    ),
];

/// The doors, what they share, and which of each other they may use. `transport` itself only declares them.
const DOORS: Listed = &[
    ("a2a", &["eventbus", "jsonrpc"]),
    // How much the calls under way may hold, for all doors.
    ("budget", &[]),
    ("eventbus", &["figures", "jsonrpc"]),
    // Counts what comes in, by door and binding.
    ("figures", &["a2a", "eventbus", "jsonrpc"]),
    // Carries the others: routes, bodies, connections.
    (
        "http",
        &[
            "a2a",
            "budget",
            "eventbus",
            "figures",
            "json_size",
            "jsonrpc",
            "overhead",
            "sse",
            "ws",
        ],
    ),
    // How much memory the values of a body take.
    ("json_size", &[]),
    ("jsonrpc", &["budget", "figures", "openrpc"]),
    ("openrpc", &["jsonrpc", "ws"]),
    // What a connection may send that is part of no request.
    ("overhead", &[]),
    ("sse", &["figures"]),
    ("transport", &[]),
    ("ws", &["budget", "figures", "jsonrpc", "overhead", "sse"]),
];

/// `src/engine/executor/run.rs` belongs to `engine`, `src/server.rs` to `server`.
fn part(path: &str) -> &str {
    let inner = path.strip_prefix("src/").unwrap_or(path);
    let first = inner.split('/').next().unwrap_or(inner);
    first.trim_end_matches(".rs")
}

/// `src/transport/ws/work.rs` belongs to `ws`, `src/transport.rs` to nobody but `transport`.
fn door(path: &str) -> &str {
    path.strip_prefix("src/transport/")
        .map_or("transport", part)
}

/// The part of the crate that a path leads to; `*` for the crate as a whole.
fn part_of(path: &[String]) -> Option<&str> {
    let (first, inner) = path.split_first()?;
    (first == "crate").then(|| inner.first().map_or("*", String::as_str))
}

/// The crate of this repository that a path leads to.
fn crate_of(path: &[String]) -> Option<&str> {
    path.first()?.strip_prefix("taskledger_")
}

/// The door that a path leads to; `*` for all of them.
fn door_of(path: &[String]) -> Option<&str> {
    let inner = path.get(2).map_or("*", String::as_str);
    (part_of(path) == Some("transport")).then_some(inner)
}

/// What is used and not listed, and what is listed and not used. `from`: whose a file is; `to`: where a path leads.
fn differences(
    files: &[(String, String)],
    listed: &[(&str, &[&str])],
    from: fn(&str) -> &str,
    to: fn(&[String]) -> Option<&str>,
) -> Vec<String> {
    let mut uses: BTreeMap<&str, BTreeMap<String, &str>> = BTreeMap::new();
    for (file, text) in files {
        let used = uses.entry(from(file)).or_default();
        for path in paths(file, text) {
            // A folder may name itself, and a crate that is called as it is counts.
            if let Some(to) = to(&path)
                && (to != from(file) || crate_of(&path).is_some())
            {
                used.entry(to.to_owned()).or_insert(file);
            }
        }
    }
    let listed: BTreeMap<_, _> = listed.iter().copied().collect();
    let mut faults = Vec::new();
    for (from, used) in &uses {
        let Some(allowed) = listed.get(from) else {
            faults.push(format!("`{from}` is not in the list"));
            continue;
        };
        let more = used
            .iter()
            .filter(|(to, _)| !allowed.contains(&to.as_str()));
        faults.extend(more.map(|(to, file)| format!("{file}: `{from}` must not use `{to}`")));
        let unused = allowed.iter().filter(|to| !used.contains_key(**to));
        faults.extend(unused.map(|to| format!("`{from}` may use `{to}`, and does not")));
    }
    let gone = listed.keys().filter(|from| !uses.contains_key(**from));
    faults.extend(gone.map(|from| format!("`{from}` is in the list, and has no files")));
    faults
}

/// Folders that use a part which their list does not hold.
fn parts(files: &[(String, String)], listed: &[(&str, &[&str])]) -> Vec<String> {
    differences(files, listed, part, part_of)
}

/// Folders that name a crate of this repository which their list does not hold.
fn crates(files: &[(String, String)], listed: &[(&str, &[&str])]) -> Vec<String> {
    differences(files, listed, part, crate_of)
}

/// Doors that use a door which their list does not hold.
fn doors(files: &[(String, String)], listed: &[(&str, &[&str])]) -> Vec<String> {
    differences(files, listed, door, door_of)
}

#[test]
fn parts_use_only_what_the_architecture_allows() {
    let faults = parts(&rust_files("src"), EDGES);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn folders_name_only_the_crates_in_their_lists() {
    let faults = crates(&rust_files("src"), CRATES);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn doors_use_only_the_doors_in_their_lists() {
    let faults = doors(&rust_files("src/transport"), DOORS);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn file(path: &str, text: &str) -> (String, String) {
    (path.to_owned(), text.to_owned())
}

#[test]
fn a_use_of_a_part_that_is_not_allowed_is_found() {
    let edges: &[(&str, &[&str])] = &[("low", &[]), ("high", &["low"]), ("main", &["high"])];
    let good = [
        file("src/high/a.rs", "use crate::low::X; // crate::other\n"),
        file("src/low.rs", "use self::a::X; use crate::low::b;\n"),
        file("src/main.rs", "use taskledger::high;\n"),
    ];
    assert_eq!(parts(&good, edges), [""; 0]);
    for bad in [
        "use crate::{high::Y};",
        "use super::super::high::Y;",
        "use super::super::{high as h};",
        "fn f() { super::super::high::run() }",
    ] {
        let files = [file("src/low/a.rs", bad), good[0].clone(), good[2].clone()];
        let expected = "src/low/a.rs: `low` must not use `high`";
        assert_eq!(parts(&files, edges), [expected], "{bad}");
    }
    for bad in ["use crate::*;", "use super::super as root;"] {
        let files = [file("src/low/a.rs", bad), good[0].clone(), good[2].clone()];
        let expected = "src/low/a.rs: `low` must not use `*`";
        assert_eq!(parts(&files, edges), [expected], "{bad}");
    }
    let files = [
        file("src/other/a.rs", ""),
        file("src/high.rs", ""),
        file("src/main.rs", "fn main() { taskledger::low::run() }\n"),
    ];
    assert_eq!(
        parts(&files, edges),
        [
            "`high` may use `low`, and does not",
            "src/main.rs: `main` must not use `low`",
            "`main` may use `high`, and does not",
            "`other` is not in the list",
            "`low` is in the list, and has no files",
        ]
    );
}

#[test]
fn a_crate_that_is_not_in_a_list_is_found() {
    let listed: &[(&str, &[&str])] = &[("auth", &["auth"])];
    let named = |text: &str| crates(&[file("src/auth/a.rs", text)], listed);
    let good = "use taskledger_auth::Kind;";
    assert_eq!(named(good), [""; 0]);
    for bad in [
        "use taskledger_sql::Row;",
        "use taskledger_sql as sql;",
        "use {taskledger_sql::{Row}};",
        "extern crate taskledger_sql;",
        "fn f(row: &taskledger_sql::Row) {}",
    ] {
        let found = named(&format!("{good} {bad}"));
        let expected = "src/auth/a.rs: `auth` must not use `sql`";
        assert_eq!(found, [expected], "{bad}");
    }
    assert_eq!(named(""), ["`auth` may use `auth`, and does not"]);
}

#[test]
fn a_door_that_uses_another_is_found() {
    let listed: &[(&str, &[&str])] = &[("sse", &[]), ("ws", &["sse"])];
    let good = file("src/transport/ws/a.rs", "use super::super::sse::Line;");
    for bad in [
        "use super::ws::Work;",
        "use super::{ws as sockets};",
        "use crate::transport::{ws::{Work}};",
        "fn f() { crate::transport::ws::run() }",
    ] {
        let files = [file("src/transport/sse.rs", bad), good.clone()];
        let expected = "src/transport/sse.rs: `sse` must not use `ws`";
        assert_eq!(doors(&files, listed), [expected], "{bad}");
    }
    for bad in ["use super::*;", "use crate::transport as doors;"] {
        let files = [file("src/transport/sse.rs", bad), good.clone()];
        let expected = "src/transport/sse.rs: `sse` must not use `*`";
        assert_eq!(doors(&files, listed), [expected], "{bad}");
    }
}
