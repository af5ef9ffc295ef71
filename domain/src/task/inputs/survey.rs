//! One pass over a schema as its author wrote it: what counts, how much there is of it, and where
//! its references lead. Says nothing about values; `rewrite` uses what is found here.

use super::limits;
use super::report::{LimitedList, at_schema};
use crate::violation::{PathSegment, Violation};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What a member of a schema holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Schema,
    SchemaOrList,
    List,
    Named,
    /// `dependencies`: a schema or a list of names for each name.
    NamedOrNames,
    Plain,
}

/// The assertions and applicators of draft-07; `None` for what the compiler need not see.
fn holds(keyword: &str) -> Option<Holds> {
    Some(match keyword {
        "additionalItems"
        | "additionalProperties"
        | "contains"
        | "propertyNames"
        | "not"
        | "if"
        | "then"
        | "else" => Holds::Schema,
        "items" => Holds::SchemaOrList,
        "allOf" | "anyOf" | "oneOf" => Holds::List,
        "properties" | "patternProperties" | "definitions" => Holds::Named,
        "dependencies" => Holds::NamedOrNames,
        "type" | "enum" | "const" | "multipleOf" | "maximum" | "exclusiveMaximum" | "minimum"
        | "exclusiveMinimum" | "maxLength" | "minLength" | "pattern" | "maxItems" | "minItems"
        | "uniqueItems" | "maxProperties" | "minProperties" | "required" | "format"
        | "contentMediaType" | "contentEncoding" => Holds::Plain,
        _ => return None,
    })
}

/// The members that count: next to a `$ref`, draft-07 ignores all but what others may refer to.
pub(super) fn members(schema: &Map<String, Value>) -> impl Iterator<Item = (&str, &Value, Holds)> {
    let refers = schema.contains_key("$ref");
    schema.iter().filter_map(move |(keyword, value)| {
        let kind = holds(keyword)?;
        (!refers || keyword == "definitions").then_some((keyword.as_str(), value, kind))
    })
}

/// What `rewrite` needs to know of a schema that keeps to its limits.
pub(super) struct Surveyed {
    /// For each subschema with a `$ref`, by its pointer as written: the pointer, after rewriting,
    /// of what it refers to.
    pub(super) references: BTreeMap<String, String>,
    /// Regular expressions.
    pub(super) patterns: usize,
    /// It has `anyOf` or `oneOf`.
    pub(super) branches: bool,
}

/// Goes over `schema` once. Cost: O(size), which the first check bounds.
///
/// # Errors
/// The limits that it exceeds and the references that it may not make.
pub(super) fn survey(schema: &Value) -> Result<Surveyed, Vec<Violation>> {
    if let Some(violation) = oversize(schema) {
        return Err(vec![violation]);
    }
    let mut survey = Survey::default();
    survey.visit(schema, "", &mut Vec::new(), &mut String::new());
    survey.count_limits();
    let root_id = schema.get("$id").and_then(Value::as_str).unwrap_or("");
    let mut references = BTreeMap::new();
    for (path, pointer, reference) in std::mem::take(&mut survey.references) {
        match survey.resolve(root_id, &reference) {
            Some(target) => {
                references.insert(pointer, target);
            }
            None => survey.faults.push(|| {
                Violation::new(
                    &path,
                    "refers to something outside of the schema, or to no subschema of it",
                    "`#`, `#/...` to a subschema, or `#name` of a subschema with `$id` `#name`",
                    &Value::from(reference.as_str()),
                )
            }),
        }
    }
    let faults = survey.faults.into_vec();
    if !faults.is_empty() {
        return Err(faults);
    }
    Ok(Surveyed {
        references,
        patterns: survey.patterns,
        branches: survey.branches,
    })
}

/// For each subschema with a `$ref`, by its pointer: the pointer of what it refers to, both as written. Cost:
/// O(size); meant for schemas that keep to the limits.
pub(super) fn targets(schema: &Value) -> BTreeMap<String, String> {
    let mut survey = Survey::default();
    survey.visit(schema, "", &mut Vec::new(), &mut String::new());
    let root_id = schema.get("$id").and_then(Value::as_str).unwrap_or("");
    let written = survey.pointers.iter().map(|(written, to)| (to, written));
    let written: BTreeMap<_, _> = written.collect();
    let references = survey.references.iter();
    let found = references.filter_map(|(_, pointer, reference)| {
        let target = survey.resolve(root_id, reference)?;
        Some((pointer.clone(), (*written.get(&target)?).clone()))
    });
    found.collect()
}

/// The limits that must hold before anything walks over the schema.
fn oversize(schema: &Value) -> Option<Violation> {
    fn deeper_than(value: &Value, levels: usize) -> bool {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
            Value::Array(_) | Value::Object(_) if levels == 0 => true,
            Value::Array(items) => items.iter().any(|v| deeper_than(v, levels - 1)),
            Value::Object(map) => map.values().any(|v| deeper_than(v, levels - 1)),
        }
    }
    if !schema.is_object() && !schema.is_boolean() {
        return Some(at_schema(
            "is not a schema",
            "an object or a boolean",
            schema,
        ));
    }
    if deeper_than(schema, limits::SCHEMA_DEPTH_MAX) {
        return Some(at_schema(
            "is nested too deeply",
            format!("at most {} levels", limits::SCHEMA_DEPTH_MAX),
            &Value::Null,
        ));
    }
    let bytes = schema.to_string().len();
    (bytes > limits::SCHEMA_BYTES_MAX).then(|| {
        at_schema(
            "is too large",
            format!("at most {} bytes of JSON text", limits::SCHEMA_BYTES_MAX),
            &json!(bytes),
        )
    })
}

/// One pass over the schema as written. Recursion is bounded by `SCHEMA_DEPTH_MAX`.
#[derive(Default)]
struct Survey {
    faults: LimitedList,
    subschemas: usize,
    patterns: usize,
    branches: bool,
    /// From a subschema's pointer as written to its pointer after rewriting.
    pointers: BTreeMap<String, String>,
    /// From `#name` to the pointer after rewriting.
    names: BTreeMap<String, String>,
    /// Where each `$ref` stands (for people, and the pointer of its subschema), and its text.
    references: Vec<(Vec<PathSegment>, String, String)>,
}

impl Survey {
    fn visit(
        &mut self,
        schema: &Value,
        target: &str,
        path: &mut Vec<PathSegment>,
        at: &mut String,
    ) {
        self.subschemas += 1;
        self.pointers.insert(at.clone(), target.to_owned());
        let Value::Object(map) = schema else {
            return; // a boolean, or a fault that the meta-schema names
        };
        self.identity(map, target, path);
        if let Some(Value::String(reference)) = map.get("$ref") {
            let mut place = path.clone();
            place.push("$ref".into());
            self.references.push((place, at.clone(), reference.clone()));
        }
        for (keyword, value, kind) in members(map) {
            path.push(keyword.into());
            let (length, below) = (at.len(), format!("{target}/allOf/1/{keyword}"));
            at.push('/');
            at.push_str(keyword);
            self.member(keyword, value, path);
            match (kind, value) {
                (Holds::Schema | Holds::SchemaOrList, Value::Object(_) | Value::Bool(_)) => {
                    self.visit(value, &below, path, at);
                }
                (Holds::SchemaOrList | Holds::List, Value::Array(items)) => {
                    for (i, item) in items.iter().enumerate() {
                        let step = i.to_string();
                        self.child(item, &step, i.into(), &below, path, at);
                    }
                }
                (Holds::Named | Holds::NamedOrNames, Value::Object(named)) => {
                    for (name, item) in named {
                        if item.is_object() || item.is_boolean() {
                            self.child(item, name, name.as_str().into(), &below, path, at);
                        }
                    }
                }
                (
                    Holds::Plain
                    | Holds::Schema
                    | Holds::SchemaOrList
                    | Holds::List
                    | Holds::Named
                    | Holds::NamedOrNames,
                    _,
                ) => {}
            }
            at.truncate(length);
            path.pop();
        }
    }

    fn child(
        &mut self,
        item: &Value,
        step: &str,
        segment: PathSegment,
        below: &str,
        path: &mut Vec<PathSegment>,
        at: &mut String,
    ) {
        let length = at.len();
        let step = escape(step);
        at.push('/');
        at.push_str(&step);
        path.push(segment);
        self.visit(item, &format!("{below}/{step}"), path, at);
        path.pop();
        at.truncate(length);
    }

    /// `$schema` and `$id`.
    fn identity(&mut self, map: &Map<String, Value>, target: &str, path: &[PathSegment]) {
        let at = |member: &str| {
            let mut place = path.to_vec();
            place.push(member.into());
            place
        };
        if let Some(dialect) = map.get("$schema") {
            let known = dialect.as_str().is_some_and(|text| {
                matches!(
                    text.trim_end_matches('#'),
                    "http://json-schema.org/draft-07/schema"
                        | "https://json-schema.org/draft-07/schema"
                )
            });
            if !known {
                self.faults.push(|| {
                    Violation::new(
                        &at("$schema"),
                        "names a dialect other than draft-07",
                        "`http://json-schema.org/draft-07/schema#`, or no `$schema`",
                        dialect,
                    )
                });
            }
        }
        match map.get("$id").and_then(Value::as_str) {
            Some(name) if name.starts_with('#') && name.len() > 1 => {
                self.names.insert(name.to_owned(), target.to_owned());
            }
            Some(id) if !path.is_empty() => self.faults.push(|| {
                Violation::new(
                    &at("$id"),
                    "changes the base of references below the root",
                    "`$id` at the root, or `#name`",
                    &Value::from(id),
                )
            }),
            Some(_) | None => {}
        }
    }

    /// What one member adds to the counts.
    fn member(&mut self, keyword: &str, value: &Value, path: &[PathSegment]) {
        match (keyword, value) {
            ("pattern", Value::String(text)) => self.pattern(text, path),
            ("patternProperties", Value::Object(named)) => {
                for text in named.keys() {
                    self.pattern(text, path);
                }
            }
            ("enum", Value::Array(values)) if values.len() > limits::ENUM_VALUES_MAX => {
                self.faults.push(|| {
                    Violation::new(
                        path,
                        "has too many values",
                        format!("at most {} values", limits::ENUM_VALUES_MAX),
                        &json!(values.len()),
                    )
                });
            }
            ("anyOf" | "oneOf", _) => self.branches = true,
            _ => {}
        }
    }

    fn pattern(&mut self, text: &str, path: &[PathSegment]) {
        self.patterns += 1;
        if text.len() > limits::PATTERN_BYTES_MAX {
            self.faults.push(|| {
                Violation::new(
                    path,
                    "is too long for a regular expression",
                    format!("at most {} bytes", limits::PATTERN_BYTES_MAX),
                    &json!(text.len()),
                )
            });
        }
    }

    fn count_limits(&mut self) {
        let counts = [
            ("subschemas", self.subschemas, limits::SUBSCHEMAS_MAX),
            ("regular expressions", self.patterns, limits::PATTERNS_MAX),
        ];
        for (what, actual, max) in counts {
            if actual > max {
                self.faults.push(|| {
                    at_schema(
                        format!("has too many {what}"),
                        format!("at most {max}"),
                        &json!(actual),
                    )
                });
            }
        }
    }

    /// The pointer, after rewriting, of what `reference` names.
    fn resolve(&self, root_id: &str, reference: &str) -> Option<String> {
        let base = root_id.trim_end_matches('#');
        let fragment = match reference.strip_prefix(base) {
            Some(rest) if !base.is_empty() && (rest.is_empty() || rest.starts_with('#')) => rest,
            Some(_) | None => reference,
        };
        if let Some(target) = self.names.get(fragment) {
            return Some(target.clone());
        }
        let pointer = match fragment {
            "" if reference.is_empty() => return None,
            "" => String::new(),
            _ => percent_decode(fragment.strip_prefix('#')?)?,
        };
        // One spelling for each pointer: `~1` and `~0` only where they are needed.
        let spelled = match pointer.strip_prefix('/') {
            Some(rest) => rest.split('/').fold(String::new(), |text, step| {
                text + "/" + &escape(&step.replace("~1", "/").replace("~0", "~"))
            }),
            None => pointer,
        };
        self.pointers.get(&spelled).cloned()
    }
}

/// A step of a JSON pointer.
pub(super) fn escape(step: &str) -> String {
    step.replace('~', "~0").replace('/', "~1")
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let digit = |b: u8| char::from(b).to_digit(16);
            let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
            u8::try_from(high * 16 + low).ok()?
        } else {
            byte
        });
    }
    String::from_utf8(bytes).ok()
}
