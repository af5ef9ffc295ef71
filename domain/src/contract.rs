//! The typed outputs of a task: `schemas.outputs`, with `schemas.types` and `schemas.validation`.
//!
//! Owns: the language of types (`expression`, `declaration`), their compiled form (`tree`), the check of an output
//! (`check`), the comparison of types before anything runs (`compare`), and their form as JSON Schema. Types and
//! values are hostile until proven otherwise: all recursion and all work is bounded, with limits in
//! [`crate::limits`]. May not touch: tasks, flows, dependencies.
//! spec: I/O contracts / 1, 3.3, 4
//!
//! ```text
//! outputs     {key: type | {type, required?}}         a key that ends with `?` is optional, too
//! types       {Name: type}
//! type        an expression | a shape | {enum: [values]} | {schema: JSON Schema}
//! shape       {field: type | {type, required?, default?}}   open: other members are accepted
//! validation  "deep" (without it) | "shallow": what fields, items and members hold is not checked
//! ```
//!
//! A field with a default is optional unless it says `required: true`; the default is documentation, and no value
//! is changed. Without `outputs`, the other members mean nothing here and are not looked at.

mod breach;
mod check;
mod compare;
mod declaration;
mod expression;
mod fault;
mod json_schema;
mod kinds;
mod objects;
mod place;
mod pointer;
#[cfg(test)]
mod tests;
mod tree;
mod types;
mod words;

pub use breach::{Breach, Broken, Incomplete};
pub use fault::{FormFault, Mismatch, OutputFault, TooLarge};
pub use kinds::equal;
pub use types::{Compatible, Type, Types, compatible, compatible_within};

use crate::{Payload, limits};
use check::Lister;
use declaration::{Reader, Room, Vetting};
use serde_json::{Map, Value};
use std::sync::Arc;
use tree::{Field, Scope};

const OUTPUTS: &str = "outputs";
const TYPES: &str = "types";
const VALIDATION: &str = "validation";

/// The declared outputs of a task: at least one.
#[derive(Debug, Clone)]
pub struct Outputs {
    /// Sorted by name.
    fields: Vec<Field>,
    scope: Scope,
}

impl Outputs {
    /// Those of a stored task; `None` for a task that declares none, or whose declaration has faults, which no task
    /// has that was created with them. Cost: O(size of `schemas`), without memory for a task without;
    /// JSON Schemas are compiled when they are first needed.
    #[must_use]
    pub fn of(schemas: &Payload) -> Option<Self> {
        let declared = schemas.has_any(&[OUTPUTS]);
        Self::of_map(&declared.then(|| schemas.to_map())?)
    }

    /// As [`Self::of`], of the members of `schemas`.
    #[must_use]
    pub fn of_map(schemas: &Map<String, Value>) -> Option<Self> {
        let steps_left = &mut { limits::TYPE_SCHEMA_STEPS_PER_CALL_MAX };
        Self::compile(schemas, Vetting::Trusted, steps_left)
            .ok()
            .flatten()
    }

    /// Compiles the declaration in `schemas`; `None` when there is none, or an empty one. Cost: O(size), and for
    /// each JSON Schema what [`crate::task::inputs::compile`] costs.
    ///
    /// # Errors
    /// Everything that its author has to mend, at most [`limits::VIOLATIONS_MAX`] faults, with paths below `schemas`.
    pub fn parse(schemas: &Map<String, Value>) -> Result<Option<Self>, Vec<FormFault>> {
        Self::parse_within(schemas, &mut { limits::TYPE_SCHEMA_STEPS_PER_CALL_MAX })
    }

    /// The same for many tasks that share the steps of compiling JSON Schemas.
    ///
    /// # Errors
    /// As for [`Outputs::parse`].
    pub fn parse_within(
        schemas: &Map<String, Value>,
        steps_left: &mut u64,
    ) -> Result<Option<Self>, Vec<FormFault>> {
        Self::compile(schemas, Vetting::Thorough, steps_left)
    }

    fn compile(
        schemas: &Map<String, Value>,
        vetting: Vetting,
        steps_left: &mut u64,
    ) -> Result<Option<Self>, Vec<FormFault>> {
        let Some(outputs) = schemas.get(OUTPUTS) else {
            return Ok(None);
        };
        let room = Room {
            steps: *steps_left,
            ..Room::default()
        };
        let mut reader = Reader::new(Vec::new(), room, vetting);
        let names = Arc::new(reader.types(schemas.get(TYPES)));
        let fields = reader.outputs(outputs);
        let shallow = match schemas.get(VALIDATION).map(|it| (it, it.as_str())) {
            None | Some((_, Some("deep"))) => false,
            Some((_, Some("shallow"))) => true,
            Some((other, _)) => {
                reader.below(VALIDATION, |reader| {
                    reader.fault("Invalid value", "one of: deep, shallow", other);
                });
                false
            }
        };
        reader.check_defaults(&names);
        *steps_left = reader.room.steps;
        if !reader.faults.is_empty() {
            return Err(reader.faults);
        }
        let scope = Scope { names, shallow };
        Ok((!fields.is_empty()).then_some(Self { fields, scope }))
    }

    /// Checks an output: presence first, then types. Keys that are not declared are accepted. Cost: O(size of the
    /// output) for the types that people write, for any twice [`limits::OUTPUT_CHECK_STEPS_MAX`] steps.
    ///
    /// # Errors
    /// [`OutputFault`]: everything that is wrong, up to its limits; its author can mend it.
    pub fn check(&self, output: &Map<String, Value>) -> Result<(), OutputFault> {
        self.check_within(output, &mut { limits::OUTPUT_CHECK_STEPS_MAX })
    }

    /// The same for many outputs that share a number of steps; what cannot be told within them is not accepted.
    ///
    /// # Errors
    /// As for [`Outputs::check`].
    pub fn check_within(
        &self,
        output: &Map<String, Value>,
        steps_left: &mut u64,
    ) -> Result<(), OutputFault> {
        let required = self.fields.iter().filter(|field| field.required);
        let missing = required.filter(|field| !output.contains_key(&field.name));
        let missing = missing.take(limits::VIOLATIONS_MAX);
        let missing: Vec<String> = missing.map(|field| field.name.clone()).collect();
        let mut lister = Lister::within(&self.scope, *steps_left);
        for field in &self.fields {
            if let Some(value) = output.get(&field.name) {
                lister.output(&field.name, &field.node, value);
            }
        }
        *steps_left = lister.steps_left();
        let mismatches = lister.into_found();
        if missing.is_empty() && mismatches.is_empty() {
            return Ok(());
        }
        Err(OutputFault {
            missing,
            mismatches,
            too_large: None,
        })
    }

    /// The declared keys, sorted.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| field.name.as_str())
    }

    /// Whether an output must have a key; `None` for one that is not declared. Cost: O(log(keys)).
    #[must_use]
    pub fn is_required(&self, key: &str) -> Option<bool> {
        self.field(key).map(|field| field.required)
    }

    /// The type of a declared key. Where the check is shallow, so is that of the type. Cost: O(log(keys)).
    #[must_use]
    pub fn type_of(&self, key: &str) -> Option<Type> {
        self.field(key).map(|field| Type {
            node: Arc::clone(&field.node),
            scope: self.scope.clone(),
        })
    }

    /// What [`Outputs::check`] accepts as JSON Schema (draft-07), with the named types that are used under
    /// `definitions`. Cost: O(size of the declaration).
    #[must_use]
    pub fn json_schema(&self) -> Value {
        json_schema::of_members(&self.scope, &self.fields)
    }

    fn field(&self, key: &str) -> Option<&Field> {
        let found = self
            .fields
            .binary_search_by(|field| field.name.as_str().cmp(key));
        found.ok().map(|at| &self.fields[at])
    }
}
