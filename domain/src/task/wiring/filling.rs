//! Replaces templates by values.

use super::place::Found;
use super::template::{self, Part};
use super::templates::read;
use super::uses::pointer;
use crate::limits;
use crate::payload::Unfit;
use crate::violation::PathSegment;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Characters of a path in the error of an attempt.
const PATH_CHARS_MAX: usize = 256;

/// Puts values into texts.
pub(super) struct Filling<'f> {
    pub(super) values: BTreeMap<&'f str, Found<'f>>,
    /// Of the inputs, with all that was put in.
    pub(super) bytes: usize,
    /// Values that cannot stand in a text.
    pub(super) unlike: Vec<String>,
}

impl Filling<'_> {
    /// The inputs with their values. Cost: O(size), of what is put in too.
    ///
    /// # Errors
    /// Together they are too large.
    pub(super) fn fill(&mut self, inputs: &mut Map<String, Value>) -> Result<(), Unfit> {
        let mut path = Vec::new();
        for (key, value) in inputs {
            path.push(PathSegment::from(key.as_str()));
            self.fill_value(value, &mut path)?;
            path.pop();
        }
        Ok(())
    }

    fn fill_value(&mut self, value: &mut Value, path: &mut Vec<PathSegment>) -> Result<(), Unfit> {
        match value {
            Value::String(text) if template::may_have(text) => {
                if let Some(filled) = self.filled(text, path)? {
                    *value = filled;
                }
            }
            Value::Array(items) => {
                for (i, item) in items.iter_mut().enumerate() {
                    path.push(PathSegment::from(i));
                    self.fill_value(item, path)?;
                    path.pop();
                }
            }
            Value::Object(members) => {
                for (key, member) in members {
                    path.push(PathSegment::from(key.as_str()));
                    self.fill_value(member, path)?;
                    path.pop();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(())
    }

    /// `None`: the text is meant as it stands.
    fn filled(&mut self, text: &str, path: &[PathSegment]) -> Result<Option<Value>, Unfit> {
        let Ok(parts) = read(text) else {
            return Ok(None);
        };
        if let [Part::Reference(reference)] = parts[..] {
            let Some(found) = self.values.get(reference) else {
                return Ok(None);
            };
            self.bytes += found.bytes();
            self.check_size()?;
            return Ok(Some(found.to_value()));
        }
        let mut filled = String::with_capacity(text.len());
        for part in parts {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Escape {
                    backslashes,
                    braces,
                    ..
                } => {
                    filled.extend(std::iter::repeat_n('\\', backslashes));
                    filled.push_str(if braces { template::OPEN } else { "" });
                }
                Part::Reference(reference) => {
                    let before = filled.len();
                    match self.values.get(reference) {
                        Some(Found::Value(Value::String(text))) => filled.push_str(text),
                        Some(Found::Value(value @ (Value::Number(_) | Value::Bool(_)))) => {
                            filled.push_str(&value.to_string());
                        }
                        Some(found) => self.unlike.push(unlike(path, reference, found)),
                        None => {}
                    }
                    self.bytes += filled.len() - before;
                    self.check_size()?;
                }
            }
        }
        Ok(Some(Value::String(filled)))
    }

    const fn check_size(&self) -> Result<(), Unfit> {
        if self.bytes > limits::PAYLOAD_BYTES_MAX {
            return Err(Unfit::TooLarge(self.bytes));
        }
        Ok(())
    }
}

fn unlike(path: &[PathSegment], reference: &str, found: &Found<'_>) -> String {
    let pointer = pointer(path);
    let path: String = pointer.chars().skip(1).take(PATH_CHARS_MAX).collect();
    let kind = match found {
        Found::Value(Value::Null) => "null",
        Found::Value(Value::Array(_)) => "array",
        Found::Value(_) | Found::Whole(_) => "object",
    };
    format!(
        "`{path}`: {reference} is {kind}, expected a string, number or boolean within a longer text"
    )
}
