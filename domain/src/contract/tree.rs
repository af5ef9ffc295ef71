//! The compiled form of a type, and the names that types refer to each other by.
//!
//! A type is a tree of [`Node`]s; only a name leads back up, so a type is recursive only through [`Names`]. Trees
//! are at most [`limits::TYPE_DEPTH_MAX`] levels deep, so code may recurse over them.

use super::kinds::Kinds;
use crate::limits;
use crate::task::inputs::{self, CompiledSchema};
use crate::violation::Violation;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Any,
    Primitive(Primitive),
    /// One value: a text, a number, `true` or `false`.
    Literal(Value),
    Enum(Enum),
    Array(Arc<Node>),
    Map(Arc<Node>),
    /// Sorted by name, without duplicates.
    Shape(Vec<Field>),
    /// `T?`: the type or null.
    Optional(Arc<Node>),
    /// At least two, none of them a union itself.
    Union(Vec<Arc<Node>>),
    Named(Name),
    Schema(Schema),
}

pub(super) static ANY: Node = Node::Any;

/// The types that have a name in every declaration, but for `any`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Primitive {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Object,
    Array,
}

impl Primitive {
    pub(super) const ALL: [(&'static str, Self); 7] = [
        ("string", Self::String),
        ("number", Self::Number),
        ("integer", Self::Integer),
        ("boolean", Self::Boolean),
        ("object", Self::Object),
        ("array", Self::Array),
        ("null", Self::Null),
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::String => "string",
            Self::Object => "object",
            Self::Array => "array",
        }
    }

    pub(super) const fn kinds(self) -> Kinds {
        match self {
            Self::Null => Kinds::NULL,
            Self::Boolean => Kinds::BOOLEAN,
            Self::Integer => Kinds::INTEGER,
            Self::Number => Kinds::NUMBER,
            Self::String => Kinds::STRING,
            Self::Object => Kinds::OBJECT,
            Self::Array => Kinds::ARRAY,
        }
    }
}

/// `{enum: [..]}`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Enum {
    /// As written.
    pub(super) values: Arc<[Value]>,
    /// The texts among them, which are most, so that finding one does not depend on how many there are.
    pub(super) texts: Arc<BTreeSet<String>>,
}

impl Enum {
    pub(super) fn new(values: &[Value]) -> Self {
        let texts = values.iter().filter_map(Value::as_str).map(str::to_owned);
        Self {
            values: values.into(),
            texts: Arc::new(texts.collect()),
        }
    }
}

/// A field of a shape.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) node: Arc<Node>,
    pub(super) required: bool,
    pub(super) default: Option<Value>,
}

/// A name of `types`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Name {
    pub(super) index: usize,
    pub(super) text: Arc<str>,
}

/// `{schema: ..}`. It is compiled when it is first needed: most readers of a stored task need other types.
#[derive(Clone)]
pub(super) struct Schema(Arc<(Value, OnceLock<Compiled>)>);

type Compiled = Result<CompiledSchema, Vec<Violation>>;

impl Schema {
    pub(super) fn new(source: &Value) -> Self {
        Self(Arc::new((source.clone(), OnceLock::new())))
    }

    pub(super) fn source(&self) -> &Value {
        &self.0.0
    }

    pub(super) fn compiled(&self) -> &Compiled {
        self.0.1.get_or_init(|| inputs::compile(self.source()))
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(self.source()).finish()
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.source() == other.source()
    }
}

/// The named types of one declaration.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Names {
    /// Sorted by name.
    pub(super) entries: Vec<Entry>,
}

/// A named type.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) name: Arc<str>,
    pub(super) node: Arc<Node>,
    pub(super) kinds: Kinds,
    /// Whether it, or what it names, has a fault, in whose place `any` stands.
    pub(super) is_faulty: bool,
}

impl Names {
    pub(super) fn get(&self, name: &Name) -> &Entry {
        &self.entries[name.index]
    }

    /// Marks these names, and all that lead to them. Cost: O(size), once for each step of the longest way.
    pub(super) fn mark_faulty(&mut self, faulty: &[usize]) {
        for index in faulty {
            self.entries[*index].is_faulty = true;
        }
        let mut marked = !faulty.is_empty();
        while marked {
            marked = false;
            for index in 0..self.entries.len() {
                let entry = &self.entries[index];
                if !entry.is_faulty && self.rests_on_fault(&entry.node) {
                    self.entries[index].is_faulty = true;
                    marked = true;
                }
            }
        }
    }

    /// Whether a type needs a name that has a fault. Cost: O(size of the type).
    pub(super) fn rests_on_fault(&self, node: &Node) -> bool {
        match node {
            Node::Named(name) => self.get(name).is_faulty,
            Node::Array(inner) | Node::Map(inner) | Node::Optional(inner) => {
                self.rests_on_fault(inner)
            }
            Node::Union(list) => list.iter().any(|one| self.rests_on_fault(one)),
            Node::Shape(fields) => fields.iter().any(|field| self.rests_on_fault(&field.node)),
            Node::Any | Node::Primitive(_) | Node::Literal(_) | Node::Enum(_) | Node::Schema(_) => {
                false
            }
        }
    }

    /// The kinds of value that a type may accept. Cost: O(size of the type), names not unfolded.
    pub(super) fn kinds(&self, node: &Node) -> Kinds {
        match node {
            Node::Any | Node::Schema(_) => Kinds::ALL,
            Node::Primitive(primitive) => primitive.kinds(),
            Node::Literal(value) => Kinds::of(value),
            Node::Enum(of) => of
                .values
                .iter()
                .fold(Kinds::NONE, |kinds, value| kinds.or(Kinds::of(value))),
            Node::Array(_) => Kinds::ARRAY,
            Node::Map(_) | Node::Shape(_) => Kinds::OBJECT,
            Node::Optional(inner) => self.kinds(inner).or(Kinds::NULL),
            Node::Union(list) => list
                .iter()
                .fold(Kinds::NONE, |kinds, one| kinds.or(self.kinds(one))),
            Node::Named(name) => self.get(name).kinds,
        }
    }
}

/// Where the names of a type are looked up, and how deep values are checked.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Scope {
    pub(super) names: Arc<Names>,
    /// Only what stands at the top of a value is checked: what fields and items hold is not.
    pub(super) shallow: bool,
}

impl Scope {
    /// The type that a field or an item of this declared type must have.
    pub(super) fn below<'a>(&self, node: &'a Node) -> &'a Node {
        if self.shallow { &ANY } else { node }
    }
}

impl Node {
    pub(super) const fn as_literal(&self) -> Option<&Value> {
        if let Self::Literal(value) = self {
            return Some(value);
        }
        None
    }

    pub(super) const fn as_array(&self) -> Option<&Arc<Self>> {
        if let Self::Array(item) = self {
            return Some(item);
        }
        None
    }

    /// The fields of a shape.
    pub(super) fn as_shape(&self) -> Option<&[Field]> {
        if let Self::Shape(fields) = self {
            return Some(fields);
        }
        None
    }

    /// The alternatives of a union.
    pub(super) fn as_union(&self) -> Option<&[Arc<Self>]> {
        if let Self::Union(list) = self {
            return Some(list);
        }
        None
    }

    pub(super) const fn as_named(&self) -> Option<&Name> {
        if let Self::Named(name) = self {
            return Some(name);
        }
        None
    }

    /// The declaration that compiles to this type.
    pub(super) fn to_declaration(&self) -> Value {
        match self {
            Self::Shape(fields) => Value::Object(fields.iter().map(Field::to_member).collect()),
            Self::Enum(of) => one_member("enum", Value::from(of.values.to_vec())),
            Self::Schema(schema) => one_member("schema", schema.source().clone()),
            Self::Any
            | Self::Primitive(_)
            | Self::Literal(_)
            | Self::Array(_)
            | Self::Map(_)
            | Self::Optional(_)
            | Self::Union(_)
            | Self::Named(_) => Value::String(self.to_string()),
        }
    }
}

fn one_member(name: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(name.to_owned(), value)]))
}

impl Field {
    fn to_member(&self) -> (String, Value) {
        let declaration = self.node.to_declaration();
        let mark = if self.required { "" } else { "?" };
        let key = format!("{}{mark}", self.name);
        // An inline shape with a field `type` would be read as what surrounds a type.
        if self.default.is_none() && declaration.get("type").is_none() {
            return (key, declaration);
        }
        let mut map = Map::from_iter([("type".to_owned(), declaration)]);
        if let Some(default) = &self.default {
            map.insert("default".to_owned(), default.clone());
            if self.required {
                map.insert("required".to_owned(), Value::Bool(true));
            }
        }
        (key, Value::Object(map))
    }
}

/// An expression where there is one, else the JSON text of the declaration.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Primitive(primitive) => f.write_str(primitive.name()),
            Self::Literal(value) => write!(f, "{value}"),
            Self::Array(of) => write!(f, "array<{of}>"),
            Self::Map(of) => write!(f, "map<{of}>"),
            Self::Optional(of) if matches!(**of, Self::Union(_)) => write!(f, "({of})?"),
            Self::Optional(of) => write!(f, "{of}?"),
            Self::Union(list) => {
                for (i, one) in list.iter().enumerate() {
                    let between = if i == 0 { "" } else { "|" };
                    write!(f, "{between}{one}")?;
                }
                Ok(())
            }
            Self::Named(name) => f.write_str(&name.text),
            Self::Enum(_) | Self::Shape(_) | Self::Schema(_) => {
                write!(f, "{}", self.to_declaration())
            }
        }
    }
}

/// Why named types cannot be compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameFault {
    /// The type is another name for itself.
    Circular,
    /// It is another name for another name and so on, over too many levels.
    TooDeep,
}

/// How far the search for circles has come with a name.
#[derive(Clone, Copy)]
enum Found {
    Unseen,
    Open,
    Faulty,
    Kinds(Kinds, usize),
}

/// Looks for names that mean themselves, with no array, map or shape between, and finds the kinds of each name.
struct Search<'a> {
    nodes: &'a [(Arc<str>, Arc<Node>)],
    found: Vec<Found>,
}

impl Names {
    /// Names of these types, which are sorted by name.
    ///
    /// # Errors
    /// One fault for each circle and each chain that is too long, with the index of a name in it.
    pub(super) fn new(nodes: Vec<(Arc<str>, Arc<Node>)>) -> Result<Self, Vec<(usize, NameFault)>> {
        let mut search = Search {
            nodes: &nodes,
            found: vec![Found::Unseen; nodes.len()],
        };
        let starts = 0..search.nodes.len();
        let faults = starts.filter_map(|start| search.start(start));
        let faults: Vec<_> = faults.collect();
        if !faults.is_empty() {
            return Err(faults);
        }
        let kinds = search.found.iter().map(|found| match found {
            Found::Kinds(kinds, _) => *kinds,
            Found::Unseen | Found::Open | Found::Faulty => {
                unreachable!("every name has been searched")
            }
        });
        let kinds: Vec<Kinds> = kinds.collect();
        let entries = nodes.into_iter().zip(kinds);
        let entries = entries.map(|((name, node), kinds)| Entry {
            name,
            node,
            kinds,
            is_faulty: false,
        });
        Ok(Self {
            entries: entries.collect(),
        })
    }
}

impl Search<'_> {
    fn start(&mut self, start: usize) -> Option<(usize, NameFault)> {
        let fault = self.name(start, 0).err()?;
        for found in &mut self.found {
            if matches!(found, Found::Open) {
                *found = Found::Faulty;
            }
        }
        fault.map(|fault| (start, fault))
    }

    /// `Err(None)`: the fault has been reported under another name.
    fn name(&mut self, index: usize, depth: usize) -> Result<(Kinds, usize), Option<NameFault>> {
        match self.found[index] {
            Found::Open => return Err(Some(NameFault::Circular)),
            Found::Faulty => return Err(None),
            Found::Kinds(_, levels) if depth + levels > limits::TYPE_DEPTH_MAX => {
                return Err(Some(NameFault::TooDeep));
            }
            Found::Kinds(kinds, levels) => return Ok((kinds, levels)),
            Found::Unseen => {}
        }
        self.found[index] = Found::Open;
        let node = Arc::clone(&self.nodes[index].1);
        let (kinds, levels) = self.node(&node, depth + 1)?;
        self.found[index] = Found::Kinds(kinds, levels + 1);
        Ok((kinds, levels + 1))
    }

    fn node(&mut self, node: &Node, depth: usize) -> Result<(Kinds, usize), Option<NameFault>> {
        if depth > limits::TYPE_DEPTH_MAX {
            return Err(Some(NameFault::TooDeep));
        }
        match node {
            Node::Named(name) => self.name(name.index, depth),
            Node::Optional(inner) => {
                let (kinds, levels) = self.node(inner, depth + 1)?;
                Ok((kinds.or(Kinds::NULL), levels + 1))
            }
            Node::Union(list) => {
                let (mut kinds, mut levels) = (Kinds::NONE, 0);
                for one in list {
                    let found = self.node(one, depth + 1)?;
                    kinds = kinds.or(found.0);
                    levels = levels.max(found.1);
                }
                Ok((kinds, levels + 1))
            }
            Node::Any
            | Node::Primitive(_)
            | Node::Literal(_)
            | Node::Enum(_)
            | Node::Array(_)
            | Node::Map(_)
            | Node::Shape(_)
            | Node::Schema(_) => Ok((Names::default().kinds(node), 1)),
        }
    }
}
