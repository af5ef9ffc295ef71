//! The words that describe a mismatch: what was declared at its place, and what stands there.

use super::fault::{Mismatch, cut};
use super::kinds::{self, Kinds};
use super::tree::{Names, Node, Scope};
use crate::limits;
use crate::task::inputs::WRONG_TYPE;
use crate::violation::Violation;
use serde_json::Value;

/// What a value is said to be that takes too many steps.
pub(super) const TOO_COSTLY: &str = "too costly to check";

/// A declared type, as `expected_type` says it. Of a name that lists the values that it accepts, these are told, too.
pub(super) fn expected(names: &Names, declared: &Node) -> String {
    let mut text = declared.to_string();
    let inner = if let Node::Optional(inner) = declared {
        inner
    } else {
        declared
    };
    if let Some(name) = inner.as_named()
        && let Some(values) = values(&names.get(name).node)
    {
        text += &format!(" (one of {values})");
    }
    cut(&text, Mismatch::EXPECTED_CHARS_MAX)
}

/// The values that a type lists, as far as a message has room; `None` for a type that accepts others.
fn values(node: &Node) -> Option<String> {
    let shown = |values: &[Value]| {
        let first = values.iter().take(limits::SUGGESTED_CHOICES_MAX);
        let mut shown: Vec<String> = first.map(Value::to_string).collect();
        if values.len() > shown.len() {
            shown.push(format!("… ({} values)", values.len()));
        }
        shown.join(", ")
    };
    match node {
        Node::Enum(of) => Some(shown(&of.values)),
        Node::Literal(value) => Some(value.to_string()),
        Node::Union(list) => {
            let literals = list.iter().map(|it| it.as_literal().cloned());
            let literals: Option<Vec<Value>> = literals.collect();
            literals.map(|values| shown(&values))
        }
        Node::Any
        | Node::Primitive(_)
        | Node::Array(_)
        | Node::Map(_)
        | Node::Shape(_)
        | Node::Optional(_)
        | Node::Named(_)
        | Node::Schema(_) => None,
    }
}

/// What a JSON Schema demands, so that it can follow "was declared as".
pub(super) fn demanded(violation: &Violation) -> String {
    let expected = &violation.expected;
    let begins = |beginnings: &[&str]| beginnings.iter().any(|it| expected.starts_with(it));
    let conforming = "what its JSON Schema accepts";
    let text = if expected.ends_with(" are listed") {
        format!("{conforming} ({})", violation.reason)
    } else if expected.starts_with("inputs that conform") {
        conforming.to_owned()
    } else if begins(&["at most ", "at least ", "less than ", "more than "]) {
        let ends = |end: &str| expected.ends_with(end);
        let of = if ends(" characters") {
            "a text of"
        } else if ends(" items") {
            "an array of"
        } else if ends(" members") {
            "an object of"
        } else {
            "a number of"
        };
        format!("{of} {expected}")
    } else if begins(&["names: "]) {
        format!("an object with {expected}")
    } else if begins(&["format "]) {
        format!("a text of the {expected}")
    } else {
        expected.clone()
    };
    cut(&text, Mismatch::EXPECTED_CHARS_MAX)
}

/// What stands where a JSON Schema is violated: the JSON type where another is demanded, else the value of a scalar.
pub(super) fn violating(violation: &Violation, found: Option<&Value>) -> String {
    let Some(found) = found else {
        return "nothing".to_owned();
    };
    let is_scalar = !found.is_array() && !found.is_object();
    if is_scalar && violation.reason != WRONG_TYPE {
        // Secrets and long texts are not repeated there.
        return cut(&violation.actual.to_string(), Mismatch::ACTUAL_CHARS_MAX);
    }
    kinds::name(found).to_owned()
}

/// What is told of a value that is not of a type.
pub(super) fn actual(scope: &Scope, node: &Node, value: &Value) -> String {
    let right_kind = Kinds::of(value).is_within(scope.names.kinds(node));
    let scalar = !value.is_array() && !value.is_object();
    if lists_values(node) || (right_kind && scalar) {
        cut(&value.to_string(), Mismatch::ACTUAL_CHARS_MAX)
    } else {
        kinds::name(value).to_owned()
    }
}

/// Whether a type lists the values that it accepts.
fn lists_values(node: &Node) -> bool {
    match node {
        Node::Literal(_) | Node::Enum(_) => true,
        Node::Union(list) => list.iter().all(|it| lists_values(it)),
        Node::Optional(inner) => lists_values(inner),
        Node::Any
        | Node::Primitive(_)
        | Node::Array(_)
        | Node::Map(_)
        | Node::Shape(_)
        | Node::Named(_)
        | Node::Schema(_) => false,
    }
}
