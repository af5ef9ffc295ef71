//! Edges and bounds of the source that the compiler does not keep. Each failure names the place, and
//! each rule is tried on an example that breaks it (`bad_examples.rs`, or beside the rule).

mod bad_examples;
mod comments;
mod doors;
mod edges;
mod examples;
mod manifests;
mod names;
mod test_groups;
mod use_cases;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Above 500 a file needs a reason; this is the most.
const LINES_MAX: usize = 800;

/// Files that may be longer, and why.
const LONG_FILES: &[(&str, &str)] = &[
    (
        "crates/a2a/src/generated/a2a.rs",
        "generated from the .proto",
    ),
    (
        "crates/a2a/src/generated/a2a_v03.rs",
        "generated from the .proto",
    ),
    (
        "crates/eventbus/src/generated/eventbus.rs",
        "generated from the .proto",
    ),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Path and text of the files in a folder, and of the file of the module of this name.
fn rust_files(below: &str) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut folders = vec![root().join(below)];
    let of_module = root().join(format!("{below}.rs"));
    if of_module.is_file() {
        let text = std::fs::read_to_string(&of_module).expect("source is UTF-8");
        files.push((relative(&of_module), text));
    }
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("source folders can be read") {
            let path = entry.expect("source folders can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).expect("source is UTF-8");
                files.push((relative(&path), text));
            }
        }
    }
    assert!(!files.is_empty(), "`{below}` holds source");
    files.sort();
    files
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root())
        .expect("below the root")
        .to_string_lossy()
        .replace('\\', "/")
}

/// The code of a file: without its comments, and without the unit tests at its end.
fn code(text: &str) -> String {
    // A module for tests in the file itself, not the declaration of one.
    let opens = |(at, _): &(usize, &str)| {
        let declared = text[*at..].lines().nth(2).unwrap_or_default();
        declared.contains("mod ") && declared.ends_with('{')
    };
    let end = text.match_indices("\n#[cfg(test)]\n").find(opens);
    let product = &text[..end.map_or(text.len(), |(at, _)| at)];
    let lines = product.lines().map(|line| {
        if line.trim_start().starts_with("//") {
            ""
        } else {
            line
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_domain_is_synchronous_and_has_no_clock() {
    let banned = [
        "async fn",
        ".await",
        "Utc::now",
        "SystemTime",
        "Instant::now",
        "new_v4",
        "std::fs",
        "std::net",
        "std::env",
    ];
    assert_absent(&rust_files("domain/src"), &banned, &[]);
}

#[test]
fn time_and_ids_come_from_the_clock_only() {
    let banned = [
        "Utc::now",
        "Local::now",
        "SystemTime::now",
        "new_v4",
        "thread::sleep",
    ];
    let allowed = [
        ("crates/clock/", "it is the clock"),
        (
            "crates/cli/",
            "a program at a terminal waits for its own sake",
        ),
    ];
    let files: Vec<_> = ["src", "crates", "projections/src"]
        .into_iter()
        .flat_map(rust_files)
        .collect();
    assert_absent(&files, &banned, &allowed);
}

/// What speaks to databases and to callers, as crates: nothing for the application.
const NOT_IN_THE_APPLICATION: [&str; 10] = [
    "axum",
    "http",
    "hyper",
    "hyper_util",
    "prost",
    "reqwest",
    "rusqlite",
    "sqlx",
    "tonic",
    "tower",
];

/// The crates of databases and protocols that a file names.
fn outside_of_the_application(file: &str, text: &str) -> BTreeSet<String> {
    let firsts = names::paths(file, text).into_iter();
    let firsts = firsts.filter_map(|path| path.into_iter().next());
    firsts
        .filter(|first| NOT_IN_THE_APPLICATION.contains(&first.as_str()))
        .collect()
}

#[test]
fn the_application_holds_no_sql_and_names_no_database_and_no_protocol() {
    let files = rust_files("src/application");
    for (path, text) in &files {
        let found = outside_of_the_application(path, text);
        assert!(found.is_empty(), "{path}: {found:?}");
    }
    let sql = ["SELECT ", "INSERT ", "UPDATE ", "DELETE FROM"];
    assert_absent(&files, &sql, &[]);
    for bad in [
        "use sqlx::Row;",
        "use {tonic::Status, uuid::Uuid};",
        "use http as web;",
        "fn f(code: ::http::StatusCode) {}",
    ] {
        let found = outside_of_the_application("src/application/a.rs", bad);
        assert_eq!(found.len(), 1, "{bad}");
    }
    let good = "mod http; use http::X; use serde_json::Value; use super::tower::Y;";
    let found = outside_of_the_application("src/application/a.rs", good);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn nothing_is_left_for_later() {
    let files: Vec<_> = ["src", "crates", "domain/src", "projections/src"]
        .into_iter()
        .flat_map(rust_files)
        .filter(|(path, _)| !is_test(path))
        .collect();
    let mut faults = places(&files, &["TODO", "FIXME", "XXX"], &[]);
    let banned = [
        "todo!(",
        "unimplemented!(",
        ".unwrap()",
        "#[ignore",
        "dbg!(",
    ];
    let files: Vec<_> = files
        .into_iter()
        .map(|(path, text)| (path, code(&text)))
        .collect();
    faults.extend(places(&files, &banned, &[]));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn is_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name == "tests.rs"
        || name == "testing.rs"
        || name == "test_support.rs"
        || path.contains("/tests/")
        || path.starts_with("crates/testkit/")
}

fn assert_absent(files: &[(String, String)], banned: &[&str], allowed: &[(&str, &str)]) {
    let faults = present(files, banned, allowed);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Where the product's code holds a banned text, outside the places that may.
fn present(files: &[(String, String)], banned: &[&str], allowed: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<_> = files
        .iter()
        .filter(|(p, _)| !is_test(p))
        .map(|(p, t)| (p.clone(), code(t)))
        .collect();
    places(&files, banned, allowed)
}

fn places(files: &[(String, String)], banned: &[&str], allowed: &[(&str, &str)]) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, text) in files {
        if allowed.iter().any(|(prefix, _)| path.starts_with(prefix)) {
            continue;
        }
        for (n, line) in text.lines().enumerate() {
            faults.extend(
                banned
                    .iter()
                    .filter(|b| says(line, b))
                    .map(|b| format!("{path}:{}: `{b}`", n + 1)),
            );
        }
    }
    faults
}

/// Whether `word` stands in a line, and not as the beginning of a longer name.
fn says(line: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let ends_a_name = word.ends_with(is_name);
    line.match_indices(word).any(|(at, _)| {
        let next = line[at + word.len()..].chars().next();
        !(ends_a_name && next.is_some_and(is_name))
    })
}

/// Files that are too long, and exceptions that are not needed.
fn wrong_lengths(files: &[(String, String)], exceptions: &[(&str, &str)]) -> Vec<String> {
    let argued: BTreeMap<_, _> = exceptions.iter().copied().collect();
    let mut faults = Vec::new();
    for (path, text) in files {
        let lines = text.lines().count();
        match argued.get(path.as_str()) {
            None if lines > LINES_MAX => faults.push(format!(
                "{path} has {lines} lines, at most {LINES_MAX} are allowed"
            )),
            Some(_) if lines <= LINES_MAX => {
                faults.push(format!("{path} is short enough now; it needs no exception"))
            }
            None | Some(_) => {}
        }
    }
    for (path, _) in exceptions {
        if !files.iter().any(|(p, _)| p == path) {
            faults.push(format!("{path} has an exception and does not exist"));
        }
    }
    faults
}

#[test]
fn a_file_answers_one_question() {
    let files: Vec<_> = ["src", "crates", "domain", "projections", "tests"]
        .into_iter()
        .flat_map(rust_files)
        .collect();
    let faults = wrong_lengths(&files, LONG_FILES);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Files that do not begin with a comment about the module.
fn silent(files: &[(String, String)]) -> Vec<&str> {
    let silent = files.iter().filter(|(_, text)| !text.starts_with("//!"));
    silent.map(|(path, _)| path.as_str()).collect()
}

#[test]
fn every_module_says_what_it_is_for() {
    let files: Vec<_> = ["src", "crates", "domain/src", "projections/src", "tests"]
        .into_iter()
        .flat_map(rust_files)
        .collect();
    let silent = silent(&files);
    assert!(silent.is_empty(), "no module comment in {silent:?}");
}

/// File names in each folder `<backend>/<purpose>` of `migrations`.
fn migrations() -> BTreeMap<PathBuf, BTreeSet<String>> {
    let mut found: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    let mut folders = vec![root().join("migrations")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("migrations can be read") {
            let path = entry.expect("migrations can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "sql") {
                let name = path
                    .file_name()
                    .expect("a file has a name")
                    .to_string_lossy()
                    .into_owned();
                let folder = folder.strip_prefix(root().join("migrations"));
                let folder = folder.expect("found below it").to_owned();
                found.entry(folder).or_default().insert(name);
            }
        }
    }
    found
}

/// Migrations whose numbers have gaps, and purposes whose files differ between backends. Folders are
/// named from `migrations` on: `<backend>/<purpose>`.
fn misnumbered(found: &BTreeMap<PathBuf, BTreeSet<String>>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut by_purpose: BTreeMap<PathBuf, Vec<(&PathBuf, &BTreeSet<String>)>> = BTreeMap::new();
    for (folder, names) in found {
        for (n, name) in names.iter().enumerate() {
            let number = name
                .split('_')
                .next()
                .and_then(|digits| digits.parse().ok());
            if number != Some(n + 1) {
                faults.push(format!(
                    "{}/{name} is not number {}",
                    folder.display(),
                    n + 1
                ));
            }
        }
        let purpose = folder.iter().skip(1).collect();
        by_purpose.entry(purpose).or_default().push((folder, names));
    }
    for backends in by_purpose.values() {
        for pair in backends.windows(2) {
            if pair[0].1 != pair[1].1 {
                let (one, other) = (pair[0].0.display(), pair[1].0.display());
                faults.push(format!("{one} differs from {other}"));
            }
        }
    }
    faults
}

#[test]
fn migrations_are_numbered_without_gaps_and_alike_in_every_backend() {
    let found = migrations();
    assert!(!found.is_empty(), "there are migrations");
    let faults = misnumbered(&found);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
