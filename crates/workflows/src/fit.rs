//! Checks whether the value that an input will get has the declared type, as far as that is known before a run.

use serde_json::Map;
use taskledger_domain::contract::{Compatible, Mismatch, Type};

use crate::faults::Fault;
use crate::members::Members;
use crate::node::{At, short};
use crate::reference::Consumer;
use crate::workflow::{Input, Source, Validation};

/// Reports what does not fit: the output that the input comes from, its initial state, its default. `of` is the
/// declared type of the input, whose members are `own`.
pub(crate) fn check(own: &Members<'_>, input: &Input, of: Option<&Type>, consumer: &Consumer<'_>) {
    let at = |member: &str| {
        let entry = own.get(member);
        entry.map_or(own.at, |entry| entry.value.at)
    };
    check_source(own, input, of, consumer, at("type"));
    let (Some(of), Some(default)) = (of, &input.default) else {
        return;
    };
    if let Some(mismatch) = own.faults.mismatch(of, default) {
        let path = own.path.key("default");
        let entry = own.entries.iter().find(|entry| entry.key == "default");
        let at = entry.and_then(|entry| entry.value.at.or(entry.at));
        let reason = format!("the default is not of its type: {}", told(&mismatch));
        own.error(&path, at, reason);
    }
}

fn check_source(
    own: &Members<'_>,
    input: &Input,
    of: Option<&Type>,
    consumer: &Consumer<'_>,
    at: Option<At>,
) {
    let faults = own.faults;
    let fault = |reason: String| -> Fault {
        let fault = own.fault(&own.path, at, reason);
        fault.wiring(vec![input.reference.clone()])
    };
    match &input.source {
        Source::Phase {
            phase,
            key,
            pointer,
        } => {
            let index = consumer.outline.index(phase);
            let Some(whole) = index.and_then(|index| consumer.outline.type_of(index, key)) else {
                return;
            };
            let whole = match consumer.validation {
                Validation::Deep => whole.clone(),
                Validation::Shallow => whole.clone().shallow(),
            };
            let pointer = pointer.as_deref().unwrap_or_default();
            let from = short(&input.reference);
            let Some(produced) = whole.at(pointer) else {
                faults.error_with(|| {
                    let whole = faults.shown_type(&whole);
                    let place = short(pointer);
                    fault(format!(
                        "`{from}` is never there: values of type `{whole}` have nothing at `{place}`"
                    ))
                });
                return;
            };
            let Some(of) = of.filter(|of| !of.is_any() && !produced.is_any()) else {
                return;
            };
            let told = || (faults.shown_type(&produced), faults.shown_type(of));
            match faults.compatible(&produced, of) {
                Some(Compatible::Never) => faults.error_with(|| {
                    let (produced, of) = told();
                    fault(format!(
                        "`{from}` is of type `{produced}`, which is never of type `{of}`"
                    ))
                }),
                Some(Compatible::Maybe) => {
                    let (produced, of) = told();
                    faults.lax(fault(format!(
                        "`{from}` is of type `{produced}`, which may be not of type `{of}`"
                    )));
                }
                Some(Compatible::Definite) | None => {}
            }
        }
        Source::InitialState { .. } => {
            let trigger = Map::new();
            let value = input.fixed(&trigger, consumer.initial_state);
            let checked = of.zip(value);
            let mismatch = checked.and_then(|(of, value)| faults.mismatch(of, value));
            if let Some(mismatch) = mismatch {
                let from = short(&input.reference);
                faults.error(fault(format!(
                    "`{from}` is not of its type: {}",
                    told(&mismatch)
                )));
            }
        }
        Source::Trigger { .. } => {}
    }
}

/// One mismatch in words.
pub(crate) fn told(mismatch: &Mismatch) -> String {
    let Mismatch {
        pointer,
        expected,
        actual,
        ..
    } = mismatch;
    let (expected, actual) = (short(expected), short(actual));
    match pointer.as_str() {
        "" => format!("expected `{expected}`, found {actual}"),
        pointer => format!(
            "expected `{expected}` at `{}`, found {actual}",
            short(pointer)
        ),
    }
}
