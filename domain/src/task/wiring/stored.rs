//! How references are stored: dependencies are named by id.

use super::place::readings;
use super::templates;
use super::{FROM, MEMBER, Unwired, WireFault, Written, is_static, may_have, written};
use crate::flow::{Dependency, Specification};
use crate::{Payload, TaskId, Violation, limits};
use serde_json::Value;

/// Why inputs cannot be taken from where a task says.
#[derive(Debug, Clone, PartialEq)]
pub enum Unresolved {
    /// A member of `schemas.wiring`.
    Wire(Unwired),
    /// A template, with a path that begins with `inputs`.
    Template(Violation),
}

/// The task with these dependencies, whose references name tasks by id: `find` says which task a
/// text means. Nothing for a task whose inputs are all literal. Cost: O(size), O(1) for such a task.
///
/// # Errors
/// Inputs that cannot be taken from where it says, at most [`limits::VIOLATIONS_MAX`] of each kind.
pub fn resolve(
    specification: &Specification,
    dependencies: &[Dependency],
    find: impl Fn(&str) -> Option<TaskId>,
) -> Result<Option<Specification>, Vec<Unresolved>> {
    let Some(schemas) = specification.schemas.as_ref().filter(|s| may_have(s)) else {
        return Ok(None);
    };
    let dependency = |name: &str| {
        let id = find(name)?;
        dependencies.iter().find(|dependency| dependency.id == id)
    };
    let wired = wired(schemas, specification, dependency);
    let inputs = templates::resolve(specification, dependency);
    match (wired, inputs) {
        (Ok(schemas), Ok(inputs)) => {
            let mut resolved = specification.clone();
            resolved.schemas = Some(schemas);
            resolved.inputs = inputs.unwrap_or(resolved.inputs);
            Ok(Some(resolved))
        }
        (wired, inputs) => {
            let wires = wired.err().into_iter().flatten().map(Unresolved::Wire);
            let templates = inputs.err().into_iter().flatten().map(Unresolved::Template);
            Err(wires.chain(templates).collect())
        }
    }
}

fn wired<'d>(
    schemas: &Payload,
    specification: &Specification,
    dependency: impl Fn(&str) -> Option<&'d Dependency>,
) -> Result<Payload, Vec<Unwired>> {
    let inputs = specification.inputs.to_map();
    let mut faults = Vec::new();
    let resolved = rewritten(schemas, |it| {
        let mut readings = readings(it.from);
        let found = readings.find_map(|(name, place)| Some((dependency(name)?, place)));
        let fault = match &found {
            None if is_static(it.from) && !inputs.contains_key(it.key) => None,
            None if !is_static(it.from) => Some(WireFault::NoDependency),
            None => Some(WireFault::InInputs),
            Some(_) if inputs.contains_key(it.key) => Some(WireFault::InInputs),
            Some((on, _)) if !on.when.is_required() && it.required && it.default.is_none() => {
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
        return Ok(resolved);
    }
    faults.truncate(limits::VIOLATIONS_MAX);
    Err(faults)
}

/// A copy of a task: what was copied with it is named by its new id.
#[must_use]
pub fn copied(
    mut specification: Specification,
    new_id: impl Fn(TaskId) -> Option<TaskId>,
) -> Specification {
    let Some(schemas) = specification.schemas.take_if(|schemas| may_have(schemas)) else {
        return specification;
    };
    let copied = |reference: &str| {
        let (name, place) = readings(reference).next()?;
        let id = new_id(TaskId::parse(name).ok()?)?;
        Some(format!("{id}{place}"))
    };
    specification.schemas = Some(rewritten(&schemas, |it| copied(it.from)));
    if let Some(inputs) = templates::rewritten(&specification, copied) {
        specification.inputs = inputs;
    }
    specification
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
