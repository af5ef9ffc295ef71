//! The types of one declaration, and the queries on them.

use super::check::{Checker, Lister};
use super::declaration::{Reader, Room, Vetting};
use super::fault::{FormFault, Mismatch};
use super::tree::{Names, Node, Scope};
use super::{compare, json_schema};
use crate::limits;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// The named types of a declaration, `schemas.types`.
#[derive(Debug, Clone)]
pub struct Types {
    names: Arc<Names>,
    room: Room,
    vetting: Vetting,
}

impl Types {
    /// Compiles the named types; none for a declaration without. Cost: O(size), and for each JSON Schema what
    /// [`crate::task::inputs::compile`] costs.
    ///
    /// # Errors
    /// Everything that its author has to mend, at most [`limits::VIOLATIONS_MAX`] faults, with paths that
    /// begin with `types`.
    pub fn parse(types: Option<&Value>) -> Result<Self, Vec<FormFault>> {
        Self::parse_within(types, &mut { limits::TYPE_SCHEMA_STEPS_PER_CALL_MAX })
    }

    /// The same for many tasks that share the steps of compiling JSON Schemas.
    ///
    /// # Errors
    /// As for [`Types::parse`].
    pub fn parse_within(
        types: Option<&Value>,
        steps_left: &mut u64,
    ) -> Result<Self, Vec<FormFault>> {
        Self::vetted(types, Vetting::Thorough, steps_left)
    }

    /// As [`Types::parse`], but the types without faults can be used although others have some, in whose place `any`
    /// stands: [`Type::rests_on_fault`] tells them. `None`: the names themselves cannot be told.
    #[must_use]
    pub fn parse_partly(types: Option<&Value>) -> (Option<Self>, Vec<FormFault>) {
        let mut reader = Reader::new(Vec::new(), Room::default(), Vetting::Thorough);
        let names = Arc::new(reader.types(types));
        reader.check_defaults(&names);
        let declared = types.and_then(Value::as_object).map_or(0, Map::len);
        let all_named = types.is_none_or(Value::is_object) && names.entries.len() == declared;
        let compiled = all_named.then_some(Self {
            names,
            room: reader.room,
            vetting: Vetting::Thorough,
        });
        (compiled, reader.faults)
    }

    /// The same of types that were checked when they were stored: what a release accepted is read by all later ones.
    /// Cost: O(size).
    ///
    /// # Errors
    /// As for [`Types::parse`]: no release has accepted them.
    pub fn stored(types: Option<&Value>) -> Result<Self, Vec<FormFault>> {
        Self::vetted(types, Vetting::Trusted, &mut {
            limits::TYPE_SCHEMA_STEPS_PER_CALL_MAX
        })
    }

    fn vetted(
        types: Option<&Value>,
        vetting: Vetting,
        steps_left: &mut u64,
    ) -> Result<Self, Vec<FormFault>> {
        let room = Room {
            steps: *steps_left,
            ..Room::default()
        };
        let mut reader = Reader::new(Vec::new(), room, vetting);
        let names = Arc::new(reader.types(types));
        reader.check_defaults(&names);
        *steps_left = reader.room.steps;
        if !reader.faults.is_empty() {
            return Err(reader.faults);
        }
        let room = reader.room;
        Ok(Self {
            names,
            room,
            vetting,
        })
    }

    /// Compiles a type that may use the names: an expression, a shape, `{enum}` or `{schema}`. Cost: as for
    /// [`Types::parse`].
    ///
    /// # Errors
    /// As for [`Types::parse`], with paths from `declaration`.
    pub fn type_of(&self, declaration: &Value) -> Result<Type, Vec<FormFault>> {
        self.read(|reader| reader.type_of(declaration))
    }

    /// The same for many types that share the steps of compiling JSON Schemas.
    ///
    /// # Errors
    /// As for [`Types::type_of`].
    pub fn type_of_within(
        &self,
        declaration: &Value,
        steps_left: &mut u64,
    ) -> Result<Type, Vec<FormFault>> {
        self.read(|reader| {
            reader.room.steps = *steps_left;
            let node = reader.type_of(declaration);
            *steps_left = reader.room.steps;
            node
        })
    }

    /// Compiles a member of `outputs`: its type, and whether it is required. Cost: as for [`Types::parse`].
    ///
    /// # Errors
    /// As for [`Types::parse`], with paths from `declaration`.
    pub fn output_of(
        &self,
        key: &str,
        declaration: &Value,
    ) -> Result<(Type, bool), Vec<FormFault>> {
        let mut is_required = true;
        let of = self.read(|reader| {
            let (node, required) = reader.output(key, declaration)?;
            is_required = required;
            Some(node)
        })?;
        Ok((of, is_required))
    }

    /// Compiles a shape that may use the names, `{field: type}`: a field may have any name, `enum` and `schema` among
    /// them. Cost: as for [`Types::parse`].
    ///
    /// # Errors
    /// As for [`Types::parse`], with paths from `fields`.
    pub fn shape_of(&self, fields: &Map<String, Value>) -> Result<Type, Vec<FormFault>> {
        self.read(|reader| reader.shape_of(fields))
    }

    fn read(
        &self,
        read: impl FnOnce(&mut Reader) -> Option<Arc<Node>>,
    ) -> Result<Type, Vec<FormFault>> {
        let entries = self.names.entries.iter();
        let names = entries.map(|entry| Arc::clone(&entry.name)).collect();
        let mut reader = Reader::new(names, self.room, self.vetting);
        let node = read(&mut reader);
        reader.check_defaults(&self.names);
        match node {
            Some(node) if reader.faults.is_empty() => Ok(Type {
                node,
                scope: Scope {
                    names: Arc::clone(&self.names),
                    shallow: false,
                },
            }),
            Some(_) | None => Err(reader.faults),
        }
    }
}

/// A type, with all that it needs. Cloning costs two reference counts.
///
/// Displayed, it is an expression where one can be written, else the JSON text of its declaration; parsed again with
/// the same named types, either gives an equal type.
#[derive(Debug, Clone, PartialEq)]
pub struct Type {
    pub(super) node: Arc<Node>,
    pub(super) scope: Scope,
}

impl Type {
    /// Whether a value is of the type. Nothing is coerced. Cost: O(size of the value) for the types that people
    /// write; for any, [`limits::OUTPUT_CHECK_STEPS_MAX`] steps, after which the value is not accepted.
    #[must_use]
    pub fn accepts(&self, value: &Value) -> bool {
        let mut steps_left = limits::OUTPUT_CHECK_STEPS_MAX;
        self.accepts_within(value, &mut steps_left)
    }

    /// As [`Type::accepts`], for many values that share a number of steps (about 10 ns each), which this check takes
    /// its own from; a value for which they do not suffice is not accepted.
    #[must_use]
    pub fn accepts_within(&self, value: &Value, steps_left: &mut u64) -> bool {
        let within = limits::OUTPUT_CHECK_STEPS_MAX.min(*steps_left);
        let mut checker = Checker::within(&self.scope, within);
        let accepted = checker.accepts(&self.node, value) == Ok(true);
        *steps_left -= within - checker.steps_left();
        accepted
    }

    /// What is wrong with a value, at most [`limits::VIOLATIONS_MAX`] mismatches; none when the type accepts
    /// it. Cost: that of [`Type::accepts`], and as much again for each level on the way to a mismatch, within as many
    /// steps; a list that takes more ends with a mismatch of the whole value.
    #[must_use]
    pub fn mismatches(&self, value: &Value) -> Vec<Mismatch> {
        let mut steps_left = limits::OUTPUT_CHECK_STEPS_MAX;
        self.mismatches_within(value, &mut steps_left)
    }

    /// As [`Type::mismatches`], for many values that share a number of steps (about 10 ns each), which this check takes
    /// its own from; a value for which they do not suffice is a mismatch that says so.
    #[must_use]
    pub fn mismatches_within(&self, value: &Value, steps_left: &mut u64) -> Vec<Mismatch> {
        let within = limits::OUTPUT_CHECK_STEPS_MAX.min(*steps_left);
        let mut lister = Lister::within(&self.scope, within);
        lister.value(&self.node, value);
        *steps_left -= within - lister.steps_left();
        lister.into_found()
    }

    /// Whether the type needs a named type that has a fault, as [`Types::parse_partly`] leaves them. Cost: O(size of
    /// the type).
    #[must_use]
    pub fn rests_on_fault(&self) -> bool {
        self.scope.names.rests_on_fault(&self.node)
    }

    /// The type as JSON Schema (draft-07), with the named types that it uses under `definitions`. Cost: O(size of
    /// the type and of those).
    #[must_use]
    pub fn json_schema(&self) -> Value {
        json_schema::of_type(&self.scope, &self.node)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.node.fmt(f)
    }
}

/// The relation between the values of two types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compatible {
    /// Every value of the producer is one of the consumer.
    Definite,
    /// Some may be, or it could not be told.
    Maybe,
    /// No value of the producer is one of the consumer.
    Never,
}

/// Whether every value of `producer` is one of `consumer`. [`Compatible::Definite`] and [`Compatible::Never`] hold
/// for every value that can be checked within its steps. The answer may be [`Compatible::Maybe`] although more is
/// true: for JSON Schemas, and where several alternatives of a union accept together what none accepts alone. A
/// type that has no values fits every type. Cost: O(product of the sizes), at most twice
/// [`limits::TYPE_COMPARISON_STEPS_MAX`] steps.
#[must_use]
pub fn compatible(producer: &Type, consumer: &Type) -> Compatible {
    let mut steps_left = u64::MAX;
    compatible_within(producer, consumer, &mut steps_left)
}

/// As [`compatible`], for many comparisons that share a number of steps (about 100 ns each), which this one takes its
/// own from; [`Compatible::Maybe`] when they do not suffice.
#[must_use]
pub fn compatible_within(producer: &Type, consumer: &Type, steps_left: &mut u64) -> Compatible {
    let sides = (
        (&producer.scope, &*producer.node),
        (&consumer.scope, &*consumer.node),
    );
    if compare::is_within(sides.0, sides.1, steps_left) {
        Compatible::Definite
    } else if compare::are_disjoint(sides.0, sides.1, steps_left) {
        Compatible::Never
    } else {
        Compatible::Maybe
    }
}
