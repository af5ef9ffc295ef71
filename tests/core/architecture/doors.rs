//! Doors hold the application, and nothing behind it.

use super::names::{identifiers, is_within, paths};
use super::use_cases::{self, NO_USE_CASE};
use super::{code, rust_files};
use std::collections::{BTreeMap, BTreeSet};

/// Names of the log that no door may speak, and crates that hold it.
const NAMES: [&str; 2] = ["EventStore", "taskledger_log"];
/// The part of the server that is the log, as an import and as a member of whatever holds it.
const PART: &str = "store";

/// What reaches the log in the code of a file: names, imports, and members called `store`. A call
/// `.store(..)` is none: atomics have it.
fn reaches_the_log(file: &str, text: &str) -> Vec<String> {
    let code = code(text);
    let mut found: Vec<String> = Vec::new();
    for name in NAMES {
        let count = code.matches(name).count();
        found.extend(std::iter::repeat_n(format!("`{name}`"), count));
    }
    let is_of_the_log =
        |path: &Vec<String>| path.len() > 1 && path[0] == "crate" && path[1] == PART;
    if paths(file, text).iter().any(is_of_the_log) {
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
        let found = reaches_the_log(path, text);
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
        "use super::super::store::Append;",
        "fn f(log: &dyn EventStore) {}",
        "use taskledger_log::Append;",
    ] {
        assert!(
            !reaches_the_log("src/transport/a.rs", bad).is_empty(),
            "{bad}"
        );
    }
    for good in [
        "self.closing.store(true, Ordering::Relaxed);",
        "context.stored + context.store_size",
        "use crate::application::Service;",
    ] {
        assert!(
            reaches_the_log("src/transport/a.rs", good).is_empty(),
            "{good}"
        );
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

/// The parts that lie behind the doors, and what doors may name of each.
const BEHIND: &[(&str, &[&str])] = &[
    ("application", &["Service", "Context", "api", "context"]),
    ("engine", &[]),
    ("store", &[]),
    ("subscription", &["cursor", "live", "notice", "stream"]),
    ("webhooks", &[]),
];
/// What only parts behind the doors name.
const INNER: &[&str] = &["EventStore", "ReadModels", "Mailbox"];

/// What a door names of what lies behind it, and may not. A part as a whole and all names of one are refused as well:
/// they could be anything.
fn behind_the_door(file: &str, text: &str) -> Vec<String> {
    let is_behind = |path: &Vec<String>| {
        let [first, part, inner @ ..] = path.as_slice() else {
            return path.concat() == "crate";
        };
        let rule = BEHIND.iter().find(|(behind, _)| behind == part);
        let named = inner.first().map_or("*", String::as_str);
        let is_refused = match rule {
            None => part == "*",
            Some((_, allowed)) => {
                !allowed.contains(&named) || inner.last().is_some_and(|last| last == "*")
            }
        };
        first == "crate" && is_refused
    };
    let paths = paths(file, text).into_iter().filter(is_behind);
    let mut found: Vec<String> = paths.map(|path| format!("`{}`", path.join("::"))).collect();
    let code = code(text);
    let inner = INNER.iter().filter(|name| code.contains(**name));
    found.extend(inner.map(|name| format!("`{name}`")));
    found
}

#[test]
fn a_door_holds_the_service_and_nothing_behind_it() {
    for (path, text) in rust_files("src/transport") {
        let found = behind_the_door(&path, &text);
        assert!(found.is_empty(), "{path}: {}", found.join(", "));
    }
}

#[test]
fn what_lies_behind_a_door_is_found_under_every_spelling() {
    for bad in [
        "use crate::application::flows::Flows;",
        "use crate::application::*;",
        "use crate::application::{api::*, Service};",
        "use crate::{application::flows::Flows, clock};",
        "use crate::{clock, application::{Service, flows::{self}}};",
        "use super::super::application::flows::Flows;",
        "use super::super::{application::{flows::Flows}};",
        "mod inner { use super::super::super::application::flows::Flows; }",
        "use crate::application as app;",
        "use crate::application::{self as app};",
        "use crate::application; fn f() { application::Service::new() }",
        "use crate::application::flows as context;",
        "use crate::subscription::*;",
        "use crate::subscription::runner::Handle;",
        "use crate::*;",
        "use super::super::*;",
        "use crate as root;",
        "use super::super as root; fn f() { root::engine::run() }",
        "extern crate self as own;",
        "use taskledger::application::flows::Flows;",
        "fn f() { crate::engine::run() }",
        "fn f() { super::super::webhooks::send() }",
        "#[serde(with = \"crate::store::text\")] struct S;",
        "#[arg(value_parser = crate::store::parse)] struct S;",
        "fn f(x: &Mailbox) {}",
    ] {
        let found = behind_the_door("src/transport/a.rs", bad);
        assert!(!found.is_empty(), "{bad}");
    }
    for good in [
        "use crate::application::{Context, Service, api::Error as Refused, context::valid};",
        "use crate::application::api; fn f() -> api::Error { api::runs::error() }",
        "use crate::subscription::{notice::Kind as Notice, stream::Items};",
        "use crate::clock; use super::jsonrpc::*; use super::http::application;",
        "// use crate::application::*;\n#[cfg(test)]\nmod tests { use crate::application::App; }",
    ] {
        let found = behind_the_door("src/transport/a.rs", good);
        assert_eq!(found, [""; 0], "{good}");
    }
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
    let (mut asking, mut faults) = (0, Vec::new());
    let mut excepted = BTreeSet::new();
    for (path, text) in rust_files("src/application") {
        for found in use_cases::of(&code(&text)) {
            let name = found.name.as_str();
            match NO_USE_CASE.iter().find(|(known, _)| *known == name) {
                Some((known, _)) => _ = excepted.insert(*known),
                None if found.is_asking => asking += 1,
                None => faults.push(format!("{path}: `{name}` asks nobody")),
            }
            if found.is_asking && excepted.contains(name) {
                faults.push(format!("{path}: `{name}` asks and needs no exception"));
            }
        }
    }
    let unknown = NO_USE_CASE.iter().filter(|(n, _)| !excepted.contains(n));
    faults.extend(unknown.map(|(name, _)| format!("`{name}` is excepted and not there")));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(asking > 80, "only {asking} use cases were found");
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

/// What a file names of the crates of this repository: the crate, and the path in it.
fn of_crates(file: &str, text: &str) -> BTreeSet<(String, String)> {
    let paths = paths(file, text).into_iter();
    let ours = paths.filter(|path| path[0].starts_with("taskledger_"));
    ours.map(|path| (path[0].clone(), path[1..].join("::")))
        .collect()
}

/// What a text names of crates that doors may not name.
fn behind_the_application(file: &str, text: &str) -> Vec<String> {
    let is_allowed = |of: &str, path: &str| {
        let known = OF_CRATES.iter().find(|(name, _)| *name == of);
        known.is_some_and(|(_, names)| names.is_none_or(|names| is_within(path, names)))
    };
    let named = of_crates(file, text).into_iter();
    let faulty = named.filter(|(of, path)| !is_allowed(of, path));
    faulty.map(|(of, path)| format!("`{of}::{path}`")).collect()
}

#[test]
fn doors_name_of_other_crates_only_what_is_listed() {
    let mut named = BTreeSet::new();
    for (path, text) in rust_files("src/transport") {
        let faults = behind_the_application(&path, &text);
        assert!(faults.is_empty(), "{path}: {}", faults.join(", "));
        named.extend(of_crates(&path, &text));
    }
    for (of, allowed) in OF_CRATES {
        for one in allowed.unwrap_or_default() {
            let is_named = named
                .iter()
                .any(|(name, path)| name == of && is_within(path, &[one]));
            assert!(is_named, "`{of}::{one}` is listed, and no door names it");
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
        assert!(
            !behind_the_application("src/transport/a.rs", bad).is_empty(),
            "{bad}"
        );
    }
    let good = "use taskledger_auth::{Kind, tokens::New}; use taskledger_domain::flow::Flow;";
    assert_eq!(behind_the_application("src/transport/a.rs", good), [""; 0]);
}
