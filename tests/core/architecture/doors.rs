//! Doors hold the application, and nothing behind it.

use super::{code, rust_files, used_parts};
use std::collections::BTreeMap;

/// Files of doors that still reach the log, and in how many places. A file that needs its entry no
/// longer must lose it.
const KNOWN: &[(&str, usize)] = &[("src/transport/system.rs", 3)];

/// Names of the log that no door may speak, and crates that hold it.
const NAMES: [&str; 2] = ["EventStore", "taskledger_log"];
/// The part of the server that is the log, as an import and as a member of whatever holds it.
const PART: &str = "store";

/// What reaches the log in the code of a file: names, imports, and members called `store`. A call
/// `.store(..)` is none: atomics have it.
fn reaches_the_log(code: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in NAMES {
        let count = code.matches(name).count();
        found.extend(std::iter::repeat_n(format!("`{name}`"), count));
    }
    if used_parts(code).contains(PART) {
        found.push(format!("`crate::{PART}`"));
    }
    // A chain of members may be broken over lines.
    let tight: String = code.split('\n').map(str::trim).collect();
    for after in tight.split(&format!(".{PART}")).skip(1) {
        let next = after.chars().next().unwrap_or(' ');
        if !(next == '(' || next == '_' || next.is_alphanumeric()) {
            found.push(format!("a member `.{PART}`"));
        }
    }
    found
}

/// What is found in files and not known, and what is known and not found.
fn faults(files: &[(String, String)], known: &[(&str, usize)]) -> Vec<String> {
    let known: BTreeMap<_, _> = known.iter().copied().collect();
    let mut faults = Vec::new();
    for (path, text) in files {
        let found = reaches_the_log(&code(text));
        let expected = known.get(path.as_str()).copied().unwrap_or(0);
        if found.len() != expected {
            let count = found.len();
            faults.push(format!(
                "{path}: {count} places, {expected} are known: {found:?}"
            ));
        }
    }
    for path in known.keys() {
        if !files.iter().any(|(other, _)| other == path) {
            faults.push(format!("{path} is known and does not exist"));
        }
    }
    faults
}

#[test]
fn no_door_reaches_the_log() {
    let faults = faults(&rust_files("src/transport"), KNOWN);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn whoever_reaches_the_log_is_found() {
    for bad in [
        "fn f(c: &Context) { c.app.store.head() }",
        "fn f(c: &Context) { c\n    .app\n    .store\n    .head() }",
        "let App { store, .. } = app; let kept = &context.store;",
        "use crate::store::Append;",
        "use crate::{clock, store::Append};",
        "fn f(log: &dyn EventStore) {}",
        "use taskledger_log::Append;",
    ] {
        assert!(!reaches_the_log(bad).is_empty(), "{bad}");
    }
    for good in [
        "self.closing.store(true, Ordering::Relaxed);",
        "context.stored + context.store_size",
        "use crate::application::Service;",
    ] {
        assert!(reaches_the_log(good).is_empty(), "{good}");
    }
}

#[test]
fn an_exception_is_for_so_many_places_of_a_file() {
    let file = |text: &str| [("src/transport/a.rs".to_owned(), text.to_owned())];
    let bad = file("a.store; // the log\n");
    assert_eq!(faults(&bad, &[]).len(), 1);
    assert_eq!(faults(&bad, &[("src/transport/a.rs", 1)]).len(), 0);
    assert_eq!(faults(&bad, &[("src/transport/a.rs", 2)]).len(), 1);
    assert_eq!(faults(&file(""), &[("src/transport/a.rs", 1)]).len(), 1);
    assert_eq!(faults(&file(""), &[("src/transport/b.rs", 1)]).len(), 1);
}
