//! Turns a JSON value into the document tree, within the same limits as a text.

use serde_json::Value;
use std::rc::Rc;

use crate::faults::{Fault, Faults};
use crate::limits;
use crate::node::{Entry, Kind, Node};
use crate::path::Path;

/// Reads a value; its maps are in the order of `serde_json`, by key. `None`: it exceeds a limit, and `faults` says
/// which. Cost: O(size), at most the limits; recursion: [`limits::LEVELS_MAX`].
pub(crate) fn read(value: &Value, faults: &Faults) -> Option<Rc<Node>> {
    let mut left = Left {
        nodes: limits::NODES_MAX,
        bytes: limits::DOCUMENT_BYTES_MAX,
    };
    match left.node(value, 0) {
        Ok(node) => Some(node),
        Err(reason) => {
            faults.error(Fault::new(&Path::default(), None, reason));
            None
        }
    }
}

/// What may still come.
struct Left {
    nodes: usize,
    bytes: usize,
}

impl Left {
    fn take(&mut self, bytes: usize) -> Result<(), String> {
        let nodes = self.nodes.checked_sub(1);
        let exceeded = || format!("more than {} keys and values", limits::NODES_MAX);
        self.nodes = nodes.ok_or_else(exceeded)?;
        let bytes = self.bytes.checked_sub(bytes);
        let exceeded = || format!("more than {} bytes of text", limits::DOCUMENT_BYTES_MAX);
        self.bytes = bytes.ok_or_else(exceeded)?;
        Ok(())
    }

    fn node(&mut self, value: &Value, levels: usize) -> Result<Rc<Node>, String> {
        self.take(value.as_str().map_or(0, str::len))?;
        if levels >= limits::LEVELS_MAX && (value.is_array() || value.is_object()) {
            return Err(format!(
                "more than {} levels of maps and lists",
                limits::LEVELS_MAX
            ));
        }
        let kind = match value {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                Kind::Scalar(value.clone())
            }
            Value::Array(items) => {
                let items = items.iter().map(|item| self.node(item, levels + 1));
                Kind::List(items.collect::<Result<_, _>>()?)
            }
            Value::Object(members) => {
                let mut entries = Vec::new();
                for (key, value) in members {
                    self.take(key.len())?;
                    entries.push(Entry {
                        key: key.clone(),
                        at: None,
                        value: self.node(value, levels + 1)?,
                    });
                }
                Kind::Map(entries)
            }
        };
        Ok(Rc::new(Node { at: None, kind }))
    }
}
