//! Checks the form of `schemas.wiring`, before any reference is resolved.

use super::place::readings;
use super::{
    DEFAULT, FROM, FormFault, ID_CHARS, MEMBER, REFERENCE, REQUIRED, TYPE, TYPES, has_types,
    written,
};
use crate::contract::Types;
use crate::limits;
use crate::suggestion::known_member;
use serde_json::{Map, Value};

/// What is wrong with the form of `schemas.wiring`, at most [`limits::VIOLATIONS_MAX`]. Tasks of one call share the
/// steps of compiling JSON Schemas.
#[must_use]
pub fn form_faults<'a>(
    schemas: &'a Map<String, Value>,
    steps_left: &mut u64,
) -> Vec<FormFault<'a>> {
    let Some(value) = schemas.get(MEMBER) else {
        return Vec::new();
    };
    let whole = |reason, expected, found: Value| {
        let path = Vec::new();
        vec![FormFault {
            path,
            reason,
            expected,
            found,
        }]
    };
    let Some(members) = value.as_object() else {
        let expected = "an object that maps keys of inputs to references".to_owned();
        return whole("Wrong type", expected, value.clone());
    };
    if members.len() > limits::WIRED_INPUTS_MAX {
        let expected = format!("at most {} inputs", limits::WIRED_INPUTS_MAX);
        return whole("Too many inputs", expected, Value::from(members.len()));
    }
    let forms = members
        .iter()
        .flat_map(|(key, value)| input_faults(key, value));
    let types = type_faults(schemas, steps_left);
    forms.chain(types).take(limits::VIOLATIONS_MAX).collect()
}

/// What is wrong with the types that are declared for inputs; what is wrong with `types` is told with `outputs`, or
/// here when there are none.
fn type_faults<'a>(schemas: &'a Map<String, Value>, steps_left: &mut u64) -> Vec<FormFault<'a>> {
    if !has_types(schemas) {
        return Vec::new();
    }
    let types = match Types::parse_within(schemas.get(TYPES), steps_left) {
        Ok(types) => types,
        Err(_) if schemas.contains_key("outputs") => return Vec::new(),
        Err(faults) => {
            let faults = faults.into_iter().map(|fault| FormFault {
                path: Vec::new(),
                reason: "Invalid type",
                expected: format!("`{}`: {}", fault.path.join("."), fault.expected),
                found: fault.found,
            });
            return faults.collect();
        }
    };
    let wires = written(schemas).filter_map(|it| Some((it.key, it.declared?, it.default)));
    let mut check_steps = limits::DEFAULT_CHECK_STEPS_MAX;
    let mut all = Vec::new();
    for (key, declared, default) in wires {
        match types.type_of_within(declared, steps_left) {
            Ok(of) => all.extend(default.and_then(|default| {
                let mismatch = of.mismatches_within(default, &mut check_steps);
                let mismatch = mismatch.into_iter().next()?;
                Some(FormFault {
                    path: vec![key, DEFAULT],
                    reason: "Wrong type",
                    expected: mismatch.expected,
                    found: default.clone(),
                })
            })),
            Err(faults) => all.extend(faults.into_iter().map(|fault| FormFault {
                path: vec![key, TYPE],
                reason: fault.reason,
                expected: fault.expected,
                found: fault.found,
            })),
        }
    }
    all
}

/// What is wrong with the form of one input.
fn input_faults<'a>(key: &'a str, value: &'a Value) -> Vec<FormFault<'a>> {
    let mut faults = Vec::new();
    let mut fault = |path, reason, expected, found: &Value| {
        faults.push(FormFault {
            path,
            reason,
            expected,
            found: found.clone(),
        });
    };
    if !(1..=limits::KEY_CHARS_MAX).contains(&key.chars().count()) {
        let expected = format!("a key of 1 to {} characters", limits::KEY_CHARS_MAX);
        fault(vec![key], "Invalid value", expected, &Value::from(key));
    }
    let Some(wire) = value.as_object() else {
        if !value.as_str().is_some_and(is_reference) {
            let expected = format!("{REFERENCE}, or an object {{from, type, required, default}}");
            fault(vec![key], "Invalid reference", expected, value);
        }
        return faults;
    };
    for (name, member) in wire {
        let (reason, expected) = match name.as_str() {
            FROM if member.as_str().is_some_and(is_reference) => continue,
            REQUIRED if member.is_boolean() => continue,
            // Looked at with the types that it may name.
            TYPE => continue,
            DEFAULT => continue,
            FROM => ("Invalid reference", REFERENCE),
            REQUIRED => ("Wrong type", "true or false"),
            _ => {
                let expected = known_member(name, &[FROM, TYPE, REQUIRED, DEFAULT]);
                fault(vec![key, name], "Unknown field", expected, member);
                continue;
            }
        };
        fault(vec![key, name], reason, expected.to_owned(), member);
    }
    if !wire.contains_key(FROM) {
        let (reason, expected) = ("Required field is missing", REFERENCE.to_owned());
        fault(vec![key, FROM], reason, expected, &Value::Null);
    }
    faults
}

/// Whether a text can be a reference, and still is one when its name has become an id.
pub(super) fn is_reference(text: &str) -> bool {
    let Some((name, _)) = readings(text).next() else {
        return false;
    };
    let place = text[name.len()..].chars().count();
    text.chars().count() <= limits::REFERENCE_CHARS_MAX
        && place + ID_CHARS <= limits::REFERENCE_CHARS_MAX
}
