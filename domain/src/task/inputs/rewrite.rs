//! Measures a schema against its limits and rewrites it for the compiler.
//!
//! Each subschema `S` becomes `{"allOf": [{"x-fuel": price}, S]}`, so that the gauge runs before
//! `S` does. That moves everything one step down, hence each `$ref` is resolved here, against the
//! schema as its author wrote it, and written anew. What is no draft-07 assertion (titles,
//! defaults, unknown members) is left out. Paths in violations are those of the author.

use super::fuel::{KEYWORD, Price};
use super::limits;
use super::survey::{self, Holds, escape, members};
use super::{pattern, pattern_price};
use crate::violation::Violation;
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

/// Rewrites `schema`. Cost: O(size), which the first check bounds.
///
/// # Errors
/// The limits that it exceeds and the references that it may not make.
pub(super) fn rewrite(schema: &Value) -> Result<Rewritten, Vec<Violation>> {
    let surveyed = survey::survey(schema)?;
    let rewritten = subschema(schema, "", &surveyed.references);
    let weight = weight_of(&rewritten, surveyed.patterns);
    Ok(Rewritten {
        schema: rewritten,
        weight,
        branches: surveyed.branches,
    })
}

/// Measured: a compiled schema holds at most about 45 bytes for each byte of the rewritten text,
/// a regular expression at most its program and its tables.
fn weight_of(rewritten: &Value, patterns: usize) -> usize {
    const FIXED_BYTES: usize = 4096;
    const BYTES_PER_TEXT_BYTE: usize = 48;
    FIXED_BYTES
        + rewritten.to_string().len() * BYTES_PER_TEXT_BYTE
        + patterns * 2 * limits::PATTERN_PROGRAM_BYTES_MAX
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
            (Holds::Named, Value::Object(named)) if keyword == "patternProperties" => named
                .iter()
                .map(|(name, item)| (pattern::of_author(name), child(name, item)))
                .collect(),
            (Holds::Plain, Value::String(text)) if keyword == "pattern" => {
                Value::from(pattern::of_author(text))
            }
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
    /// For each byte of a text whose format is checked.
    const FORMAT_STEPS: u64 = 2;
    /// For each byte of a regular expression that comes as a value.
    const FORMAT_REGEX_STEPS: u64 = 50;
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
    let has = |keyword: &str, steps: u64| if map.contains_key(keyword) { steps } else { 0 };
    let format = match map.get("format").and_then(Value::as_str) {
        None => 0,
        Some("regex") => FORMAT_REGEX_STEPS,
        Some(_) => FORMAT_STEPS,
    };
    let pattern = map.get("pattern").and_then(Value::as_str);
    let names = map.get("patternProperties").and_then(Value::as_object);
    Price {
        units: 1 + (bytes / BYTES_PER_UNIT) as u64,
        text: pattern.map_or(0, pattern_price::steps_per_byte)
            + format
            + has("contentEncoding", FORMAT_STEPS)
            + has("contentMediaType", FORMAT_STEPS),
        names: names.map_or(0, |named| {
            named
                .keys()
                .map(|text| pattern_price::steps_per_byte(text))
                .sum()
        }),
        deep: map.get("uniqueItems") == Some(&Value::Bool(true)),
    }
}

pub(super) fn percent_encode(pointer: &str) -> String {
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
