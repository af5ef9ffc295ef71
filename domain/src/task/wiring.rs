//! Inputs that are taken from the results of dependencies: `schemas.wiring`.
//!
//! `{"key": "<dependency>.<key of its result>"}`, optionally with `#` and a JSON pointer into the value;
//! `<dependency>#<pointer>` points into the result as a whole. In place of the text stands
//! `{from, type?, required?, default?}`. A call names dependencies as it names tasks; what is stored names them by id,
//! so that it means the same in every later call. Values are looked up when an attempt begins and are not written back.
//! With `schemas.templates`, texts of literal inputs hold references too (`templates.rs`), also to the attempt itself
//! (`attempt.rs`).

mod attempt;
mod filling;
mod form;
mod place;
mod stored;
mod template;
mod templates;
#[cfg(test)]
mod tests;
mod uses;

pub use attempt::AttemptIds;
use filling::Filling;
pub use form::form_faults;
use place::{Found, Place, readings};
pub use stored::{Unresolved, copied, resolve};
use templates::Templates;
use uses::pointer;
pub use uses::{POINTER_CHARS_MAX, Use};

use crate::contract::{Mismatch, Type, Types};
use crate::flow::Specification;
use crate::limits;
use crate::payload::Unfit;
use crate::violation::PathSegment;
use crate::{Payload, TaskId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashMap};

/// The member of `schemas`.
const MEMBER: &str = "wiring";
/// The member of `schemas` that says which phase of a workflow document the task is, and its member with the keys of
/// the inputs in the order of the document: members of JSON objects have no order.
const OF_DOCUMENT: &str = "workflow";
const INPUTS: &str = "inputs";
const FROM: &str = "from";
const TYPE: &str = "type";
const TYPES: &str = "types";
const REQUIRED: &str = "required";
const DEFAULT: &str = "default";
/// Characters of an id.
const ID_CHARS: usize = 36;

/// How a reference is written.
pub const REFERENCE: &str =
    "`<dependency>.<key>`, followed by `#/<pointer>` for a part of the value";

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
    /// The key of the input in `inputs`.
    pub key: String,
    /// The reference, as given.
    pub text: String,
    /// Why the reference cannot be used.
    pub fault: WireFault,
}

/// One input as it is written.
struct Written<'a> {
    key: &'a str,
    from: &'a str,
    declared: Option<&'a Value>,
    required: bool,
    default: Option<&'a Value>,
}

/// One input.
#[derive(Debug, Clone, PartialEq)]
struct Wire {
    key: String,
    /// As it is stored.
    text: String,
    /// `None`: it is not of the stored form, and there is no value.
    from: Option<(TaskId, Place)>,
    /// What the value must be.
    declared: Option<Type>,
    required: bool,
    default: Option<Value>,
}

/// A value that a task cannot do without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Need {
    text: Box<str>,
    from: Option<(TaskId, Place)>,
}

impl Need {
    /// The reference, as it is stored.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The task whose result should have it; `None` for a reference to no task.
    pub(crate) fn source(&self) -> Option<TaskId> {
        self.from.as_ref().map(|(task, _)| *task)
    }

    /// Whether a result has it.
    pub(crate) fn is_in(&self, result: &Map<String, Value>) -> bool {
        let place = self.from.as_ref().map(|(_, place)| place);
        place.is_some_and(|place| place.find(result).is_some())
    }

    /// Roughly what it takes in memory.
    pub(crate) fn weight_bytes(&self) -> usize {
        // The text stands in it twice, in parts.
        size_of::<Self>() + 2 * self.text.len()
    }
}

/// The inputs of a task that are taken from results.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Wiring {
    wires: Vec<Wire>,
    /// `None`: literal inputs are meant as they stand.
    templates: Option<Templates>,
}

/// Why the inputs of an attempt cannot be put together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputFault {
    /// Results have not what the wiring names.
    #[error("UnresolvableInputError: no value for {}", .0.join(", "))]
    Unresolvable(Vec<String>),
    /// Values are not of the types that the wiring declares for them.
    #[error("inputs do not conform: {}", .0.join("; "))]
    Unlike(Vec<String>),
    /// Together they are larger or deeper than inputs may be.
    #[error("the inputs with the results that are wired to them are unfit: {0}")]
    Unfit(String),
}

impl InputFault {
    fn of(unfit: Unfit) -> Self {
        Self::Unfit(format!("{}; {}", unfit.reason(), unfit.expected()))
    }
}

/// The place of each key of `wiring` in the document that declares it; empty for other tasks. Cost: O(inputs).
fn declared_order(schemas: &Map<String, Value>) -> HashMap<&str, usize> {
    let declared = schemas.get(OF_DOCUMENT).and_then(|of| of.get(INPUTS));
    let keys = declared.and_then(Value::as_array).into_iter().flatten();
    let keys = keys
        .filter_map(Value::as_str)
        .take(limits::WIRED_INPUTS_MAX);
    keys.enumerate().map(|(place, key)| (key, place)).collect()
}

impl Wiring {
    /// The wiring of a stored task, in the order of its document if it is of one. Cost: O(1) for a task without, else
    /// O(size of `schemas`).
    #[must_use]
    pub fn of(specification: &Specification) -> Self {
        let schemas = specification.schemas.as_ref().filter(|s| may_have(s));
        let Some(map) = schemas.map(Payload::to_map) else {
            return Self::default();
        };
        // What is stored is well-formed.
        let types = has_types(&map).then(|| Types::stored(map.get(TYPES)).ok());
        let types = types.flatten();
        let wires = written(&map).map(|it| {
            let declared = it.declared.zip(types.as_ref());
            Wire {
                declared: declared.and_then(|(declared, types)| types.type_of(declared).ok()),
                key: it.key.to_owned(),
                text: it.from.to_owned(),
                from: reference(it.from),
                required: it.required,
                default: it.default.cloned(),
            }
        });
        let mut wires: Vec<Wire> = wires.collect();
        let order = declared_order(&map);
        wires.sort_by_key(|wire| order.get(wire.key.as_str()).copied().unwrap_or(usize::MAX));
        Self {
            wires,
            templates: Templates::of(&map, &specification.inputs),
        }
    }

    /// Whether all inputs are literal.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.wires.is_empty() && self.templates.is_none()
    }

    /// The inputs of an attempt: the literal ones with what their templates name, and each wired one from the
    /// result of its task; `None` for a task without result. Cost: O(bytes of all values).
    ///
    /// # Errors
    /// [`InputFault`].
    pub fn inputs<'r>(
        &self,
        literal: &Payload,
        attempt: AttemptIds,
        result: impl Fn(TaskId) -> Option<&'r Map<String, Value>>,
    ) -> Result<Payload, InputFault> {
        let (mut missing, mut unlike) = (Vec::new(), Vec::new());
        let mut values = Vec::new();
        // Nothing is copied before it is known to fit: many inputs may name one large value.
        let mut bytes = literal.as_str().len();
        let templates = self.templates.as_ref();
        let of_attempt = attempt.values();
        let texts = templates.map(|it| it.values(&of_attempt, &result, &mut missing));
        let mut steps_left = limits::INPUT_CHECK_STEPS_MAX;
        for wire in &self.wires {
            let source = wire.from.as_ref();
            let found = source.and_then(|(task, place)| place.find(result(*task)?));
            match found.or_else(|| wire.default.as_ref().map(Found::Value)) {
                Some(value) if !wire.accepts(&value, &mut steps_left) => {
                    unlike.push(wire.mismatch(&value, &mut steps_left));
                }
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
        if let Some(values) = texts {
            let mut filling = Filling {
                values,
                bytes,
                unlike,
            };
            filling.fill(&mut inputs).map_err(InputFault::of)?;
            unlike = filling.unlike;
        }
        if !unlike.is_empty() {
            return Err(InputFault::Unlike(unlike));
        }
        inputs.extend(
            values
                .into_iter()
                .map(|(key, found)| (key, found.to_value())),
        );
        Payload::checked(&inputs).map_err(InputFault::of)
    }

    /// The values that no attempt can do without: those of templates, and of required inputs without a default.
    pub(crate) fn needs(&self) -> impl Iterator<Item = Need> {
        let needed = self
            .wires
            .iter()
            .filter(|wire| wire.required && wire.default.is_none());
        let needs = needed.map(|wire| Need {
            text: wire.text.as_str().into(),
            from: wire.from.clone(),
        });
        let templates = self.templates.iter().flat_map(Templates::needs);
        needs.chain(templates)
    }

    /// The wired inputs that name what only a workflow document has a value for, and their references. Cost: O(wired
    /// inputs).
    pub(crate) fn static_wires(&self) -> impl Iterator<Item = (&str, &str)> {
        let wires = self.wires.iter().filter(|wire| is_static(&wire.text));
        wires.map(|wire| (wire.key.as_str(), wire.text.as_str()))
    }

    /// The same for templates: the paths of their texts in the literal inputs, and their references; at most
    /// [`limits::VIOLATIONS_MAX`]. Cost: O(size of the inputs), O(1) without templates.
    pub(crate) fn static_templates(&self, literal: &Payload) -> Vec<(Vec<PathSegment>, String)> {
        match self.templates {
            Some(_) => templates::statics(&literal.to_map()),
            None => Vec::new(),
        }
    }

    /// References that no attempt can do without, and that results which are there have no value for: `result` is that
    /// of a task, if it has one. Cost: O(size of `schemas`).
    #[must_use]
    pub fn absent<'r>(
        &self,
        result: impl Fn(TaskId) -> Option<&'r Map<String, Value>>,
    ) -> Vec<String> {
        let absent = self.needs().filter(|need| {
            let result = need.source().and_then(&result);
            result.is_some_and(|result| !need.is_in(result))
        });
        absent.map(|need| need.text().to_owned()).collect()
    }

    /// What of the inputs of an attempt comes from results, in its place; null stands for what is literal. Cost:
    /// O(size).
    #[must_use]
    pub fn from_results(
        &self,
        literal: &Payload,
        inputs: &Map<String, Value>,
    ) -> Map<String, Value> {
        let wires = self.wires.iter().filter_map(|wire| {
            let (key, value) = inputs.get_key_value(&wire.key)?;
            Some((key.clone(), value.clone()))
        });
        let mut values: Map<String, Value> = wires.collect();
        if self.templates.is_some() {
            let filled = literal.to_map().into_iter().map(|(key, value)| {
                let filled = templates::from_results(&value, inputs.get(&key));
                (key, filled)
            });
            values.extend(filled);
        }
        values
    }

    /// Each value that may come from a result: of wires, and of templates in the literal inputs. Cost: O(size of the
    /// inputs).
    #[must_use]
    pub fn uses(&self, literal: &Payload) -> Vec<Use> {
        let wires = self.wires.iter().map(|wire| Use {
            input: pointer(&[PathSegment::from(wire.key.as_str())]),
            need: Need {
                text: wire.text.as_str().into(),
                from: wire.from.clone(),
            },
        });
        let mut uses: Vec<Use> = wires.collect();
        if self.templates.is_some() {
            templates::uses(&literal.to_map(), &mut uses);
        }
        uses
    }

    /// The tasks whose results are needed.
    pub fn sources(&self) -> impl Iterator<Item = TaskId> {
        let wires = self
            .wires
            .iter()
            .filter_map(|wire| Some(wire.from.as_ref()?.0));
        let templates = self.templates.iter().flat_map(Templates::sources);
        let sources = wires.chain(templates.filter_map(|(_, task)| task));
        sources.collect::<BTreeSet<TaskId>>().into_iter()
    }
}

/// Whether inputs of a task come from results, by name or by id. Cost: O(1) for a task without, else O(size of
/// `schemas`).
#[must_use]
pub fn is_wired(specification: &Specification) -> bool {
    let schemas = specification.schemas.as_ref().filter(|s| may_have(s));
    let schemas = schemas.map(Payload::to_map);
    schemas.is_some_and(|schemas| {
        written(&schemas).next().is_some() || templates::are_on(&schemas, &specification.inputs)
    })
}

/// The task that a stored reference begins with, and what stands behind its id; `None` for any other text.
#[must_use]
pub fn split_source(text: &str) -> Option<(TaskId, &str)> {
    let (id, rest) = text.split_at_checked(ID_CHARS)?;
    Some((TaskId::parse(id).ok()?, rest))
}

/// What a stored reference names: its first reading, by id.
fn reference(text: &str) -> Option<(TaskId, Place)> {
    let (name, place) = readings(text).next()?;
    Some((TaskId::parse(name).ok()?, place))
}

impl Wire {
    fn accepts(&self, value: &Found<'_>, steps_left: &mut u64) -> bool {
        let declared = self.declared.as_ref();
        declared.is_none_or(|declared| match value {
            Found::Value(value) => declared.accepts_within(value, steps_left),
            Found::Whole(_) => declared.accepts_within(&value.to_value(), steps_left),
        })
    }

    /// Says that a value is not of its type.
    fn mismatch(&self, value: &Found<'_>, steps_left: &mut u64) -> String {
        let declared = self.declared.as_ref();
        let value = value.to_value();
        let mismatches = declared.map(|it| it.mismatches_within(&value, steps_left));
        let first = mismatches.unwrap_or_default().into_iter().next();
        let Some(Mismatch {
            pointer,
            expected,
            actual,
            ..
        }) = first
        else {
            return format!("`{}`", self.key);
        };
        format!("`{}{pointer}`: {actual}, expected {expected}", self.key)
    }
}

/// Whether a type is declared for an input.
fn has_types(schemas: &Map<String, Value>) -> bool {
    written(schemas).any(|it| it.declared.is_some())
}

/// What a workflow document may name besides phases, where it had no value: `$trigger.key`, `$initial_state.key`.
fn is_static(text: &str) -> bool {
    text.starts_with("$trigger.") || text.starts_with("$initial_state.")
}

/// Whether `schemas` have a member that concerns inputs. Tasks without cost nothing more.
fn may_have(schemas: &Payload) -> bool {
    schemas.has_any(&[MEMBER, templates::MEMBER])
}

/// `schemas` without these members; nothing for schemas that have none.
pub(super) fn without(schemas: &Payload) -> Option<Payload> {
    may_have(schemas).then(|| {
        let mut map = schemas.to_map();
        map.remove(MEMBER);
        map.remove(templates::MEMBER);
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
            declared: member(TYPE),
            required: member(REQUIRED).and_then(Value::as_bool).unwrap_or(true),
            default: member(DEFAULT),
        })
    })
}
