//! Which crates may use which, by their manifests.

use super::root;
use std::collections::BTreeMap;

/// Our crates, by folder, and those of ours that each may use. What only its tests use is not asked,
/// and [`ANYTHING`] may use all.
const ALLOWED: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("projections", &["domain", "sql"]),
    ("crates/clock", &["domain"]),
    ("crates/meters", &[]),
    ("crates/net", &[]),
    (
        "crates/auth",
        &[
            "beside", "clock", "domain", "log", "meters", "net", "private", "sealing", "sql",
        ],
    ),
    ("crates/beside", &["log", "private", "sql"]),
    ("crates/sql", &["domain"]),
    ("crates/log", &["clock", "domain", "private"]),
    (
        "crates/subscription",
        &["clock", "domain", "log", "projections"],
    ),
    (
        "crates/webhooks",
        &[
            "beside",
            "clock",
            "domain",
            "log",
            "meters",
            "net",
            "sealing",
            "sql",
            "subscription",
        ],
    ),
    ("crates/process", &["domain", "sealing"]),
    ("crates/private", &[]),
    ("crates/sealing", &["clock", "private"]),
    ("crates/broker", &["beside", "domain", "log", "sql"]),
    ("crates/documents", &["beside", "domain", "log", "sql"]),
    (
        "crates/schedules",
        &["beside", "domain", "log", "sql", "zones"],
    ),
    ("crates/zones", &[]),
    ("crates/a2a", &["protobuf-values"]),
    (
        "crates/a2a-client",
        &["a2a", "clock", "domain", "event-stream"],
    ),
    // A client: it knows the protocols of a server, and nothing of what is behind them.
    (
        "crates/cli",
        &[
            "a2a",
            "a2a-client",
            "clock",
            "domain",
            "event-stream",
            "eventbus",
            "net",
            "private",
            "process",
            "terminal",
            "workflows",
            "zones",
        ],
    ),
    ("crates/event-stream", &[]),
    ("crates/eventbus", &["protobuf-values"]),
    ("crates/protobuf-values", &[]),
    ("crates/workers", &["beside", "domain", "log", "sql"]),
    ("crates/workflows", &["domain"]),
    // Knows nothing of this server: everything it learns comes over HTTP.
    ("crates/conformance", &["clock", "net", "terminal"]),
    ("crates/terminal", &["domain"]),
];

/// Folders of crates that no product depends on.
const ANYTHING: [&str; 2] = ["bench", "crates/testkit"];
/// Crates that the server must not contain.
const FOR_TESTS: [&str; 2] = ["taskledger-conformance", "taskledger-testkit"];

/// What the rules must not need, by the beginning of its name: no runtime, no database, no web.
const NOT_IN_THE_DOMAIN: [&str; 15] = [
    "tokio",
    "async",
    "futures",
    "sqlx",
    "rusqlite",
    "libsqlite3",
    "postgres",
    "axum",
    "hyper",
    "tower",
    "reqwest",
    "tonic",
    "rand",
    "getrandom",
    "tracing",
];
/// What read models must not need: they know no door.
const NOT_IN_PROJECTIONS: [&str; 3] = ["axum", "hyper", "reqwest"];

fn manifest(folder: &str) -> String {
    let path = root().join(folder).join("Cargo.toml");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names in the tables of a manifest whose titles end in `dependencies`, except those for tests
/// and those of the workspace.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut names = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            let title = line
                .split(']')
                .next()
                .unwrap_or(line)
                .trim_start_matches('[');
            inside = title.ends_with("dependencies")
                && !title.contains("dev-dependencies")
                && title != "workspace.dependencies";
            // `[dependencies.name]`
            if let Some((table, name)) = title.rsplit_once('.')
                && table.ends_with("dependencies")
                && !table.contains("dev-")
                && table != "workspace.dependencies"
            {
                names.push(name.to_owned());
            }
        } else if inside && let Some((name, _)) = line.split_once(['.', '=', ' ']) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Folders of all crates but the server's own.
fn folders() -> Vec<String> {
    let mut folders = vec![
        "bench".to_owned(),
        "domain".to_owned(),
        "projections".to_owned(),
    ];
    for entry in std::fs::read_dir(root().join("crates")).expect("crates can be listed") {
        let name = entry.expect("crates can be listed").file_name();
        folders.push(format!("crates/{}", name.to_string_lossy()));
    }
    folders
}

/// Crates that use what the table does not allow, and what is missing in the table.
fn faults(manifests: &[(String, String)], allowed: &[(&str, &[&str])]) -> Vec<String> {
    let allowed: BTreeMap<_, _> = allowed.iter().copied().collect();
    let mut faults = Vec::new();
    for (folder, manifest) in manifests {
        let Some(allowed) = allowed.get(folder.as_str()) else {
            faults.push(format!("{folder} is not in the table"));
            continue;
        };
        for name in dependencies(manifest) {
            let ours = name
                .strip_prefix("taskledger")
                .map(|name| name.trim_start_matches('-'));
            if ours.is_some_and(|ours| !allowed.contains(&ours)) {
                faults.push(format!("{folder} must not use `{name}`"));
            }
        }
    }
    for folder in allowed.keys() {
        if !manifests.iter().any(|(other, _)| other == folder) {
            faults.push(format!("{folder} is in the table and does not exist"));
        }
    }
    faults
}

/// The names that begin with one of these.
fn beginning_with<'a>(names: &'a [String], banned: &[&str]) -> Vec<&'a String> {
    let is_banned = |name: &&String| banned.iter().any(|b| name.starts_with(b));
    names.iter().filter(is_banned).collect()
}

#[test]
fn crates_use_only_what_the_table_allows() {
    let folders = folders().into_iter();
    let folders = folders.filter(|folder| !ANYTHING.contains(&folder.as_str()));
    let manifests: Vec<_> = folders
        .map(|folder| (folder.clone(), manifest(&folder)))
        .collect();
    let faults = faults(&manifests, ALLOWED);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_server_contains_nothing_that_is_for_tests() {
    let names = dependencies(&manifest("."));
    assert!(
        names.contains(&"axum".to_owned()),
        "the list is read: {names:?}"
    );
    assert_eq!(beginning_with(&names, &FOR_TESTS), [""; 0]);
}

#[test]
fn the_domain_has_no_runtime_no_database_and_no_web() {
    let names = dependencies(&manifest("domain"));
    assert!(
        names.contains(&"serde".to_owned()),
        "the list is read: {names:?}"
    );
    assert_eq!(beginning_with(&names, &NOT_IN_THE_DOMAIN), [""; 0]);
}

#[test]
fn projections_know_no_door() {
    let names = dependencies(&manifest("projections"));
    assert!(
        names.contains(&"sqlx".to_owned()),
        "the list is read: {names:?}"
    );
    assert_eq!(beginning_with(&names, &NOT_IN_PROJECTIONS), [""; 0]);
}

#[test]
fn a_crate_that_uses_another_without_leave_is_found() {
    let bad = "\
[package]
name = \"taskledger-low\"
[dependencies]
serde.workspace = true
taskledger-high = { path = \"../high\" }
[target.'cfg(unix)'.dependencies]
taskledger.workspace = true
[build-dependencies]
axum = \"1\"
[dependencies.tokio]
version = \"1\"
[dev-dependencies]
taskledger-testkit.workspace = true
";
    let names = dependencies(bad);
    assert_eq!(
        names,
        ["serde", "taskledger-high", "taskledger", "axum", "tokio"]
    );
    assert_eq!(
        beginning_with(&names, &NOT_IN_THE_DOMAIN),
        ["axum", "tokio"]
    );
    let manifests = [("crates/low".to_owned(), bad.to_owned())];
    let found = |allowed: &[&str]| faults(&manifests, &[("crates/low", allowed)]);
    assert_eq!(found(&["high"]), ["crates/low must not use `taskledger`"]);
    assert_eq!(found(&["high", ""]), [""; 0]);
    assert_eq!(
        faults(&manifests, &[("crates/gone", &[])]),
        [
            "crates/low is not in the table",
            "crates/gone is in the table and does not exist"
        ]
    );
}
