//! Decides whether any object can conform to a type.

use super::kinds::Kinds;
use super::tree::{Node, Scope};
use super::types::Type;
use serde_json::Value;

impl Type {
    /// Whether an object may be of this type; no only where none can be. Of a JSON Schema, `type`, `enum` and `const`
    /// are looked at, not what stands below other keywords. Cost: O(size of the type).
    #[must_use]
    pub fn may_be_object(&self) -> bool {
        may_be_object(&self.scope, &self.node)
    }
}

/// Recurses as deep as [`crate::limits::TYPE_DEPTH_MAX`].
fn may_be_object(scope: &Scope, node: &Node) -> bool {
    match node {
        Node::Any | Node::Map(_) => true,
        Node::Primitive(primitive) => primitive.kinds().overlaps(Kinds::OBJECT),
        Node::Literal(value) => value.is_object(),
        Node::Enum(of) => of.values.iter().any(Value::is_object),
        Node::Array(_) => false,
        Node::Shape(_) => has_values(scope, node),
        Node::Optional(inner) => may_be_object(scope, inner),
        Node::Union(list) => list.iter().any(|one| may_be_object(scope, one)),
        Node::Named(name) => scope.names.get(name).kinds.overlaps(Kinds::OBJECT),
        Node::Schema(schema) => schema_may_be_object(schema.source()),
    }
}

/// Whether any value may be of a type. Only the JSON Schema `false` has none, and what requires such a member.
fn has_values(scope: &Scope, node: &Node) -> bool {
    match node {
        Node::Shape(fields) => {
            let mut required = fields.iter().filter(|field| field.required);
            required.all(|field| has_values(scope, scope.below(&field.node)))
        }
        Node::Schema(schema) => *schema.source() != Value::Bool(false),
        Node::Union(list) => list.iter().any(|one| has_values(scope, one)),
        Node::Any
        | Node::Primitive(_)
        | Node::Literal(_)
        | Node::Enum(_)
        | Node::Array(_)
        | Node::Map(_)
        | Node::Optional(_)
        | Node::Named(_) => true,
    }
}

/// Draft-07 ignores what stands beside `$ref`.
fn schema_may_be_object(schema: &Value) -> bool {
    let Some(keywords) = schema.as_object() else {
        return *schema != Value::Bool(false);
    };
    let among = |keyword: &str, fits: fn(&Value) -> bool| match keywords.get(keyword) {
        Some(Value::Array(list)) => list.iter().any(fits),
        Some(one) => fits(one),
        None => true,
    };
    keywords.contains_key("$ref")
        || among("type", |name| name == "object")
            && among("enum", Value::is_object)
            && keywords.get("const").is_none_or(Value::is_object)
}
