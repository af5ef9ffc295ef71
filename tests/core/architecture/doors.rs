//! Doors hold the application, and nothing behind it.

use super::names::{identifiers, is_within, own_crates, paths_into};
use super::{code, rust_files, used_parts};
use std::collections::{BTreeMap, BTreeSet};

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
    let faults = faults(&rust_files("src/transport"), &[]);
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

/// What doors may name behind `crate::application::`.
const OF_THE_APPLICATION: &[&str] = &["Service", "Context", "api", "context"];
/// What doors may name behind `crate::subscription::`, in the product.
const OF_SUBSCRIPTIONS: &[&str] = &["cursor", "live", "notice", "stream"];
/// What only parts behind the doors name.
const INNER: &[&str] = &["EventStore", "ReadModels", "Mailbox"];

/// The names that follow `prefix` in a text, groups in braces included.
pub(crate) fn named_behind(text: &str, prefix: &str) -> BTreeSet<String> {
    let word = |text: &str| -> String {
        text.chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
    let mut found = BTreeSet::new();
    for behind in text.split(prefix).skip(1) {
        let Some(group) = behind.strip_prefix('{') else {
            found.insert(word(behind));
            continue;
        };
        let mut depth = 0_u32;
        let mut item = String::new();
        for c in group.chars() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    found.insert(word(item.trim_start()));
                    item.clear();
                    continue;
                }
                _ => {}
            }
            item.push(c);
        }
        found.insert(word(item.trim_start()));
    }
    found.remove("");
    found
}

#[test]
fn names_are_found_behind_a_path_and_in_groups() {
    let text = "use crate::application::{api::{A, B}, Service,\n Context};
        fn f(x: crate::application::App) {} use crate::application::context::valid;";
    let found: Vec<_> = named_behind(text, "crate::application::")
        .into_iter()
        .collect();
    assert_eq!(found, ["App", "Context", "Service", "api", "context"]);
}

#[test]
fn a_door_holds_the_service_and_nothing_behind_it() {
    let mut faults = Vec::new();
    for (path, text) in rust_files("src/transport") {
        let code = code(&text);
        let rules = [
            ("crate::application::", OF_THE_APPLICATION),
            ("crate::subscription::", OF_SUBSCRIPTIONS),
            ("crate::store::", &[]),
            ("crate::engine::", &[]),
            ("crate::webhooks::", &[]),
        ];
        for (prefix, allowed) in rules {
            for name in named_behind(&code, prefix) {
                if !allowed.contains(&name.as_str()) {
                    faults.push(format!("{path}: `{prefix}{name}`"));
                }
            }
        }
        let inner = INNER.iter().filter(|name| code.contains(**name));
        faults.extend(inner.map(|name| format!("{path}: `{name}`")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Ways to mount something at a path.
const MOUNTING: [&str; 6] = [
    ".route(",
    ".route_service(",
    ".nest(",
    ".nest_service(",
    ".merge(",
    "fallback_service(",
];

#[test]
fn the_router_mounts_the_list_of_routes_and_nothing_else() {
    let files = rust_files("src/transport/http");
    let mounting: Vec<_> = files
        .iter()
        .flat_map(|(path, text)| {
            let code = code(text);
            let found = MOUNTING
                .iter()
                .flat_map(|way| vec![*way; code.matches(way).count()]);
            found.map(|way| (path.as_str(), way)).collect::<Vec<_>>()
        })
        .collect();
    // Those of monitoring are listeners of their own, which take no calls.
    let is_of_monitoring =
        |path: &str| path.ends_with("/admin.rs") || path.ends_with("/broker_monitor.rs");
    let mounting: Vec<_> = mounting
        .into_iter()
        .filter(|(path, _)| !is_of_monitoring(path))
        .collect();
    assert_eq!(mounting, [("src/transport/http/router.rs", ".route(")]);
}

#[test]
fn every_use_case_of_the_service_is_authorised() {
    /// What is no use case: making it, time, when a call may be read, what the server does by itself
    /// (`hint`, `note_holders`, `keep_schedules`), the count of connections, and calls of nodes, whose requests are
    /// authorised by `taken`.
    const NO_USE_CASE: &[&str] = &[
        "new",
        "clock",
        "pause",
        "turn_to_read",
        "is_large",
        "connected",
        "admits_node",
        "limited",
        "access",
        "hint",
        "note_holders",
        "speaks_for",
        "keep_schedules",
        "look_at_schedules",
    ];
    let mut authorised = 0;
    for (path, text) in rust_files("src/application") {
        if !path.starts_with("src/application/service") {
            continue;
        }
        let code = code(&text);
        for body in code.split("\n    pub ").skip(1) {
            let Some((_, named)) = body.split_once("fn ") else {
                continue;
            };
            let name: String = named
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            // A field of a structure stands before the next function.
            if !body.starts_with("async fn ") && !body.starts_with("fn ") {
                continue;
            }
            if NO_USE_CASE.contains(&name.as_str()) {
                continue;
            }
            let own = body.split("\n    }\n").next().unwrap_or(body);
            let asks = [
                "authorize(",
                "self.admit(",
                "self.admit_as(",
                ".admit(context",
                ".call(context, ",
            ];
            let is_asked = asks.iter().any(|ask| own.contains(ask));
            assert!(is_asked, "{path}: `{name}` asks nobody");
            authorised += 1;
        }
    }
    assert!(authorised > 25, "only {authorised} use cases were found");
}

/// What no type that doors and the application share may be made of, and nothing of the calls between nodes.
const PROTOCOLS: &[&str] = &[
    "serde_json",
    "RawValue",
    "axum",
    "hyper",
    "tonic",
    "prost",
    "prost_types",
    "jsonrpc",
    "transport",
];

/// Names of protocols in the code of a file.
fn of_protocols(code: &str) -> Vec<&str> {
    let named = identifiers(code);
    let known = PROTOCOLS.iter().copied();
    known.filter(|name| named.contains(name)).collect()
}

#[test]
fn the_types_of_the_application_know_no_protocol() {
    let mut files: Vec<_> = rust_files("src/application")
        .into_iter()
        .filter(|(path, _)| path.starts_with("src/application/api"))
        .collect();
    assert!(files.len() > 10, "the types are found");
    files.extend(rust_files("src/nodes"));
    for (path, text) in files {
        let code = code(&text);
        let found = of_protocols(&code);
        assert!(found.is_empty(), "{path} names {found:?}");
    }
}

#[test]
fn protocols_are_found_under_every_spelling() {
    for bad in [
        "use serde_json::Value;",
        "use serde_json::value::Value;",
        "use serde_json::{Map, Value as Json};",
        "use serde_json as json;",
        "pub struct Reply { pub body: Box<RawValue> }",
        "fn f(x: crate::transport::figures::Figures) {}",
    ] {
        assert!(!of_protocols(bad).is_empty(), "{bad}");
    }
    assert!(of_protocols("use taskledger_domain::payload::Json;").is_empty());
}

#[test]
fn decisions_are_made_without_json_and_without_words_for_callers() {
    /// What a caller reads is made of a variant of `Fault` or `Refusal`, outside the rules.
    const BANNED: [&str; 4] = ["serde_json", "Violation", "Value", "json"];
    let files = rust_files("domain/src/flow/decide");
    assert!(files.len() > 5, "the decisions are found");
    for (path, text) in files {
        let code = code(&text);
        let named = identifiers(&code);
        let found: Vec<_> = BANNED
            .iter()
            .filter(|name| named.contains(**name))
            .collect();
        assert!(found.is_empty(), "{path} names {found:?}");
    }
}

/// The crates of this repository that doors may name, and what of them; `None`: all of it.
const OF_CRATES: &[(&str, Option<&[&str]>)] = &[
    // The rules' own types, and the wires of protocols.
    ("taskledger_domain", None),
    ("taskledger_a2a", None),
    ("taskledger_eventbus", None),
    // Who calls, with what, and limits that parameters have.
    (
        "taskledger_auth",
        Some(&[
            "Action",
            "Caller",
            "DeniedJwt",
            "ID_CHARS",
            "Kind",
            "Name",
            "NAME_CHARS_MAX",
            "Outcome",
            "PREFIX",
            "SECRET_BYTES",
            "Scope",
            "Scopes",
            "SecretName",
            "TokenId",
            "tokens::AGENTS_MAX",
            "tokens::GRACE_DEFAULT_S",
            "tokens::GRACE_MAX_S",
            "tokens::LIFETIME_MAX_S",
            "tokens::METHODS_MAX",
            "tokens::NOTE_CHARS_MAX",
            "tokens::New",
        ]),
    ),
    // Limits that parameters have.
    (
        "taskledger_workers",
        Some(&["DESCRIPTION_CHARS_MAX", "LIMIT_MAX"]),
    ),
];

/// What a text names of crates that doors may not name.
fn behind_the_application(code: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for of in own_crates(code) {
        let known = OF_CRATES.iter().find(|(name, _)| *name == of);
        let allowed = match known {
            None => &[][..],
            Some((_, None)) => continue,
            Some((_, Some(allowed))) => allowed,
        };
        let paths = paths_into(code, of);
        let faulty = paths.iter().filter(|path| !is_within(path, allowed));
        faults.extend(faulty.map(|path| format!("`{of}::{path}`")));
    }
    faults
}

#[test]
fn doors_name_of_other_crates_only_what_is_listed() {
    let mut named = BTreeSet::new();
    for (path, text) in rust_files("src/transport") {
        let code = code(&text);
        let faults = behind_the_application(&code);
        assert!(faults.is_empty(), "{path}: {}", faults.join(", "));
        for (of, allowed) in OF_CRATES {
            let paths = paths_into(&code, of);
            let used = allowed
                .unwrap_or_default()
                .iter()
                .filter(|one| paths.iter().any(|path| is_within(path, &[one])));
            named.extend(used.map(|one| format!("{of}::{one}")));
        }
    }
    for (of, allowed) in OF_CRATES {
        for one in allowed.unwrap_or_default() {
            let path = format!("{of}::{one}");
            assert!(
                named.contains(&path),
                "`{path}` is listed, and no door names it"
            );
        }
    }
}

#[test]
fn rows_of_stores_are_found_in_doors() {
    for bad in [
        "use taskledger_auth::store::TokenRow;",
        "use taskledger_auth::{Kind, store::{AuditRow}};",
        "use taskledger_auth as auth;",
        "use taskledger_webhooks::store::Endpoint;",
        "fn f(row: &taskledger_projections::TaskRow) {}",
        "use taskledger_workers::*;",
        "use taskledger_log::Append;",
    ] {
        assert!(!behind_the_application(bad).is_empty(), "{bad}");
    }
    let good = "use taskledger_auth::{Kind, tokens::New}; use taskledger_domain::flow::Flow;";
    assert!(behind_the_application(good).is_empty());
}
