//! Types as JSON: `outputs`, `types`, and what stands in their members.
//!
//! Where a type is wanted, a text is an expression; an object whose one member is `enum` with a list, or `schema`
//! with an object or a boolean, is that; every other object is a shape. Where an output or a field is declared, an
//! object with a member `type` surrounds a type if it has no members but `type`, `required` and `default`, or if
//! its `required` is true or false, which is no type. So a shape with `type` as its one field, in place of a field,
//! is written `{"type": {"type": ..}}`.

use super::check::Checker;
use super::expression::{self, Context};
use super::fault::{FormFault, Mismatch, cut, push};
use super::tree::{Enum, Field, NameFault, Names, Node, Schema, Scope};
use crate::limits;
use crate::suggestion::{known_member, suggestion};
use serde_json::{Map, Value};
use std::sync::Arc;

const TYPE: &str = "type";
const REQUIRED: &str = "required";
const DEFAULT: &str = "default";

/// Bytes of a name in a path: a longer name is a fault itself.
const PATH_NAME_BYTES_MAX: usize = 4 * limits::KEY_CHARS_MAX;

/// How a type is written.
const FORM: &str =
    "a type expression, a shape {field: type}, {enum: [values]} or {schema: JSON Schema}";

/// What is done with the JSON Schemas and the defaults of a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vetting {
    /// Compiled and checked, so that faults are found.
    Thorough,
    /// Left until they are needed: faults were found when the task was created.
    Trusted,
}

/// What may stand around the type of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Output,
    Field,
}

/// What a declaration holds is counted across all of its parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) nodes: usize,
    pub(super) schemas: usize,
    /// For compiling them; shared by all tasks of a call.
    pub(super) steps: u64,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            nodes: limits::TYPE_NODES_MAX,
            schemas: limits::TYPE_SCHEMAS_MAX,
            steps: limits::TYPE_SCHEMA_STEPS_PER_CALL_MAX,
        }
    }
}

/// Reads declarations and collects what is wrong with them.
pub(super) struct Reader {
    names: Vec<Arc<str>>,
    pub(super) room: Room,
    vetting: Vetting,
    path: Vec<String>,
    pub(super) faults: Vec<FormFault>,
    /// Positions of named types with faults.
    faulty: Vec<usize>,
    /// Where each default stands, what its type is, and the default.
    defaults: Vec<(Vec<String>, Arc<Node>, Value)>,
}

impl Reader {
    /// A reader of declarations that may use these names, which are sorted.
    pub(super) fn new(names: Vec<Arc<str>>, room: Room, vetting: Vetting) -> Self {
        Self {
            names,
            room,
            vetting,
            path: Vec::new(),
            faults: Vec::new(),
            faulty: Vec::new(),
            defaults: Vec::new(),
        }
    }

    pub(super) fn fault(
        &mut self,
        reason: &'static str,
        expected: impl Into<String>,
        found: &Value,
    ) {
        let path = &self.path;
        push(&mut self.faults, || FormFault {
            path: path.clone(),
            reason,
            expected: expected.into(),
            found: found.clone(),
        });
    }

    /// Reads with `step` at the end of the path.
    pub(super) fn below<T>(&mut self, step: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step.to_owned());
        let read = read(self);
        self.path.pop();
        read
    }

    /// The named types; those without faults when there are faults, so that what uses them is still read.
    pub(super) fn types(&mut self, types: Option<&Value>) -> Names {
        let Some(types) = types else {
            return Names::default();
        };
        self.below("types", |reader| reader.named(types))
    }

    fn named(&mut self, types: &Value) -> Names {
        let Some(map) = types.as_object() else {
            self.fault("Wrong type", "an object that maps names to types", types);
            return Names::default();
        };
        if map.len() > limits::TYPES_MAX {
            let expected = format!("at most {} types", limits::TYPES_MAX);
            self.fault("Too many types", expected, &Value::from(map.len()));
            return Names::default();
        }
        let mut names: Vec<Arc<str>> = map.keys().map(|name| Arc::from(name.as_str())).collect();
        names.sort();
        self.names = names;
        let mut nodes = Vec::new();
        for name in self.names.clone() {
            let value = &map[&*name];
            let known = self.faults.len();
            let node = self.below(limits::cut(&name, PATH_NAME_BYTES_MAX), |reader| {
                reader.type_name(&name);
                reader.type_at(value, 1)
            });
            // With a full list, it cannot be told whether there are faults.
            if node.is_none() || self.faults.len() > known || known == limits::VIOLATIONS_MAX {
                self.faulty.push(nodes.len());
            }
            nodes.push((name, node.unwrap_or_else(|| Arc::new(Node::Any))));
        }
        let mut names = self.linked(nodes, map);
        names.mark_faulty(&self.faulty);
        names
    }

    /// The names, once each means something; those that do not are reported and become `any`. Cost: O(size), once for
    /// each that becomes `any`.
    fn linked(&mut self, mut nodes: Vec<(Arc<str>, Arc<Node>)>, map: &Map<String, Value>) -> Names {
        let mut are_told = false;
        loop {
            let faults = match Names::new(nodes.clone()) {
                Ok(names) => return names,
                Err(faults) => faults,
            };
            for (index, fault) in faults {
                nodes[index].1 = Arc::new(Node::Any);
                let name = Arc::clone(&self.names[index]);
                self.faulty.push(index);
                let (reason, expected) = match fault {
                    NameFault::Circular => (
                        "Circular type",
                        "a type that is not another name for itself; \
                         an array, a map or a shape must stand between"
                            .to_owned(),
                    ),
                    NameFault::TooDeep => {
                        let fault = expression::too_deep();
                        (fault.reason, fault.expected)
                    }
                };
                // What is left of a circle or a chain is the same mistake.
                if !are_told {
                    self.below(&name, |reader| reader.fault(reason, expected, &map[&*name]));
                }
            }
            are_told = true;
        }
    }

    fn type_name(&mut self, name: &str) {
        let long = name.chars().nth(limits::KEY_CHARS_MAX).is_some();
        if expression::is_reserved(name) {
            let expected = "a name that no built-in type has";
            self.fault("Reserved name", expected, &Value::from(name));
        } else if long || !expression::is_name(name) {
            let expected = format!(
                "a name of 1 to {} letters, digits, `_`, `-` and `.`, with a letter or `_` at its beginning",
                limits::KEY_CHARS_MAX
            );
            self.fault("Invalid name", expected, &Value::from(name));
        }
    }

    /// The members of `outputs`, sorted by name.
    pub(super) fn outputs(&mut self, outputs: &Value) -> Vec<Field> {
        self.below("outputs", |reader| {
            let Some(map) = outputs.as_object() else {
                let expected = "an object that maps keys of the output to types";
                reader.fault("Wrong type", expected, outputs);
                return Vec::new();
            };
            if map.len() > limits::OUTPUTS_MAX {
                let expected = format!("at most {} keys", limits::OUTPUTS_MAX);
                reader.fault("Too many outputs", expected, &Value::from(map.len()));
                return Vec::new();
            }
            reader.members(map, 0, Member::Output)
        })
    }

    /// One member of `outputs`: its type and whether it is required.
    pub(super) fn output(&mut self, key: &str, value: &Value) -> Option<(Arc<Node>, bool)> {
        let field = self.member(key, value, 0, Member::Output)?;
        Some((field.node, field.required))
    }

    /// A type on its own.
    pub(super) fn type_of(&mut self, declaration: &Value) -> Option<Arc<Node>> {
        self.type_at(declaration, 0)
    }

    /// A shape on its own, whatever its fields are called.
    pub(super) fn shape_of(&mut self, fields: &Map<String, Value>) -> Option<Arc<Node>> {
        self.room.nodes = self.room.nodes.saturating_sub(1);
        self.shape(fields, 0)
    }

    fn shape(&mut self, fields: &Map<String, Value>, depth: usize) -> Option<Arc<Node>> {
        let known = self.faults.len();
        let fields = self.members(fields, depth + 1, Member::Field);
        (self.faults.len() == known).then(|| Arc::new(Node::Shape(fields)))
    }

    /// `None`: there is a fault.
    fn type_at(&mut self, value: &Value, depth: usize) -> Option<Arc<Node>> {
        if let Some(text) = value.as_str() {
            let mut context = Context {
                names: &self.names,
                depth,
                nodes_left: &mut self.room.nodes,
            };
            let parsed = expression::parse(text, &mut context);
            return parsed
                .map_err(|it| self.fault(it.reason, it.expected, value))
                .ok();
        }
        let Some(map) = value.as_object() else {
            self.fault("Invalid type", FORM, value);
            return None;
        };
        let limit = if depth > limits::TYPE_DEPTH_MAX {
            Some(expression::too_deep())
        } else {
            let left = self.room.nodes.checked_sub(1);
            self.room.nodes = left.unwrap_or(0);
            left.is_none().then(expression::too_many)
        };
        if let Some(fault) = limit {
            self.fault(fault.reason, fault.expected, &Value::Null);
            return None;
        }
        let only = (map.len() == 1).then(|| map.iter().next()).flatten();
        match only.map(|(name, value)| (name.as_str(), value)) {
            Some(("enum", Value::Array(values))) => {
                self.below("enum", |reader| reader.enumeration(values))
            }
            Some(("schema", schema @ (Value::Object(_) | Value::Bool(_)))) => {
                self.below("schema", |reader| reader.json_schema(schema))
            }
            _ => self.shape(map, depth),
        }
    }

    fn enumeration(&mut self, values: &[Value]) -> Option<Arc<Node>> {
        if !(1..=limits::ENUM_VALUES_MAX).contains(&values.len()) {
            let expected = format!("1 to {} values", limits::ENUM_VALUES_MAX);
            self.fault("Invalid enum", expected, &Value::from(values.len()));
            return None;
        }
        Some(Arc::new(Node::Enum(Enum::new(values))))
    }

    fn json_schema(&mut self, source: &Value) -> Option<Arc<Node>> {
        let Some(left) = self.room.schemas.checked_sub(1) else {
            let expected = format!("at most {} JSON Schemas", limits::TYPE_SCHEMAS_MAX);
            self.fault("Too many JSON Schemas", expected, &Value::Null);
            return None;
        };
        self.room.schemas = left;
        let schema = Schema::new(source);
        if self.vetting == Vetting::Trusted {
            return Some(Arc::new(Node::Schema(schema)));
        }
        if self.room.steps == 0 {
            let expected = "fewer or simpler JSON Schemas in the types of one call";
            self.fault(
                "The JSON Schemas are too costly to compile together",
                expected,
                &Value::Null,
            );
            return None;
        }
        let compiled = schema.compiled().as_ref();
        let steps = compiled.map_or(limits::REFUSED_SCHEMA_STEPS, |it| it.compile_steps());
        self.room.steps = self.room.steps.saturating_sub(steps);
        if let Err(violations) = schema.compiled() {
            for violation in violations {
                let steps = violation.path.iter().map(super::pointer::step);
                let mut path = self.path.clone();
                path.extend(steps);
                push(&mut self.faults, || FormFault {
                    path,
                    reason: "Invalid JSON Schema",
                    expected: format!("{} ({})", violation.expected, violation.reason),
                    found: violation.actual.clone(),
                });
            }
            return None;
        }
        Some(Arc::new(Node::Schema(schema)))
    }

    /// The fields of a shape, or the outputs, sorted by name; without those that have faults.
    fn members(&mut self, map: &Map<String, Value>, depth: usize, member: Member) -> Vec<Field> {
        let mut fields = Vec::with_capacity(map.len());
        for (key, value) in map {
            let shown = limits::cut(key, PATH_NAME_BYTES_MAX);
            let known = self.faults.len();
            self.below(shown, |reader| {
                fields.extend(reader.member(key, value, depth, member));
            });
            // What was to surround a type has been read as a shape.
            if member == Member::Field
                && key != TYPE
                && map.contains_key(TYPE)
                && self.faults.len() > known
            {
                let fault = &mut self.faults[known];
                fault.reason = "Unknown field";
                fault.expected = match suggestion(key, [REQUIRED, DEFAULT].into_iter()) {
                    Some(meant) => format!("a known field; did you mean `{meant}`?"),
                    None => format!(
                        "`{REQUIRED}` or `{DEFAULT}` with `{TYPE}`; as a field of a shape, {}",
                        fault.expected
                    ),
                };
            }
        }
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        for pair in fields.windows(2) {
            if let [first, second] = pair
                && first.name == second.name
            {
                self.below(&first.name, |reader| {
                    let expected = "the name once, with or without `?`";
                    reader.fault("Declared twice", expected, &Value::from(&*first.name));
                });
            }
        }
        fields
    }

    fn member(&mut self, key: &str, value: &Value, depth: usize, member: Member) -> Option<Field> {
        let (name, optional) = match key.strip_suffix('?') {
            Some(name) => (name, true),
            None => (key, false),
        };
        if name.is_empty() || name.chars().nth(limits::KEY_CHARS_MAX).is_some() {
            let expected = format!("a key of 1 to {} characters", limits::KEY_CHARS_MAX);
            self.fault("Invalid key", expected, &Value::from(key));
            return None;
        }
        let field = |node, required, default| Field {
            name: name.to_owned(),
            node,
            required,
            default,
        };
        let Some(around) = value.as_object().filter(|map| surrounds_type(map)) else {
            let node = self.type_at(value, depth)?;
            return Some(field(node, !optional, None));
        };
        let default = around.get(DEFAULT);
        let required = match around.get(REQUIRED) {
            Some(Value::Bool(true)) if optional => {
                let expected = "false, as the key ends with `?`";
                self.below(REQUIRED, |reader| {
                    reader.fault("Contradiction", expected, &Value::Bool(true));
                });
                false
            }
            Some(Value::Bool(required)) => *required,
            Some(other) => {
                self.below(REQUIRED, |reader| {
                    reader.fault("Wrong type", "true or false", other);
                });
                false
            }
            None => !optional && default.is_none(),
        };
        if let (Some(default), Member::Output) = (default, member) {
            let expected =
                "no default: an output holds what was returned; inputs may have defaults";
            self.below(DEFAULT, |reader| {
                reader.fault("Unknown field", expected, default)
            });
        }
        for (name, found) in around {
            if ![TYPE, REQUIRED, DEFAULT].contains(&name.as_str()) {
                let known: &[&str] = match member {
                    Member::Output => &[TYPE, REQUIRED],
                    Member::Field => &[TYPE, REQUIRED, DEFAULT],
                };
                let expected = known_member(name, known);
                self.below(limits::cut(name, PATH_NAME_BYTES_MAX), |reader| {
                    reader.fault("Unknown field", expected, found);
                });
            }
        }
        let node = self.below(TYPE, |reader| reader.type_at(&around[TYPE], depth))?;
        if let Some(default) = default {
            let mut path = self.path.clone();
            path.push(DEFAULT.to_owned());
            self.defaults
                .push((path, Arc::clone(&node), default.clone()));
        }
        Some(field(node, required, default.cloned()))
    }

    /// Checks the defaults; a named type with a fault accepts all of them.
    pub(super) fn check_defaults(&mut self, names: &Arc<Names>) {
        if self.vetting == Vetting::Trusted {
            return;
        }
        let scope = Scope {
            names: Arc::clone(names),
            shallow: false,
        };
        let defaults = std::mem::take(&mut self.defaults);
        let mut checker = Checker::within(&scope, limits::DEFAULT_CHECK_STEPS_MAX);
        for (path, node, default) in &defaults {
            // Out of steps is a fault, too: a declaration must be cheap to check.
            if checker.accepts(node, default) != Ok(true) {
                push(&mut self.faults, || FormFault {
                    path: path.clone(),
                    reason: "Wrong type",
                    expected: cut(&node.to_string(), Mismatch::EXPECTED_CHARS_MAX),
                    found: default.clone(),
                });
            }
        }
    }
}

/// Whether an object is what surrounds the type of an output or of a field.
fn surrounds_type(map: &Map<String, Value>) -> bool {
    let is_said = map.get(REQUIRED).is_some_and(Value::is_boolean);
    let mut names = map.keys();
    map.contains_key(TYPE)
        && (is_said || names.all(|name| matches!(name.as_str(), TYPE | REQUIRED | DEFAULT)))
}
