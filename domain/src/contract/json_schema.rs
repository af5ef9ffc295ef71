//! Types as JSON Schema (draft-07), for forms, tools and documentation.
//!
//! Named types become `definitions`, so that recursive ones stay finite. A `{schema: ..}` that refers to parts of
//! itself becomes one, too, under a name that no type can have; so it stands at one place, where its references
//! lead.

use super::pointer::escape;
use super::tree::{Field, Node, Primitive, Schema, Scope};
use crate::task::inputs::{self, Embedded};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The schema of a type. Cost: O(size of the type and of the named types that it uses).
pub(super) fn of_type(scope: &Scope, node: &Node) -> Value {
    let mut export = Export::new(scope);
    let schema = export.node(node);
    export.document(schema)
}

/// The schema of an object with these members.
pub(super) fn of_members(scope: &Scope, fields: &[Field]) -> Value {
    let mut export = Export::new(scope);
    // Unlike the fields of a shape, the values of outputs are checked even when the check is shallow.
    let schema = export.object(fields, |_, node| node);
    export.document(schema)
}

struct Export<'t> {
    scope: &'t Scope,
    definitions: Map<String, Value>,
    /// Named types that are used, by index, and those of them that are not yet in `definitions`.
    used: BTreeSet<usize>,
    open: Vec<usize>,
    schemas: usize,
}

impl<'t> Export<'t> {
    fn new(scope: &'t Scope) -> Self {
        Self {
            scope,
            definitions: Map::new(),
            used: BTreeSet::new(),
            open: Vec::new(),
            schemas: 0,
        }
    }

    fn document(mut self, schema: Value) -> Value {
        while let Some(index) = self.open.pop() {
            let entry = &self.scope.names.entries[index];
            let schema = self.node(&entry.node);
            self.definitions.insert(entry.name.to_string(), schema);
        }
        let mut document = Map::new();
        document.insert(
            "$schema".to_owned(),
            Value::from("http://json-schema.org/draft-07/schema#"),
        );
        let refers = schema.get("$ref").is_some();
        match schema {
            // Beside a `$ref`, nothing counts.
            Value::Object(_) if refers => {
                document.insert("allOf".to_owned(), json!([schema]));
            }
            Value::Object(members) => document.extend(members),
            Value::Bool(false) => {
                document.insert("not".to_owned(), json!({}));
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => {}
        }
        if !self.definitions.is_empty() {
            // A JSON Schema without references may have definitions that nothing uses.
            document.insert("definitions".to_owned(), Value::Object(self.definitions));
        }
        Value::Object(document)
    }

    fn node(&mut self, node: &Node) -> Value {
        match node {
            Node::Any => json!({}),
            Node::Primitive(primitive) => json!({"type": primitive.name()}),
            Node::Literal(value) => json!({"const": value}),
            Node::Enum(of) => json!({"enum": *of.values}),
            Node::Array(of) => self.container("array", "items", of),
            Node::Map(of) => self.container("object", "additionalProperties", of),
            Node::Shape(fields) => self.object(fields, Scope::below),
            Node::Optional(inner) => self.optional(inner),
            Node::Union(list) => {
                let literals = list.iter().map(|one| one.as_literal());
                if let Some(values) = literals.collect::<Option<Vec<_>>>() {
                    return json!({"enum": values});
                }
                let list: Vec<Value> = list.iter().map(|one| self.node(one)).collect();
                json!({"anyOf": list})
            }
            Node::Named(name) => {
                if self.used.insert(name.index) {
                    self.open.push(name.index);
                }
                let pointer = format!("/definitions/{}", escape(&name.text));
                json!({"$ref": inputs::reference(&pointer)})
            }
            Node::Schema(schema) => self.schema(schema),
        }
    }

    fn container(&mut self, kind: &str, keyword: &str, of: &Node) -> Value {
        let mut schema = Map::from_iter([("type".to_owned(), Value::from(kind))]);
        let of = self.scope.below(of);
        if !matches!(of, Node::Any) {
            schema.insert(keyword.to_owned(), self.node(of));
        }
        Value::Object(schema)
    }

    fn optional(&mut self, inner: &Node) -> Value {
        if let Node::Primitive(primitive) = inner {
            return match primitive {
                Primitive::Null => self.node(inner),
                Primitive::Boolean
                | Primitive::Integer
                | Primitive::Number
                | Primitive::String
                | Primitive::Object
                | Primitive::Array => json!({"type": [primitive.name(), "null"]}),
            };
        }
        json!({"anyOf": [self.node(inner), {"type": "null"}]})
    }

    fn object(
        &mut self,
        fields: &[Field],
        checked: for<'a> fn(&Scope, &'a Node) -> &'a Node,
    ) -> Value {
        let mut properties = Map::new();
        for field in fields {
            let schema = self.node(checked(self.scope, &field.node));
            let schema = match &field.default {
                None => schema,
                Some(default) => json!({"allOf": [schema], "default": default}),
            };
            properties.insert(field.name.clone(), schema);
        }
        let required = fields.iter().filter(|field| field.required);
        let required: Vec<&str> = required.map(|field| field.name.as_str()).collect();
        let mut schema = Map::from_iter([("type".to_owned(), Value::from("object"))]);
        if !properties.is_empty() {
            schema.insert("properties".to_owned(), Value::Object(properties));
        }
        if !required.is_empty() {
            schema.insert("required".to_owned(), Value::from(required));
        }
        Value::Object(schema)
    }

    fn schema(&mut self, schema: &Schema) -> Value {
        let place = |number: usize| format!("schema:{number}");
        let pointer = format!("/definitions/{}", place(self.schemas + 1));
        let Embedded { mut schema, refers } = inputs::embedded(schema.source(), &pointer);
        if !refers {
            // Nothing can refer to them, and at the root they would be taken for those of the document.
            if let Some(members) = schema.as_object_mut() {
                members.remove("definitions");
            }
            return schema;
        }
        self.schemas += 1;
        self.definitions.insert(place(self.schemas), schema);
        json!({"$ref": inputs::reference(&pointer)})
    }
}
