//! What draft-07 demands of a schema, as a schema of ours: so a hostile schema is checked by the
//! same machinery and within the same budgets as hostile inputs.
//!
//! It says what the official meta-schema says, with one exception: whether a regular expression is
//! one is found out when it is compiled. The official test suite runs through it.

use serde_json::{Map, Value, json};

/// The members of a schema, by what they hold.
pub(super) fn schema() -> Value {
    let itself = || json!({"$ref": "#"});
    let text = json!({"type": "string"});
    let names = json!({"type": "array", "items": text, "uniqueItems": true});
    let list = json!({"type": "array", "items": itself(), "minItems": 1});
    let named = json!({"type": "object", "additionalProperties": itself()});
    let types =
        json!({"enum": ["array", "boolean", "integer", "null", "number", "object", "string"]});
    let groups: [(&[&str], Value); 12] = [
        (
            &["$comment", "title", "description", "pattern"],
            text.clone(),
        ),
        (&["format", "contentMediaType", "contentEncoding"], text),
        (
            &["$id", "$ref"],
            json!({"type": "string", "format": "uri-reference"}),
        ),
        (
            &["readOnly", "writeOnly", "uniqueItems"],
            json!({"type": "boolean"}),
        ),
        (&["examples", "enum"], json!({"type": "array"})),
        (
            &["maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"],
            json!({"type": "number"}),
        ),
        (
            &["multipleOf"],
            json!({"type": "number", "exclusiveMinimum": 0}),
        ),
        (
            &[
                "maxLength",
                "minLength",
                "maxItems",
                "minItems",
                "maxProperties",
                "minProperties",
            ],
            json!({"type": "integer", "minimum": 0}),
        ),
        (
            &[
                "additionalItems",
                "additionalProperties",
                "contains",
                "propertyNames",
                "not",
                "if",
                "then",
                "else",
            ],
            itself(),
        ),
        (&["allOf", "anyOf", "oneOf"], list.clone()),
        (&["definitions", "properties", "patternProperties"], named),
        (&["required"], names.clone()),
    ];
    let mut properties = Map::new();
    for (keywords, schema) in groups {
        properties.extend(keywords.iter().map(|k| ((*k).to_owned(), schema.clone())));
    }
    let either = |other: Value| json!({"anyOf": [itself(), other]});
    let several = json!({"type": "array", "items": types, "minItems": 1, "uniqueItems": true});
    properties.insert("items".to_owned(), either(list));
    let dependencies = json!({"type": "object", "additionalProperties": either(names)});
    properties.insert("dependencies".to_owned(), dependencies);
    properties.insert("type".to_owned(), json!({"anyOf": [types, several]}));
    json!({"type": ["object", "boolean"], "properties": properties})
}
