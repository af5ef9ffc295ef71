//! One phase of a document.

use serde_json::{Map, Value};
use std::collections::HashSet;
use taskledger_domain::limits::KEY_CHARS_MAX;

use crate::executors;
use crate::initial_state;
use crate::inputs;
use crate::members::{Members, note};
use crate::node::short;
use crate::outline::Outline;
use crate::reference::Consumer;
use crate::retry;
use crate::skip;
use crate::timers;
use crate::types::Named;
use crate::workflow::{Phase, SkipWhen, Source, StartAt};

const ACTED_ON: [&str; 12] = [
    "title",
    "description",
    "assign",
    "depends_on",
    "constraints",
    "initial_state",
    "inputs",
    "outputs",
    "retry",
    "start_at",
    "delay_seconds",
    "skip_when",
];
/// Known to the reference package; kept and not acted on.
const KEPT: [&str; 7] = [
    "leasing",
    "cost_tracking",
    "attachments",
    "permissions",
    "access",
    "delegation",
    "context",
];

/// Reads the phase at `index` of the outline. Second, the positions of the phases that it depends on; a phase with
/// faults is read as far as possible.
pub(crate) fn read(
    members: &Members<'_>,
    index: usize,
    outline: &Outline<'_>,
    types: &Named,
    not_acted_on: &mut Vec<String>,
) -> (Phase, Vec<usize>) {
    let mut kept = Map::new();
    for entry in members.kept(&ACTED_ON, &KEPT) {
        note(not_acted_on, || members.path.key(&entry.key));
        kept.insert(entry.key.clone(), entry.value.to_value());
    }
    let skip_when = outline.skip_when(index).cloned();
    if let (None, Some(entry)) = (&skip_when, members.get("skip_when")) {
        let path = members.path.key("skip_when");
        note(not_acted_on, || path.clone());
        kept.insert(entry.key.clone(), entry.value.to_value());
        let reason = "is not understood: the phase is never skipped";
        let fault = members.fault(&path, entry.value.at, reason);
        members.faults.lax(fault.suggest(Some(skip::FORMS)));
    }
    let assign = members.name("assign", KEY_CHARS_MAX);
    if members.get("assign").is_none() {
        members.missing("assign", "who works on the phase");
    }
    if let Some(assign) = assign {
        executors::check(members, assign);
    }
    let depends_on = depends_on(members, index, outline);
    let own = members.map("initial_state", "a map");
    let node = own.and_then(|_| members.get("initial_state"));
    let initial_state = node.map(|entry| entry.value.to_map()).unwrap_or_default();
    let consumer = Consumer {
        outline,
        phase: index,
        depends_on: &depends_on.iter().copied().collect(),
        initial_state: &initial_state,
        validation: outline.validation(),
        faults: members.faults,
    };
    let inputs = inputs::read(members, &consumer, types, not_acted_on);
    let start_at = timers::start_at(members, &initial_state);
    if let Some(SkipWhen::Value { source, .. }) = &skip_when {
        let so = "the condition takes it for null";
        note_lacking(members, ("skip_when", source, so), &initial_state);
    }
    if let Some(StartAt::Value { source, .. }) = &start_at {
        let so = "the phase is not held back";
        note_lacking(members, ("start_at", source, so), &initial_state);
    }
    let constraints = members.texts("constraints", "a list of strings");
    let phase = Phase {
        name: outline.name(index).to_owned(),
        title: outline.title(index).to_owned(),
        description: members.text("description").unwrap_or_default().to_owned(),
        assign: assign.unwrap_or_default().to_owned(),
        depends_on: depends_on
            .iter()
            .map(|at| outline.name(*at).to_owned())
            .collect(),
        inputs,
        outputs: outline.outputs(index).cloned(),
        constraints: constraints
            .into_iter()
            .map(|(_, text, _)| text.to_owned())
            .collect(),
        retry: retry::read(members, not_acted_on),
        start_at,
        delay_seconds: timers::delay_seconds(members),
        skip_when,
        initial_state,
        kept,
    };
    (phase, depends_on)
}

/// Reports that a member refers to what `initial_state` does not have, with what follows from that.
fn note_lacking(
    members: &Members<'_>,
    (member, source, so): (&str, &Source, &str),
    state: &Map<String, Value>,
) {
    let lacking = initial_state::lacking(state, source, members.faults);
    if let (Some((what, near)), Some(entry)) = (lacking, members.get(member)) {
        let path = members.path.key(member);
        let fault = members.fault(&path, entry.value.at, format!("{what}: {so}"));
        let add = || "add it to `initial_state`, null if it is to have no value".to_owned();
        members
            .faults
            .lax(fault.suggest(Some(near.unwrap_or_else(add))));
    }
}

/// Names of phases, each once; a title that only one phase has stands for its name.
fn depends_on(members: &Members<'_>, own: usize, outline: &Outline<'_>) -> Vec<usize> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for (i, text, at) in members.texts("depends_on", "a list of phase names") {
        let path = members.path.key("depends_on").index(i);
        let fault = |reason: String| members.fault(&path, at, reason);
        let shown = short(text);
        let named = outline.index(text);
        if named.is_none() && outline.is_shared_title(text) {
            let reason = format!("several phases have the title `{shown}`");
            let suggestion = Some("name the phase by its key");
            members.faults.error(fault(reason).suggest(suggestion));
            continue;
        }
        let Some(index) = named.or_else(|| outline.titled(text)) else {
            let meant = members.faults.did_you_mean(text, outline.names());
            members
                .faults
                .error(fault(format!("there is no phase `{shown}`")).suggest(meant));
            continue;
        };
        if index == own {
            members
                .faults
                .error(fault("the phase depends on itself".to_owned()));
            continue;
        }
        if named.is_none() {
            let name = outline.name(index);
            let reason = format!("`{shown}` is the title of phase `{name}`");
            let suggestion = Some(format!("write `{name}`"));
            members.faults.lax(fault(reason).suggest(suggestion));
        }
        if seen.insert(index) {
            found.push(index);
        } else {
            members
                .faults
                .lax(fault(format!("`{shown}` is listed twice")));
        }
    }
    found
}
