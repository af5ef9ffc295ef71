//! Finds the type of a part of another type's values.

use super::tree::{ANY, Enum, Node, Primitive, Scope};
use super::types::Type;
use serde_json::Value;
use std::sync::Arc;

/// Alternatives of one step that are looked at; with more, nothing is known of what is below.
const ALTERNATIVES_MAX: usize = 1_000;

impl Type {
    /// The type of what stands at a JSON pointer (RFC 6901) in the values of this type that have something there;
    /// `None` when none of them has. What is not declared is `any`. Cost: O(length x alternatives).
    #[must_use]
    pub fn at(&self, pointer: &str) -> Option<Self> {
        let mut nodes = vec![Arc::clone(&self.node)];
        for step in pointer.split('/').skip(1) {
            let Some(alternatives) = alternatives(&self.scope, nodes) else {
                return Some(self.of(Arc::new(ANY.clone())));
            };
            let below = alternatives.iter();
            nodes = below
                .filter_map(|node| below_step(&self.scope, node, step))
                .collect();
        }
        if nodes.iter().any(|node| matches!(**node, Node::Any)) {
            return Some(self.of(Arc::new(Node::Any)));
        }
        if nodes.len() < 2 {
            return nodes.pop().map(|node| self.of(node));
        }
        let mut list = Vec::with_capacity(nodes.len());
        for node in nodes {
            match node.as_union() {
                Some(inner) => list.extend(inner.iter().cloned()),
                None => list.push(node),
            }
        }
        Some(self.of(Arc::new(Node::Union(list))))
    }

    /// Whether nothing is known of the values.
    #[must_use]
    pub fn is_any(&self) -> bool {
        matches!(*self.node, Node::Any)
    }

    /// The type as it is checked where `schemas.validation` is `shallow`.
    #[must_use]
    pub fn shallow(mut self) -> Self {
        self.scope.shallow = true;
        self
    }

    fn of(&self, node: Arc<Node>) -> Self {
        let scope = self.scope.clone();
        Self { node, scope }
    }
}

/// The types behind names, unions and optional types; `None` with more than [`ALTERNATIVES_MAX`].
fn alternatives(scope: &Scope, mut open: Vec<Arc<Node>>) -> Option<Vec<Arc<Node>>> {
    let mut found = Vec::new();
    let mut left = ALTERNATIVES_MAX;
    while let Some(node) = open.pop() {
        left = left.checked_sub(1)?;
        match &*node {
            Node::Named(name) => open.push(Arc::clone(&scope.names.get(name).node)),
            // Nothing stands in null.
            Node::Optional(inner) => open.push(Arc::clone(inner)),
            Node::Union(list) if open.len() + list.len() > left => return None,
            Node::Union(list) => open.extend(list.iter().rev().cloned()),
            Node::Any
            | Node::Primitive(_)
            | Node::Literal(_)
            | Node::Enum(_)
            | Node::Array(_)
            | Node::Map(_)
            | Node::Shape(_)
            | Node::Schema(_) => found.push(node),
        }
    }
    Some(found)
}

/// The type of a member or an item; `None` where there is none.
fn below_step(scope: &Scope, node: &Node, step: &str) -> Option<Arc<Node>> {
    let any = || Arc::new(Node::Any);
    let declared = |node: &Arc<Node>| match scope.shallow {
        true => any(),
        false => Arc::clone(node),
    };
    match node {
        Node::Any | Node::Primitive(Primitive::Object) | Node::Schema(_) => Some(any()),
        Node::Primitive(Primitive::Array) => is_index(step).then(any),
        Node::Array(item) => is_index(step).then(|| declared(item)),
        Node::Map(of) => Some(declared(of)),
        Node::Shape(fields) => {
            let name = step.replace("~1", "/").replace("~0", "~");
            let field = fields.iter().find(|field| field.name == name);
            Some(field.map_or_else(any, |field| declared(&field.node)))
        }
        Node::Enum(of) => {
            let pointer = format!("/{step}");
            let parts = of.values.iter().filter_map(|value| value.pointer(&pointer));
            let parts: Vec<Value> = parts.cloned().collect();
            (!parts.is_empty()).then(|| Arc::new(Node::Enum(Enum::new(&parts))))
        }
        Node::Primitive(_)
        | Node::Literal(_)
        | Node::Optional(_)
        | Node::Union(_)
        | Node::Named(_) => None,
    }
}

/// RFC 6901, 4: no leading zeros.
fn is_index(step: &str) -> bool {
    let digits = !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit());
    digits && (step == "0" || !step.starts_with('0'))
}
