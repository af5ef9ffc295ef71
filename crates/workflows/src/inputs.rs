//! Reads `inputs` of a phase. Each bad reference is an `InputWiringError` at its place; the first one of a phase names
//! all references of the phase that are wrong. spec: RFC-0024 2, 4.4, 8

use serde_json::{Map, Value};
use taskledger_domain::limits::WIRED_INPUTS_MAX;

use crate::faults::Fault;
use crate::fit;
use crate::initial_state;
use crate::members::{Members, note};
use crate::node::{At, Entry, short};
use crate::outline;
use crate::reference::{Bad, Consumer};
use crate::source::is_local_key;
use crate::types::{self, Named};
use crate::workflow::{Input, SkipWhen, Source};

const MEMBERS: [&str; 4] = ["from", "type", "required", "default"];

/// A reference that is wrong.
struct Invalid<'a> {
    key: &'a str,
    text: String,
    at: Option<At>,
    bad: Bad,
}

/// Reads the inputs of a phase; those that are wrong are reported and left out.
pub(crate) fn read(
    phase: &Members<'_>,
    consumer: &Consumer<'_>,
    types: &Named,
    not_acted_on: &mut Vec<String>,
) -> Vec<(String, Input)> {
    let Some(members) = phase.map("inputs", "a map from keys to references") else {
        return Vec::new();
    };
    if members.entries.len() > WIRED_INPUTS_MAX {
        let (found, max) = (members.entries.len(), WIRED_INPUTS_MAX);
        let reason = format!("{found} inputs, the limit is {max}");
        members.error(&members.path, members.at, reason);
        return Vec::new();
    }
    let (mut inputs, mut invalid) = (Vec::new(), Vec::new());
    for entry in members.entries {
        if !is_local_key(&entry.key) {
            let bad = bad("the key has no or more than 255 characters");
            invalid.push(Invalid {
                key: &entry.key,
                text: written(entry),
                at: entry.at,
                bad,
            });
            continue;
        }
        match input(entry, &members, consumer, types, not_acted_on) {
            Ok(input) => {
                check_presence(entry, &input, &members, consumer);
                inputs.push((entry.key.clone(), input));
            }
            Err(it) => invalid.push(it),
        }
    }
    report(&members, invalid);
    inputs
}

/// One fault for each, at its place; the first in the text says all references, as one error of the phase would.
fn report(members: &Members<'_>, invalid: Vec<Invalid<'_>>) {
    let first = (0..invalid.len()).min_by_key(|i| invalid[*i].at);
    let mut all = Some(invalid.iter().map(|it| it.text.clone()).collect());
    for (i, it) in invalid.into_iter().enumerate() {
        let (key, text) = (short(it.key), short(&it.text));
        let reason = format!("`{key}`: `{text}` {}", it.bad.reason);
        let fault = members.fault(&members.path.key(it.key), it.at, reason);
        let refs = all.take_if(|_| Some(i) == first);
        let fault = fault.wiring(refs.unwrap_or_else(|| vec![it.text]));
        members.faults.error(fault.suggest(it.bad.suggestion));
    }
}

fn bad(reason: impl Into<String>) -> Bad {
    Bad {
        reason: reason.into(),
        suggestion: None,
    }
}

/// The expression, as an error names it.
fn written(entry: &Entry) -> String {
    let text = entry.value.text().map(str::to_owned);
    text.unwrap_or_else(|| short(&entry.value.to_value().to_string()))
}

/// A reference, or `{from, type?, required?, default?}`.
fn input<'a>(
    entry: &'a Entry,
    members: &Members<'_>,
    consumer: &Consumer<'_>,
    types: &Named,
    not_acted_on: &mut Vec<String>,
) -> Result<Input, Invalid<'a>> {
    let invalid = |text: String, at, bad| Invalid {
        key: &entry.key,
        text,
        at,
        bad,
    };
    let own = Members {
        path: members.path.key(&entry.key),
        at: entry.at,
        entries: entry.value.entries().unwrap_or_default(),
        ..members.clone()
    };
    let from = match entry.value.entries() {
        None => &entry.value,
        Some(_) => match own.get("from") {
            Some(from) => &from.value,
            None => {
                let bad = bad("has no `from`, which names where the value comes from");
                return Err(invalid(written(entry), entry.at, bad));
            }
        },
    };
    let Some(text) = from.text() else {
        let at = if from.is_null() { entry.at } else { from.at };
        let bad = bad("must be a reference, or a map {from, type, required, default}");
        return Err(invalid(written(entry), at, bad));
    };
    let source = consumer.source(text);
    let source = source.map_err(|bad| invalid(text.to_owned(), from.at, bad))?;
    for member in own.kept(&MEMBERS, &[]) {
        note(not_acted_on, || own.path.key(&member.key));
    }
    let required = own.get("required").map(|member| &member.value);
    let is_required = required.map(|node| node.scalar().and_then(Value::as_bool));
    if let (Some(node), Some(None)) = (required, is_required) {
        own.wrong("required", node, "true or false", None);
    }
    let type_ = own.get("type").map(|member| {
        let declaration = member.value.to_value();
        let compiled = outline::checked(types.type_of(&declaration), member, &own);
        (declaration, compiled)
    });
    let (type_, compiled) = type_.unzip();
    // A default may be null, so it is looked for in the entries themselves.
    let default = own.entries.iter().find(|member| member.key == "default");
    let input = Input {
        reference: text.to_owned(),
        source,
        required: is_required.flatten().unwrap_or(true),
        default: default.map(|member| member.value.to_value()),
        type_,
    };
    fit::check(&own, &input, compiled.flatten().as_ref(), consumer);
    Ok(input)
}

/// Reports what can be seen now of a value that will not be there.
fn check_presence(entry: &Entry, input: &Input, members: &Members<'_>, consumer: &Consumer<'_>) {
    if !input.needs_value() {
        return;
    }
    let fault = |reason: String, suggestion: String| -> Fault {
        let fault = members.fault(&members.path.key(&entry.key), entry.value.at, reason);
        fault
            .suggest(Some(suggestion))
            .wiring(vec![input.reference.clone()])
    };
    match &input.source {
        Source::Phase { phase, key, .. } => {
            let upstream = consumer.outline.index(phase);
            let condition = upstream.and_then(|index| consumer.outline.skip_when(index));
            if condition.is_some_and(SkipWhen::may_hold) {
                let suggestion = format!(
                    "write `{{from: {}, default: ..}}`, or `required: false`",
                    short(&input.reference)
                );
                let own = consumer.outline.is_skipped(consumer.phase);
                let is_skipped = upstream.and_then(|index| consumer.outline.is_skipped(index));
                match (is_skipped, own) {
                    // It never holds, or the input is never needed.
                    (Some(false), _) | (_, Some(true)) => {}
                    (Some(true), Some(false)) => {
                        let reason = format!(
                            "`{phase}` is skipped in every run, and this input is required: no run can be created"
                        );
                        members.faults.error(fault(reason, suggestion));
                        return;
                    }
                    (Some(true) | None, None) | (None, Some(false)) => {
                        let reason = format!(
                            "`{phase}` may be skipped, and this input is required: a run without `{phase}` is refused"
                        );
                        members.faults.lax(fault(reason, suggestion));
                        return;
                    }
                }
            }
            let outputs = upstream.and_then(|index| consumer.outline.outputs(index));
            if outputs
                .and_then(|map| map.get(key))
                .is_some_and(types::is_optional)
            {
                let key = short(key);
                let reason = format!(
                    "output `{key}` of `{phase}` is optional, and this input is required: without the value the phase cannot start"
                );
                let suggestion = format!(
                    "write `{{from: {}, default: ..}}`, or `required: false`",
                    short(&input.reference)
                );
                members.faults.lax(fault(reason, suggestion));
            }
        }
        Source::InitialState { key, .. } => {
            let state = consumer.initial_state;
            if input.fixed(&Map::new(), state).is_some() {
                return;
            }
            let shown = short(key);
            let is_null = || (format!("`{shown}` of `initial_state` is null"), None);
            let lacking = initial_state::lacking(state, &input.source, members.faults);
            let (what, near) = lacking.unwrap_or_else(is_null);
            let reason = format!("{what}: without the value the phase cannot start");
            let add = || format!("add `{shown}` to `initial_state`, or give a default");
            members.faults.lax(fault(reason, near.unwrap_or_else(add)));
        }
        Source::Trigger { .. } => {}
    }
}
