//! Inputs that are taken from the results of dependencies: `schemas.wiring`.
//!
//! `{"key": "<dependency>.<key of its result>"}`, optionally with `#` and a JSON pointer into the value;
//! `<dependency>#<pointer>` points into the result as a whole. In place of the text stands
//! `{from, required?, default?}`. A call names dependencies as it names tasks; what is stored names them by id, so
//! that it means the same in every later call. Values are looked up when an attempt begins and are not written back.

#[cfg(test)]
mod tests;

use crate::flow::{Dependency, Specification};
use crate::limits;
use crate::payload::Unfit;
use crate::{Payload, TaskId};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::{fmt, io};

/// The member of `schemas`.
const MEMBER: &str = "wiring";
const FROM: &str = "from";
const REQUIRED: &str = "required";
const DEFAULT: &str = "default";
/// Characters of an id.
const ID_CHARS: usize = 36;

/// How a reference is written.
pub const REFERENCE: &str =
    "`<dependency>.<key>`, with `#/<pointer>` behind it for a part of the value";

/// Something that is wrong with the form of `schemas.wiring`.
#[derive(Debug, Clone, PartialEq)]
pub struct FormFault<'a> {
    /// The names on the way to it, below `schemas.wiring`.
    pub path: Vec<&'a str>,
    /// What is wrong.
    pub reason: &'static str,
    /// What would be accepted.
    pub expected: String,
    /// What was found.
    pub found: Value,
}

/// Why an input cannot be wired as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum WireFault {
    /// It names nothing that the task depends on.
    NoDependency,
    /// `inputs` has the key too.
    InInputs,
    /// The dependency may end without a result, and the input has neither a default nor is it optional.
    MayBeAbsent,
}

/// An input that cannot be wired as it is written.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Unwired {
    /// Its key.
    pub key: String,
    /// The reference, as given.
    pub text: String,
    /// Why.
    pub fault: WireFault,
}

/// One input as it is written.
struct Written<'a> {
    key: &'a str,
    from: &'a str,
    required: bool,
    default: Option<&'a Value>,
}

/// Where a value lies in a result.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    key: Option<String>,
    /// A JSON pointer; empty for the whole value.
    pointer: String,
}

impl Place {
    /// Reads what stands behind the name of a dependency, from its `.` or `#` on.
    fn parse(text: &str) -> Option<Self> {
        let (key, pointer) = match text.strip_prefix('.') {
            Some(rest) => {
                let (key, pointer) = rest.split_once('#').unwrap_or((rest, ""));
                (Some(key.to_owned()), pointer)
            }
            None => (None, text.strip_prefix('#')?),
        };
        let is_key = key.as_ref().is_none_or(|key| !key.is_empty());
        (is_key && is_pointer(pointer)).then(|| Self {
            key,
            pointer: pointer.to_owned(),
        })
    }

    fn find<'v>(&self, result: &'v Map<String, Value>) -> Option<Found<'v>> {
        match &self.key {
            Some(key) => result.get(key)?.pointer(&self.pointer).map(Found::Value),
            None if self.pointer.is_empty() => Some(Found::Whole(result)),
            None => {
                // The first name of the pointer leads into the result, the rest into its value.
                let rest = &self.pointer[1..];
                let (first, behind) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                let key = first.replace("~1", "/").replace("~0", "~");
                result.get(&key)?.pointer(behind).map(Found::Value)
            }
        }
    }
}

enum Found<'v> {
    Value(&'v Value),
    Whole(&'v Map<String, Value>),
}

/// Counts what is written to it.
#[derive(Default)]
struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.0 += part.len();
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Found<'_> {
    /// Bytes of its text.
    fn bytes(&self) -> usize {
        let mut counter = Counter::default();
        let written = match self {
            Self::Value(value) => serde_json::to_writer(&mut counter, value),
            Self::Whole(result) => serde_json::to_writer(&mut counter, result),
        };
        written.expect("JSON can always be written to memory");
        counter.0
    }

    fn to_value(&self) -> Value {
        match self {
            Self::Value(value) => Value::clone(value),
            Self::Whole(result) => Value::Object(Map::clone(result)),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(key) = &self.key {
            write!(f, ".{key}")?;
        }
        if self.key.is_none() || !self.pointer.is_empty() {
            write!(f, "#{}", self.pointer)?;
        }
        Ok(())
    }
}

fn is_pointer(text: &str) -> bool {
    let mut escapes = text.split('~').skip(1);
    (text.is_empty() || text.starts_with('/'))
        && escapes.all(|behind| behind.starts_with(['0', '1']))
}

/// Ways in which a reference is read: a name of a dependency may hold fewer dots and `#`.
const READINGS_MAX: usize = 32;

/// The ways to read a reference, the shortest name of a dependency first. Cost: O(length), [`READINGS_MAX`] times at
/// worst.
fn readings(text: &str) -> impl Iterator<Item = (&str, Place)> {
    let ends = text.match_indices(['.', '#']).filter(|(at, _)| *at > 0);
    let ends = ends.take(READINGS_MAX);
    ends.filter_map(|(at, _)| Some((&text[..at], Place::parse(&text[at..])?)))
}

/// One input.
#[derive(Debug, Clone, PartialEq)]
struct Wire {
    key: String,
    /// As it is stored.
    text: String,
    /// `None`: it is not of the stored form, and there is no value.
    from: Option<(TaskId, Place)>,
    required: bool,
    default: Option<Value>,
}

/// The inputs of a task that are taken from results.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Wiring(Vec<Wire>);

/// Why the inputs of an attempt cannot be put together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputFault {
    /// Results have not what the wiring names.
    #[error("UnresolvableInputError: no value for {}", .0.join(", "))]
    Unresolvable(Vec<String>),
    /// Together they are larger or deeper than inputs may be.
    #[error("the inputs with the results that are wired to them are unfit: {0}")]
    Unfit(String),
}

impl InputFault {
    fn of(unfit: Unfit) -> Self {
        Self::Unfit(format!("{}; {}", unfit.reason(), unfit.expected()))
    }
}

impl Wiring {
    /// That of a stored task. Cost: O(1) for a task without, else O(size of `schemas`).
    #[must_use]
    pub fn of(specification: &Specification) -> Self {
        let schemas = specification.schemas.as_ref().filter(|s| may_have(s));
        let Some(map) = schemas.map(Payload::to_map) else {
            return Self::default();
        };
        let wires = written(&map).map(|it| {
            let reading = readings(it.from).next();
            Wire {
                key: it.key.to_owned(),
                text: it.from.to_owned(),
                from: reading.and_then(|(name, place)| Some((TaskId::parse(name).ok()?, place))),
                required: it.required,
                default: it.default.cloned(),
            }
        });
        Self(wires.collect())
    }

    /// Whether nothing is wired.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The inputs of an attempt: the literal ones, and each wired one from the result of its task; `None` for a
    /// task without result. Cost: O(bytes of all values).
    ///
    /// # Errors
    /// [`InputFault`].
    pub fn inputs<'r>(
        &self,
        literal: &Payload,
        result: impl Fn(TaskId) -> Option<&'r Map<String, Value>>,
    ) -> Result<Payload, InputFault> {
        let mut missing = Vec::new();
        let mut values = Vec::new();
        // Nothing is copied before it is known to fit: many inputs may name one large value.
        let mut bytes = literal.as_str().len();
        for wire in &self.0 {
            let source = wire.from.as_ref();
            let found = source.and_then(|(task, place)| place.find(result(*task)?));
            match found.or_else(|| wire.default.as_ref().map(Found::Value)) {
                Some(value) => {
                    bytes += wire.key.len() + value.bytes();
                    values.push((wire.key.clone(), value));
                }
                None if wire.required => missing.push(wire.text.clone()),
                None => {}
            }
            if bytes > limits::PAYLOAD_BYTES_MAX {
                return Err(InputFault::of(Unfit::TooLarge(bytes)));
            }
        }
        if !missing.is_empty() {
            return Err(InputFault::Unresolvable(missing));
        }
        let mut inputs = literal.to_map();
        inputs.extend(
            values
                .into_iter()
                .map(|(key, found)| (key, found.to_value())),
        );
        Payload::checked(&inputs).map_err(InputFault::of)
    }

    /// The keys of the inputs.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|wire| wire.key.as_str())
    }

    /// The tasks whose results are needed.
    pub fn sources(&self) -> impl Iterator<Item = TaskId> {
        let sources = self.0.iter().filter_map(|wire| Some(wire.from.as_ref()?.0));
        sources.collect::<BTreeSet<TaskId>>().into_iter()
    }
}

/// Whether inputs of a task are wired, by name or by id. Cost: O(1) for a task without, else O(size of `schemas`).
#[must_use]
pub fn is_wired(specification: &Specification) -> bool {
    let schemas = specification.schemas.as_ref().filter(|s| may_have(s));
    schemas.is_some_and(|schemas| written(&schemas.to_map()).next().is_some())
}

/// Whether the text of `schemas` may have the member: a text search, so that tasks without it cost nothing more.
fn may_have(schemas: &Payload) -> bool {
    schemas.as_str().contains("\"wiring\"")
}

/// `schemas` without the member; nothing for schemas that have none.
pub(super) fn without(schemas: &Payload) -> Option<Payload> {
    may_have(schemas).then(|| {
        let mut map = schemas.to_map();
        map.remove(MEMBER);
        Payload::from_map(&map)
    })
}

/// The inputs of a well-formed `schemas.wiring`.
fn written(schemas: &Map<String, Value>) -> impl Iterator<Item = Written<'_>> {
    let members = schemas.get(MEMBER).and_then(Value::as_object);
    members.into_iter().flatten().filter_map(|(key, value)| {
        let map = value.as_object();
        let member = |name| map.and_then(|map| map.get(name));
        Some(Written {
            key,
            from: value.as_str().or_else(|| member(FROM)?.as_str())?,
            required: member(REQUIRED).and_then(Value::as_bool).unwrap_or(true),
            default: member(DEFAULT),
        })
    })
}

/// The `schemas` of a task with these dependencies, whose references name tasks by id: `find` says which task a
/// text means. Nothing for a task without wiring. Cost: O(size), O(1) without wiring.
///
/// # Errors
/// Inputs that cannot be wired as they are written, at most [`limits::VIOLATIONS_MAX`].
pub fn resolve(
    specification: &Specification,
    dependencies: &[Dependency],
    find: impl Fn(&str) -> Option<TaskId>,
) -> Result<Option<Payload>, Vec<Unwired>> {
    let Some(schemas) = specification.schemas.as_ref().filter(|s| may_have(s)) else {
        return Ok(None);
    };
    let inputs = specification.inputs.to_map();
    let dependency = |name: &str| {
        let id = find(name)?;
        dependencies.iter().find(|dependency| dependency.id == id)
    };
    let mut faults = Vec::new();
    let resolved = rewritten(schemas, |it| {
        let mut readings = readings(it.from);
        let found = readings.find_map(|(name, place)| Some((dependency(name)?, place)));
        let fault = match &found {
            None => Some(WireFault::NoDependency),
            Some(_) if inputs.contains_key(it.key) => Some(WireFault::InInputs),
            Some((on, _)) if !on.required && it.required && it.default.is_none() => {
                Some(WireFault::MayBeAbsent)
            }
            Some(_) => None,
        };
        if let Some(fault) = fault {
            faults.push(Unwired {
                key: it.key.to_owned(),
                text: it.from.to_owned(),
                fault,
            });
        }
        found.map(|(on, place)| format!("{}{place}", on.id))
    });
    if faults.is_empty() {
        return Ok(Some(resolved));
    }
    faults.truncate(limits::VIOLATIONS_MAX);
    Err(faults)
}

/// The `schemas` of a copy of a task: what was copied with it is named by its new id. Nothing for a task without
/// wiring.
#[must_use]
pub fn copied(schemas: &Payload, new_id: impl Fn(TaskId) -> Option<TaskId>) -> Option<Payload> {
    may_have(schemas).then(|| {
        rewritten(schemas, |it| {
            let (name, place) = readings(it.from).next()?;
            let id = new_id(TaskId::parse(name).ok()?)?;
            Some(format!("{id}{place}"))
        })
    })
}

/// `schemas` with other references where `reference` gives some.
fn rewritten(
    schemas: &Payload,
    mut reference: impl FnMut(&Written<'_>) -> Option<String>,
) -> Payload {
    let mut map = schemas.to_map();
    let new = written(&map).filter_map(|it| Some((it.key.to_owned(), reference(&it)?)));
    let new: Vec<(String, String)> = new.collect();
    let mut members = map.get_mut(MEMBER).and_then(Value::as_object_mut);
    for (key, reference) in new {
        let member = members.as_mut().and_then(|members| members.get_mut(&key));
        match member {
            Some(Value::Object(wire)) => {
                wire.insert(FROM.to_owned(), Value::from(reference));
            }
            Some(text) => *text = Value::from(reference),
            None => {}
        }
    }
    Payload::from_map(&map)
}

/// What is wrong with the form of `schemas.wiring`, at most [`limits::VIOLATIONS_MAX`].
#[must_use]
pub fn form_faults(schemas: &Map<String, Value>) -> Vec<FormFault<'_>> {
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
    let faults = members
        .iter()
        .flat_map(|(key, value)| input_faults(key, value));
    faults.take(limits::VIOLATIONS_MAX).collect()
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
            let expected = format!("{REFERENCE}, or an object {{from, required, default}}");
            fault(vec![key], "Invalid reference", expected, value);
        }
        return faults;
    };
    for (name, member) in wire {
        let (reason, expected) = match name.as_str() {
            FROM if member.as_str().is_some_and(is_reference) => continue,
            REQUIRED if member.is_boolean() => continue,
            DEFAULT => continue,
            FROM => ("Invalid reference", REFERENCE),
            REQUIRED => ("Wrong type", "true or false"),
            _ => ("Unknown field", "`from`, `required` or `default`"),
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
fn is_reference(text: &str) -> bool {
    let Some((name, _)) = readings(text).next() else {
        return false;
    };
    let place = text[name.len()..].chars().count();
    text.chars().count() <= limits::REFERENCE_CHARS_MAX
        && place + ID_CHARS <= limits::REFERENCE_CHARS_MAX
}
