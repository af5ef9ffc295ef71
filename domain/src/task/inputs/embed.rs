//! A schema as a part of a larger document.

use super::rewrite::percent_encode;
use super::survey::{self, Holds, escape, members};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Members that say something about a schema and nothing about values.
const ANNOTATIONS: [&str; 7] = [
    "title",
    "description",
    "default",
    "examples",
    "readOnly",
    "writeOnly",
    "$comment",
];

/// A schema that keeps its meaning at its new place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Embedded {
    /// The schema, without `$schema` and `$id`.
    pub(crate) schema: Value,
    /// It refers to parts of itself, so it can stand at that place only.
    pub(crate) refers: bool,
}

/// A compiled schema as it must be written at the pointer `at` of a document: its references are resolved and
/// written anew. Unknown members are left out. Cost: O(size).
pub(crate) fn embedded(schema: &Value, at: &str) -> Embedded {
    let targets = survey::targets(schema);
    Embedded {
        schema: subschema(schema, "", at, &targets),
        refers: !targets.is_empty(),
    }
}

/// The `$ref` to a pointer of the same document.
pub(crate) fn reference(pointer: &str) -> String {
    percent_encode(pointer)
}

/// The subschema at `place`. Recursion is bounded by `SCHEMA_DEPTH_MAX`.
fn subschema(schema: &Value, place: &str, at: &str, targets: &BTreeMap<String, String>) -> Value {
    let Value::Object(map) = schema else {
        return schema.clone();
    };
    let mut body = Map::new();
    for (name, value) in map {
        if ANNOTATIONS.contains(&name.as_str()) {
            body.insert(name.clone(), value.clone());
        }
    }
    if let Some(target) = targets.get(place) {
        let reference = reference(&format!("{at}{target}"));
        body.insert("$ref".to_owned(), Value::from(reference));
    }
    for (keyword, value, kind) in members(map) {
        let below = format!("{place}/{keyword}");
        let child = |step: &str, item: &Value| {
            subschema(item, &format!("{below}/{}", escape(step)), at, targets)
        };
        let embedded = match (kind, value) {
            (Holds::Schema | Holds::SchemaOrList, Value::Object(_)) => {
                subschema(value, &below, at, targets)
            }
            (Holds::SchemaOrList | Holds::List, Value::Array(items)) => {
                let items = items.iter().enumerate();
                items.map(|(i, item)| child(&i.to_string(), item)).collect()
            }
            (Holds::Named | Holds::NamedOrNames, Value::Object(named)) => {
                let named = named.iter();
                named
                    .map(|(name, item)| (name.clone(), child(name, item)))
                    .collect()
            }
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
        body.insert(keyword.to_owned(), embedded);
    }
    Value::Object(body)
}

#[cfg(test)]
mod tests {
    use super::embedded;
    use serde_json::json;

    #[test]
    fn references_lead_to_the_same_subschemas_at_the_new_place() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$id": "http://example.org/a",
            "title": "list",
            "x-unknown": {"$ref": "nowhere"},
            "properties": {
                "next": {"$ref": "#"},
                "own": {"$ref": "http://example.org/a#/definitions/a~1b"},
                "named": {"$ref": "#n"},
                "$ref": {"const": {"$ref": "kept"}},
            },
            "definitions": {"a/b": {"$id": "#n", "type": "string"}},
        });
        let written = json!({
            "title": "list",
            "properties": {
                "next": {"$ref": "#/definitions/s"},
                "own": {"$ref": "#/definitions/s/definitions/a~1b"},
                "named": {"$ref": "#/definitions/s/definitions/a~1b"},
                "$ref": {"const": {"$ref": "kept"}},
            },
            "definitions": {"a/b": {"type": "string"}},
        });
        let embedded = embedded(&schema, "/definitions/s");
        assert_eq!(embedded.schema, written);
        assert!(embedded.refers);
    }
}
