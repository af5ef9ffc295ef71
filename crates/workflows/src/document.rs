//! Reads the keys of a document, from the root down.

use serde_json::{Map, Value};
use taskledger_domain::limits::{KEY_CHARS_MAX, NAME_CHARS_MAX};

use crate::faults::Faults;
use crate::graph;
use crate::hash;
use crate::limits;
use crate::members::{Members, note};
use crate::node::{Kind, Node};
use crate::outline::Outline;
use crate::path::Path;
use crate::phase;
use crate::tasks::bytes;
use crate::types::{self, Named};
use crate::workflow::{Phase, Validation, Workflow};

const ACTED_ON: [&str; 5] = ["openintent", "info", "types", "workflow", "validation"];
/// Known to the reference package; kept and not acted on.
const KEPT: [&str; 5] = ["governance", "agents", "llm", "identity", "verification"];
const VERSION_DEFAULT: &str = "1.0.0";

/// Reads a document as far as possible and reports all its faults. What it returns is of use only if there are none.
pub(crate) fn read(root: &Node, faults: &Faults) -> Option<Workflow> {
    let Some(entries) = root.entries() else {
        let reason = format!("a workflow document is a map, found {}", root.shown());
        faults.error(crate::faults::Fault::new(&Path::default(), root.at, reason));
        return None;
    };
    let document = Members {
        faults,
        path: Path::default(),
        at: root.at,
        phase: None,
        entries,
    };
    let mut not_acted_on = Vec::new();
    let mut kept = Map::new();
    for entry in document.kept(&ACTED_ON, &KEPT) {
        note(&mut not_acted_on, || document.path.key(&entry.key));
        kept.insert(entry.key.clone(), entry.value.to_value());
    }
    check_format(&document);
    let info = document.map("info", "a map with `name`");
    let info = match info {
        Some(info) => info,
        None => {
            if document.get("info").is_none() {
                document.missing("info", "a map with `name`");
            }
            Members {
                entries: &[],
                ..document.clone()
            }
        }
    };
    let has_info = document
        .get("info")
        .is_some_and(|entry| entry.value.entries().is_some());
    for entry in info.kept(&["name", "version", "description"], &[]) {
        note(&mut not_acted_on, || info.path.key(&entry.key));
    }
    if has_info && info.get("name").is_none() {
        info.missing("name", "the name of the workflow");
    }
    let (types, named) = types(&document);
    let validation = validation(&document);
    let phases = phases(&document);
    let outline = Outline::read(&phases, &named, validation);
    let (mut read, mut edges) = (Vec::new(), Vec::new());
    for (index, members) in phases.iter().enumerate() {
        let node = document
            .get("workflow")
            .and_then(|entry| entry.value.entries()?.get(index));
        let is_map = node.is_some_and(|entry| matches!(entry.value.kind, Kind::Map(_)));
        if !is_map {
            edges.push(Vec::new());
            continue;
        }
        let (phase, depends_on) = phase::read(members, index, &outline, &named, &mut not_acted_on);
        read.push(phase);
        edges.push(depends_on);
    }
    check_repetition(&document, &read, types.as_ref());
    check_cycles(&phases, &outline, &edges);
    Some(Workflow {
        name: info
            .name("name", NAME_CHARS_MAX)
            .unwrap_or_default()
            .to_owned(),
        version: info
            .name("version", KEY_CHARS_MAX)
            .unwrap_or(VERSION_DEFAULT)
            .to_owned(),
        description: info.text("description").unwrap_or_default().to_owned(),
        types,
        phases: read,
        validation,
        kept,
        not_acted_on,
        hash: if faults.has_errors() {
            String::new()
        } else {
            hash::of(&root.to_value())
        },
    })
}

/// `openintent` has a value. RFC-0024 knows 1.0 and says nothing about others: those are read alike, with a warning.
fn check_format(document: &Members<'_>) {
    let Some(entry) = document.get("openintent") else {
        return document.missing("openintent", "the version of the format, such as \"1.0\"");
    };
    let is_empty = match &entry.value.kind {
        Kind::Scalar(Value::String(text)) => text.is_empty(),
        Kind::Scalar(Value::Number(number)) => number.as_f64() == Some(0.0),
        Kind::Scalar(value) => matches!(value, Value::Bool(false) | Value::Null),
        Kind::List(items) => items.is_empty(),
        Kind::Map(entries) => entries.is_empty(),
    };
    if is_empty {
        let expected = "the version of the format, such as \"1.0\"";
        document.wrong("openintent", &entry.value, expected, None);
    } else if !is_known_format(&entry.value) {
        let found = entry.value.shown();
        let reason =
            format!("unknown version of the format: {found}; the document is read as \"1.0\"");
        let fault = document.fault(&document.path.key("openintent"), entry.value.at, reason);
        document.faults.lax(fault.suggest(Some("write \"1.0\"")));
    }
}

/// Whether it is 1.0, as a text or a number.
fn is_known_format(version: &Node) -> bool {
    match version.scalar() {
        Some(Value::String(text)) => matches!(text.trim(), "1.0" | "1"),
        Some(Value::Number(number)) => number.as_f64() == Some(1.0),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => false,
    }
}

/// `types` as written, and compiled.
fn types(document: &Members<'_>) -> (Option<Map<String, Value>>, Named) {
    let Some(members) = document.map("types", "a map from names to types") else {
        return (None, Named::of(None).0);
    };
    let written = document.get("types").map(|entry| entry.value.to_map());
    let (named, faults) = Named::of(written.as_ref());
    if let Some(types) = document.get("types") {
        types::report(document, &members.path, types, faults, 1);
    }
    (written.filter(|types| !types.is_empty()), named)
}

fn validation(document: &Members<'_>) -> Validation {
    match document.text("validation") {
        Some("deep") | None => Validation::Deep,
        Some("shallow") => Validation::Shallow,
        Some(other) => {
            let meant = document
                .faults
                .did_you_mean(other, ["deep", "shallow"].into_iter());
            if let Some(entry) = document.get("validation") {
                document.wrong("validation", &entry.value, "`deep` or `shallow`", meant);
            }
            Validation::Deep
        }
    }
}

/// The phases in the order of the document. One that is no map is reported and has no members.
fn phases<'a>(document: &Members<'a>) -> Vec<Members<'a>> {
    let expected = "a map from names to phases";
    let Some(members) = document.map("workflow", expected) else {
        if document.get("workflow").is_none() {
            document.missing("workflow", expected);
        }
        return Vec::new();
    };
    if members.entries.is_empty() {
        members.error(&members.path, members.at, "the workflow has no phases");
    }
    if members.entries.len() > limits::PHASES_MAX {
        let (found, max) = (members.entries.len(), limits::PHASES_MAX);
        members.error(
            &members.path,
            members.at,
            format!("{found} phases, the limit is {max}"),
        );
        return Vec::new();
    }
    let phase = |entry: &'a crate::node::Entry| {
        let phase = Members {
            path: members.path.key(&entry.key),
            at: entry.at,
            phase: Some(&entry.key),
            entries: entry.value.entries().unwrap_or_default(),
            ..members.clone()
        };
        if entry.value.entries().is_none() {
            let reason = format!("a phase is a map, found {}", entry.value.shown());
            let at = if entry.value.is_null() {
                entry.at
            } else {
                entry.value.at
            };
            phase.error(&phase.path, at, reason);
        }
        phase
    };
    members.entries.iter().map(phase).collect()
}

/// `types` go with each task that names some, so together they must fit into one call.
fn check_repetition(document: &Members<'_>, phases: &[Phase], types: Option<&Map<String, Value>>) {
    let (Some(types), Some(entry)) = (types, document.get("types")) else {
        return;
    };
    let typed = phases.iter().filter(|phase| phase.is_typed()).count();
    let types = Value::from(types.clone());
    let all = (bytes(&types), "types", limits::REPEATED_BYTES_MAX);
    let max = limits::REPEATED_SCHEMA_BYTES_MAX;
    let schemas = (schema_bytes(&types), "JSON Schemas in types", max);
    for (bytes, of, max) in [all, schemas] {
        if typed > 1 && bytes.saturating_mul(typed) > max {
            let reason = format!(
                "{bytes} bytes of {of} for each of {typed} phases with outputs or typed inputs; together the limit is {max} bytes"
            );
            document.error(&document.path.key("types"), entry.at, reason);
        }
    }
}

/// Bytes of what stands behind `schema`; recursion: [`limits::LEVELS_MAX`].
fn schema_bytes(value: &Value) -> usize {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(key, member)| match key.as_str() {
                "schema" => bytes(member),
                _ => schema_bytes(member),
            })
            .sum(),
        Value::Array(items) => items.iter().map(schema_bytes).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn check_cycles(phases: &[Members<'_>], outline: &Outline<'_>, edges: &[Vec<usize>]) {
    for cycle in graph::cycles(edges) {
        let phase = &phases[cycle[0]];
        let names = cycle.iter().take(limits::CYCLE_NAMES_MAX);
        let mut names: Vec<_> = names
            .map(|index| format!("`{}`", outline.name(*index)))
            .collect();
        if cycle.len() > limits::CYCLE_NAMES_MAX {
            names.push(format!("… ({} phases)", cycle.len()));
        }
        names.push(format!("`{}`", outline.name(cycle[0])));
        let at = phase.get("depends_on").and_then(|entry| entry.at);
        let reason = format!(
            "phases depend on each other in a cycle: {}",
            names.join(" -> ")
        );
        phase.error(&phase.path.key("depends_on"), at, reason);
    }
}
