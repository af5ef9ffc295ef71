//! Measures a schema against its limits and rewrites it for the compiler.
//!
//! Each subschema `S` becomes `{"allOf": [{"x-fuel": price}, S]}`, so that the gauge runs before
//! `S` does. That moves everything one step down, hence each `$ref` is resolved here, against the
//! schema as its author wrote it, and written anew. What is no draft-07 assertion (titles,
//! defaults, unknown members) is left out. Paths in violations are those of the author.

use super::fuel::{KEYWORD, Price};
use super::limits;
use super::report::LimitedList;
use crate::violation::{PathSegment, Violation};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A schema for the compiler.
#[derive(Debug)]
pub(super) struct Rewritten {
    pub(super) schema: Value,
    /// See `CompiledSchema::weight`.
    pub(super) weight: usize,
    /// It has `anyOf` or `oneOf`.
    pub(super) branches: bool,
}

/// What a member of a schema holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
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
fn members(schema: &Map<String, Value>) -> impl Iterator<Item = (&str, &Value, Holds)> {
    let refers = schema.contains_key("$ref");
    schema.iter().filter_map(move |(keyword, value)| {
        let kind = holds(keyword)?;
        (!refers || keyword == "definitions").then_some((keyword.as_str(), value, kind))
    })
}

/// Rewrites `schema`. Cost: O(size), which the first check bounds.
///
/// # Errors
/// The limits that it exceeds and the references that it may not make.
pub(super) fn rewrite(schema: &Value) -> Result<Rewritten, Vec<Violation>> {
    if let Some(violation) = oversize(schema) {
        return Err(vec![violation]);
    }
    let mut survey = Survey::default();
    survey.visit(schema, "", &mut Vec::new(), &mut String::new());
    survey.count_limits();
    let root_id = schema.get("$id").and_then(Value::as_str).unwrap_or("");
    let references = std::mem::take(&mut survey.references);
    let mut resolved = BTreeMap::new();
    for (path, pointer, reference) in &references {
        match survey.resolve(root_id, reference) {
            Some(target) => {
                resolved.insert(pointer.clone(), target);
            }
            None => survey.faults.push(|| {
                Violation::new(
                    path,
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
    let rewritten = subschema(schema, "", &resolved);
    let weight = weight_of(&rewritten, survey.patterns);
    Ok(Rewritten {
        schema: rewritten,
        weight,
        branches: survey.branches,
    })
}

/// Measured: a compiled schema holds at most about 20 bytes for each byte of the rewritten text,
/// a regular expression at most its program and its tables.
fn weight_of(rewritten: &Value, patterns: usize) -> usize {
    const FIXED_BYTES: usize = 4096;
    const BYTES_PER_TEXT_BYTE: usize = 20;
    FIXED_BYTES
        + rewritten.to_string().len() * BYTES_PER_TEXT_BYTE
        + patterns * 2 * limits::PATTERN_PROGRAM_BYTES_MAX
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
        return Some(super::report::at_schema(
            "is not a schema",
            "an object or a boolean",
            schema,
        ));
    }
    if deeper_than(schema, limits::SCHEMA_DEPTH_MAX) {
        return Some(super::report::at_schema(
            "is nested too deeply",
            format!("at most {} levels", limits::SCHEMA_DEPTH_MAX),
            &Value::Null,
        ));
    }
    let bytes = schema.to_string().len();
    (bytes > limits::SCHEMA_BYTES_MAX).then(|| {
        super::report::at_schema(
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
                    super::report::at_schema(
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

/// The subschema at `at`, rewritten. Recursion is bounded by `SCHEMA_DEPTH_MAX`.
fn subschema(schema: &Value, at: &str, references: &BTreeMap<String, String>) -> Value {
    let Value::Object(map) = schema else {
        return schema.clone();
    };
    let mut body = Map::new();
    if let Some(target) = references.get(at) {
        body.insert("$ref".to_owned(), Value::from(percent_encode(target)));
    }
    for (keyword, value, kind) in members(map) {
        let place = format!("{at}/{keyword}");
        let child = |step: &str, item: &Value| {
            subschema(item, &format!("{place}/{}", escape(step)), references)
        };
        let rewritten = match (kind, value) {
            (Holds::Schema | Holds::SchemaOrList, Value::Object(_)) => {
                subschema(value, &place, references)
            }
            (Holds::SchemaOrList | Holds::List, Value::Array(items)) => items
                .iter()
                .enumerate()
                .map(|(i, item)| child(&i.to_string(), item))
                .collect(),
            (Holds::Named | Holds::NamedOrNames, Value::Object(named)) => named
                .iter()
                .map(|(name, item)| (name.clone(), child(name, item)))
                .collect(),
            (
                Holds::Plain
                | Holds::Schema
                | Holds::SchemaOrList
                | Holds::List
                | Holds::Named
                | Holds::NamedOrNames,
                _,
            ) => value.clone(),
        };
        body.insert(keyword.to_owned(), rewritten);
    }
    json!({"allOf": [{KEYWORD: price(map).to_value()}, body]})
}

/// One unit for the visit, and more for long lists of names and values.
fn price(map: &Map<String, Value>) -> Price {
    const BYTES_PER_UNIT: usize = 16;
    let mut bytes = 0;
    for (_, value, kind) in members(map) {
        bytes += match (kind, value) {
            (Holds::Plain, _) => value.to_string().len(),
            (Holds::Named, Value::Object(named)) => named.keys().map(|k| k.len() + 4).sum(),
            (Holds::NamedOrNames, _) => value.to_string().len(),
            (Holds::List | Holds::SchemaOrList, Value::Array(items)) => items.len() * 4,
            (Holds::Schema | Holds::SchemaOrList | Holds::List | Holds::Named, _) => 0,
        };
    }
    let has = |keyword: &str| u64::from(map.contains_key(keyword));
    let names = map.get("patternProperties").and_then(Value::as_object);
    Price {
        units: 1 + (bytes / BYTES_PER_UNIT) as u64,
        readers: has("pattern") + has("format") + has("contentEncoding") + has("contentMediaType"),
        name_readers: names.map_or(0, |named| named.len() as u64),
        deep: map.get("uniqueItems") == Some(&Value::Bool(true)),
    }
}

/// A step of a JSON pointer.
fn escape(step: &str) -> String {
    step.replace('~', "~0").replace('/', "~1")
}

fn percent_encode(pointer: &str) -> String {
    let mut text = String::from("#");
    for byte in pointer.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            write!(text, "%{byte:02X}").expect("writing to a string does not fail");
        }
    }
    text
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
