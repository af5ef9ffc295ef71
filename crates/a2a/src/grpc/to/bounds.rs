//! Limits of what clients of gRPC can read: how deep values may nest, and how large a part may be. What is beyond
//! becomes a text that says so, lest one value makes a whole answer unreadable.

use crate::grpc::values::value_of;
use prost::Message;
use prost_types::value::Kind;
use prost_types::{Struct, Value};
use serde_json::Map;

/// Messages within each other, below the outermost one, that decoders of Protocol Buffers read.
const NESTED_MAX: usize = 100;
/// Those around a value where most are: an answer or item holds a task, its status, a message, and a part.
const AROUND_MAX: usize = 4;
/// Messages within each other that a value may have, itself included: the same wherever it stands, so that what one
/// answer shows, all do.
const LEVELS_MAX: usize = NESTED_MAX - AROUND_MAX;
/// A struct, and the entry of its map, around a value.
const ENTRY_LEVELS: usize = 2;
/// Bytes of a part, or of a free member. Clients accept messages of 4 MiB unless they are told otherwise.
pub(super) const BYTES_MAX: usize = 3 * 1024 * 1024;

/// A value, or what is said of one that nests too deep.
pub(super) fn data(value: serde_json::Value) -> Result<Value, String> {
    within(value, LEVELS_MAX)
}

/// Free members. Those that are too much become texts.
pub(super) fn free(map: Map<String, serde_json::Value>) -> Struct {
    let fields = map.into_iter().map(|(name, value)| {
        let value = within(value, LEVELS_MAX - ENTRY_LEVELS).and_then(|value| {
            let bytes = value.encoded_len();
            match bytes <= BYTES_MAX {
                true => Ok(value),
                false => Err(too_large("data", bytes)),
            }
        });
        (name, value.unwrap_or_else(text))
    });
    Struct {
        fields: fields.collect(),
    }
}

fn text(said: String) -> Value {
    Value {
        kind: Some(Kind::StringValue(said)),
    }
}

fn within(value: serde_json::Value, max: usize) -> Result<Value, String> {
    let levels = levels_of(&value);
    match levels <= max {
        true => Ok(value_of(value)),
        false => Err(format!(
            "(data of {levels} levels is left out: clients of gRPC read at most {max}; JSON-RPC shows it)"
        )),
    }
}

/// What is said instead of something with that many bytes.
pub(super) fn too_large(what: &str, bytes: usize) -> String {
    format!(
        "({what} of {bytes} bytes is left out: clients of gRPC read at most {BYTES_MAX}; JSON-RPC shows it)"
    )
}

/// How many messages lie within each other in a value, itself included: three for an object, two for a list, one for
/// anything else. Cost: O(size).
fn levels_of(value: &serde_json::Value) -> usize {
    use serde_json::Value as Json;
    1 + match value {
        Json::Object(map) => 1 + map.values().map(|it| 1 + levels_of(it)).max().unwrap_or(0),
        Json::Array(list) => 1 + list.iter().map(levels_of).max().unwrap_or(0),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => 0,
    }
}
