//! Templates in the texts of literal inputs, for tasks with `schemas.templates: true`.
//!
//! A text that is one template becomes the value, with its type. In a longer text, texts are put as they are,
//! numbers, `true` and `false` as JSON. What is put in is not read again. Keys of objects hold no templates.

use super::attempt::is_of_attempt;
use super::form::is_reference;
use super::place::{Found, Place, readings};
use super::template::{self, Part, Unclosed, parts};
use super::{Need, Use, is_static, pointer, reference};
use crate::flow::{Dependency, Specification};
use crate::limits;
use crate::violation::PathSegment;
use crate::{Payload, TaskId, Violation};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

#[cfg(test)]
mod tests;

/// The member of `schemas`.
pub(super) const MEMBER: &str = "templates";

/// How a reference in a template is written.
const TEMPLATE_REFERENCE: &str = "`<dependency>.<key>`, followed by `#/<pointer>` for a part of the value, or `task.id`, \
                                  `run.id`, `attempt`";

/// Where a value comes from.
type Source = (TaskId, Place);

/// What the inputs of a task refer to.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Templates(BTreeMap<String, Option<Source>>);

impl Templates {
    /// Those of a stored task; `None` when its inputs are meant as they stand. Cost: O(size), O(1) for a task
    /// without.
    pub(super) fn of(schemas: &Map<String, Value>, inputs: &Payload) -> Option<Self> {
        if !are_on(schemas, inputs) {
            return None;
        }
        let mut found = BTreeMap::new();
        each_text(&inputs.to_map(), &mut |_, text| {
            for part in read(text).unwrap_or_default() {
                if let Part::Reference(text) = part
                    && !found.contains_key(text)
                {
                    found.insert(text.to_owned(), reference(text));
                }
            }
            true
        });
        Some(Self(found))
    }

    /// Each reference to a result once.
    pub(super) fn needs(&self) -> impl Iterator<Item = Need> {
        let needs = self.0.iter().filter(|(text, _)| !is_of_attempt(text));
        needs.map(|(text, from)| Need {
            text: text.as_str().into(),
            from: from.clone(),
        })
    }

    /// Where the values come from.
    pub(super) fn sources(&self) -> impl Iterator<Item = (&str, Option<TaskId>)> {
        let sources = self.0.iter();
        sources.map(|(text, from)| (text.as_str(), from.as_ref().map(|(task, _)| *task)))
    }

    /// What the references mean; those without a value go to `missing`.
    pub(super) fn values<'v, 'r: 'v>(
        &self,
        of_attempt: &'v [(&'static str, Value)],
        result: impl Fn(TaskId) -> Option<&'r Map<String, Value>>,
        missing: &mut Vec<String>,
    ) -> BTreeMap<&str, Found<'v>> {
        let mut values = BTreeMap::new();
        for (text, from) in &self.0 {
            let found = from
                .as_ref()
                .and_then(|(task, place)| place.find(result(*task)?));
            let mut of_attempt = of_attempt.iter().filter(|(name, _)| name == text);
            match found.or_else(|| Some(Found::Value(&of_attempt.next()?.1))) {
                Some(value) => drop(values.insert(text.as_str(), value)),
                None => missing.push(text.clone()),
            }
        }
        values
    }
}

/// Adds each template with the place of its text.
pub(super) fn uses(inputs: &Map<String, Value>, uses: &mut Vec<Use>) {
    each_text(inputs, &mut |path, text| {
        for part in read(text).unwrap_or_default() {
            if let Part::Reference(text) = part
                && !is_of_attempt(text)
            {
                let need = Need {
                    text: text.into(),
                    from: reference(text),
                };
                let input = pointer(path);
                uses.push(Use { input, need });
            }
        }
        true
    });
}

/// The references to what only a workflow document has a value for, each with the path of its text.
pub(super) fn statics(inputs: &Map<String, Value>) -> Vec<(Vec<PathSegment>, String)> {
    let mut found = Vec::new();
    each_text(inputs, &mut |path, text| {
        for part in read(text).unwrap_or_default() {
            if let Part::Reference(text) = part
                && is_static(text)
            {
                found.push((path.to_vec(), text.to_owned()));
            }
        }
        found.len() < limits::VIOLATIONS_MAX
    });
    found.truncate(limits::VIOLATIONS_MAX);
    found
}

/// The values that results have in the inputs of an attempt; null stands for what is literal.
pub(super) fn from_results(literal: &Value, filled: Option<&Value>) -> Value {
    match literal {
        Value::String(text) if template::may_have(text) => {
            let parts = read(text).unwrap_or_default();
            let is_literal = |part: &Part<'_>| !matches!(part, Part::Reference(_));
            match parts.iter().all(is_literal) {
                true => Value::Null,
                false => filled.cloned().unwrap_or_default(),
            }
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items
                .map(|(i, item)| from_results(item, filled.and_then(|it| it.get(i))))
                .collect()
        }
        Value::Object(members) => {
            let members = members.iter().map(|(key, member)| {
                let filled = filled.and_then(|it| it.get(key));
                (key.clone(), from_results(member, filled))
            });
            Value::Object(members.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Value::Null,
    }
}

/// Whether templates count in these inputs. Cost: O(size of the inputs) at worst, a text search.
pub(super) fn are_on(schemas: &Map<String, Value>, inputs: &Payload) -> bool {
    // In JSON they stand in texts only.
    schemas.get(MEMBER) == Some(&Value::Bool(true)) && template::may_have(inputs.as_str())
}

/// The inputs of a task whose templates name tasks by id; `None` when there are none.
///
/// # Errors
/// What is wrong, with paths that begin with `inputs`, at most [`limits::VIOLATIONS_MAX`].
pub(super) fn resolve<'d>(
    specification: &Specification,
    dependency: impl Fn(&str) -> Option<&'d Dependency>,
) -> Result<Option<Payload>, Vec<Violation>> {
    let mut faults = Vec::new();
    let mut count = 0;
    if let Some(inputs) = texts(specification) {
        each_text(&inputs, &mut |path, text| {
            let mut fault = |reason: &str, expected: &str, found: &str| {
                let found = Value::from(found);
                let path = [&["inputs".into()], path].concat();
                faults.push(Violation::new(&path, reason, expected, &found));
            };
            for part in parts(text) {
                let reference = match part {
                    Ok(Part::Text(_) | Part::Escape { .. }) => continue,
                    Ok(Part::Reference(reference)) => reference,
                    Err(Unclosed(rest)) => {
                        let expected = r"`}}` behind the reference, or `\{{` for the text `{{`";
                        fault("Template is not closed", expected, rest);
                        break;
                    }
                };
                count += 1;
                match of(reference, &dependency) {
                    Ok(()) if count <= limits::TEMPLATES_MAX => {}
                    Ok(()) => {
                        let expected =
                            format!("at most {} templates in `inputs`", limits::TEMPLATES_MAX);
                        fault("Too many templates", &expected, reference);
                        return false;
                    }
                    Err((reason, expected)) => fault(reason, expected, reference),
                }
            }
            faults.len() < limits::VIOLATIONS_MAX
        });
    }
    faults.truncate(limits::VIOLATIONS_MAX);
    if !faults.is_empty() {
        return Err(faults);
    }
    let stored = rewritten(specification, |reference| {
        let found = readings(reference)
            .find_map(|(name, place)| Some(format!("{}{place}", dependency(name)?.id)));
        Some(found.unwrap_or_else(|| reference.to_owned()))
    });
    let stored = stored.map(|inputs| Payload::checked(&inputs.to_map()));
    stored.transpose().map_err(|unfit| {
        let found = Value::from(unfit.found());
        let reason = format!("{} with the ids of dependencies", unfit.reason());
        let path = [PathSegment::from("inputs")];
        vec![Violation::new(&path, reason, unfit.expected(), &found)]
    })
}

/// Whether a reference has a dependency that it can rest on; else what is wrong, and what would be accepted.
fn of<'d>(
    reference: &str,
    dependency: impl Fn(&str) -> Option<&'d Dependency>,
) -> Result<(), (&'static str, &'static str)> {
    let is_of_attempt = is_of_attempt(reference);
    if reference.contains(template::OPEN) || !(is_of_attempt || is_reference(reference)) {
        return Err(("Invalid reference", TEMPLATE_REFERENCE));
    }
    if is_static(reference) {
        return Ok(());
    }
    match readings(reference).find_map(|(name, _)| dependency(name)) {
        None if is_of_attempt => Ok(()),
        None => Err((
            "Not a dependency of the task",
            "a reference to a task of `dependencies`, as it is named there, or `task.id`, `run.id`, `attempt`",
        )),
        Some(on) if !on.when.is_required() => Err((
            "The dependency is optional and may have no result",
            "a dependency that is required, or a default in `schemas.wiring`",
        )),
        Some(_) => Ok(()),
    }
}

/// The inputs with other references where `reference` gives some; `None` when there are no templates.
pub(super) fn rewritten(
    specification: &Specification,
    reference: impl Fn(&str) -> Option<String>,
) -> Option<Payload> {
    let mut inputs = texts(specification)?;
    let rewrite = |text: &str| {
        let parts = read(text).ok()?;
        let parts = parts.into_iter().map(|part| match part {
            Part::Text(text) | Part::Escape { written: text, .. } => text.to_owned(),
            Part::Reference(text) => {
                template::written(&reference(text).unwrap_or_else(|| text.to_owned()))
            }
        });
        Some(parts.collect::<String>())
    };
    inputs
        .values_mut()
        .for_each(|value| rewrite_value(value, &rewrite));
    Some(Payload::from_map(&inputs))
}

fn rewrite_value(value: &mut Value, rewrite: &impl Fn(&str) -> Option<String>) {
    match value {
        Value::String(text) if template::may_have(text) => {
            if let Some(new) = rewrite(text) {
                *text = new;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|it| rewrite_value(it, rewrite)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|it| rewrite_value(it, rewrite)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The inputs of a task in which templates count.
fn texts(specification: &Specification) -> Option<Map<String, Value>> {
    let schemas = specification.schemas.as_ref()?;
    let inputs = &specification.inputs;
    let is_on = super::may_have(schemas) && are_on(&schemas.to_map(), inputs);
    is_on.then(|| inputs.to_map())
}

/// The pieces of a text that is well-formed as a whole.
pub(super) fn read(text: &str) -> Result<Vec<Part<'_>>, Unclosed<'_>> {
    parts(text).collect()
}

/// Shows `see` each text that may have templates, with the names on the way to it, until it returns false.
fn each_text<'v>(
    inputs: &'v Map<String, Value>,
    see: &mut impl FnMut(&[PathSegment], &'v str) -> bool,
) {
    let mut path = Vec::new();
    for (key, value) in inputs {
        path.push(PathSegment::from(key.as_str()));
        if !each_text_of(value, &mut path, see) {
            return;
        }
        path.pop();
    }
}

fn each_text_of<'v>(
    value: &'v Value,
    path: &mut Vec<PathSegment>,
    see: &mut impl FnMut(&[PathSegment], &'v str) -> bool,
) -> bool {
    let mut below = |step: PathSegment, value| {
        path.push(step);
        let goes_on = each_text_of(value, path, see);
        path.pop();
        goes_on
    };
    match value {
        Value::String(text) => !template::may_have(text) || see(path, text),
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.all(|(i, item)| below(i.into(), item))
        }
        Value::Object(members) => members
            .iter()
            .all(|(key, value)| below(key.as_str().into(), value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}
