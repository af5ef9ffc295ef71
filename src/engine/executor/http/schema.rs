//! The schema of the inputs of `http_executor`, so that mistakes are reported when a task is created.

use super::request::{
    EXPECTED_MAX, FORBIDDEN_HEADERS, FORBIDDEN_PREFIX, HEADER_BYTES_MAX, HEADERS_MAX, METHODS,
    PARAMETERS_MAX, RESPONSE_BYTES_MAX, TIMEOUT_SECONDS_MAX,
};
use crate::egress::URL_CHARS_MAX;
use crate::engine::secrets::Places;
use serde_json::{Value, json};

pub(super) fn schema() -> Value {
    let scalar = json!({"type": ["string", "number", "boolean"]});
    let values = json!({
        "type": "object",
        "maxProperties": PARAMETERS_MAX,
        "additionalProperties": {
            "anyOf": [scalar, {"type": "array", "items": scalar, "maxItems": PARAMETERS_MAX}]
        }
    });
    let seconds = json!({
        "type": "number", "exclusiveMinimum": 0, "maximum": TIMEOUT_SECONDS_MAX
    });
    let text = json!({"type": "string"});
    let Credentials { headers, auth } = Credentials::schema();
    json!({
        "type": "object",
        "required": ["url"],
        "additionalProperties": false,
        "properties": {
            "url": {"type": "string", "minLength": 1, "maxLength": URL_CHARS_MAX},
            "method": {"enum": METHODS},
            "headers": headers,
            "params": values,
            "json": true,
            "body": text,
            "form": values,
            "auth": auth,
            "timeout_seconds": seconds,
            "timeout": seconds,
            "response_bytes_max": {
                "type": "integer", "minimum": 0, "maximum": RESPONSE_BYTES_MAX
            },
            "truncate": {"type": "boolean"},
            "expect_status": {
                "type": "array",
                "minItems": 1,
                "maxItems": EXPECTED_MAX,
                "items": {"anyOf": [
                    {"type": "integer", "minimum": 100, "maximum": 599},
                    {
                        "type": "string",
                        "pattern": "^([1-5]xx|[1-5][0-9][0-9](-[1-5][0-9][0-9])?)$"
                    }
                ]}
            }
        },
        "not": {"anyOf": [
            {"required": ["json", "body"]},
            {"required": ["json", "form"]},
            {"required": ["body", "form"]},
            {"required": ["timeout", "timeout_seconds"]}
        ]}
    })
}

/// The schemas of what is shown to whoever is called.
pub(in crate::engine::executor) struct Credentials {
    pub(in crate::engine::executor) headers: Value,
    pub(in crate::engine::executor) auth: Value,
}

impl Credentials {
    pub(in crate::engine::executor) fn schema() -> Self {
        let header_name = json!({
            "pattern": "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
            "not": {"pattern": forbidden()}
        });
        let header_value = json!({
            "type": "string", "maxLength": HEADER_BYTES_MAX, "pattern": "^[^\\r\\n\\u0000]*$"
        });
        let header_value = Places::schema_of(&header_value);
        let text = json!({"type": "string"});
        let credential = Places::schema_of(&text);
        let auth = json!({"oneOf": [
            {
                "type": "object", "additionalProperties": false,
                "required": ["type", "username", "password"],
                "properties": {"type": {"const": "basic"}, "username": credential, "password": credential}
            },
            {
                "type": "object", "additionalProperties": false, "required": ["type", "token"],
                "properties": {"type": {"const": "bearer"}, "token": header_value}
            },
            {
                "type": "object", "additionalProperties": false, "required": ["type", "name", "value"],
                "properties": {
                    "type": {"const": "header"},
                    "name": {"allOf": [{"type": "string"}, header_name]},
                    "value": header_value
                }
            }
        ]});
        let headers = json!({
            "type": "object",
            "maxProperties": HEADERS_MAX,
            "propertyNames": header_name,
            "additionalProperties": header_value
        });
        Self { headers, auth }
    }
}

/// A pattern of the names that only the client sets, in any case of letters.
fn forbidden() -> String {
    let any_case = |name: &str| -> String {
        name.chars()
            .map(|c| match c.is_ascii_alphabetic() {
                true => format!("[{}{}]", c.to_ascii_uppercase(), c),
                false => c.to_string(),
            })
            .collect()
    };
    let names: Vec<_> = FORBIDDEN_HEADERS
        .iter()
        .map(|name| any_case(name))
        .collect();
    format!("^({})$|^{}", names.join("|"), any_case(FORBIDDEN_PREFIX))
}
