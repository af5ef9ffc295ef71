//! Checks whether the inputs of a task conform to a JSON Schema (draft-07), whoever wrote the schema.
//!
//! Owns: the limits of a schema that a caller may bring, its compilation, and the violations that
//! a caller sees. Pure: no network, no files, no threads; a reference that leaves the schema is
//! refused. A schema is hostile until proven otherwise: it is measured (`survey`), compiled with
//! a gauge in each subschema (`rewrite`, `fuel`, `pattern_price`), and a check that would cost too
//! much ends with a violation that says so (`report` words all violations).
//! spec: validation / Schema Validation, step 6; data-model / schemas.input_schema
//!
//! Unknown keywords and unknown formats are annotations, as draft-07 has it. Formats that are
//! checked: those of draft-07, and `uuid`, which here means version 4.

mod embed;
mod fuel;
mod meta;
mod multiple_of;
mod pattern;
mod pattern_price;
mod report;
mod rewrite;
mod survey;
#[cfg(test)]
mod tests;

pub(crate) use embed::{Embedded, embedded, reference};

use crate::ids::parse_uuid_v4;
use crate::violation::Violation;
use fuel::{Budget, Exhausted};
use jsonschema::{PatternOptions, ValidationError, Validator};
use report::Subject;
pub(crate) use report::{TOO_COSTLY, WRONG_TYPE};
use rewrite::Rewritten;
use serde_json::{Value, json};
use std::fmt;
use std::sync::LazyLock;

/// Bounds of a schema that a caller brings. Within them a schema compiles in tens of milliseconds
/// at worst and a compiled one stays below a few megabytes.
pub mod limits {
    /// Bytes of JSON text of a schema: generous for people, small for a machine.
    pub const SCHEMA_BYTES_MAX: usize = 64 * 1024;
    /// Members of inputs that are listed to whoever gives one that the schema does not have: as many as executors have.
    pub const MEMBERS_TOLD_MAX: usize = 24;
    /// JSON levels of a schema: the compiler recurses over them.
    pub const SCHEMA_DEPTH_MAX: usize = 100;
    /// Subschemas of a schema, the root included: compile time grows faster than their number.
    pub const SUBSCHEMAS_MAX: usize = 2_000;
    /// Regular expressions of a schema, from `pattern` and `patternProperties`: each may hold
    /// [`PATTERN_PROGRAM_BYTES_MAX`] for as long as the schema is in use.
    pub const PATTERNS_MAX: usize = 64;
    /// Bytes of text of one regular expression.
    pub const PATTERN_BYTES_MAX: usize = 1024;
    /// Bytes of one compiled regular expression, and of its matching tables.
    pub const PATTERN_PROGRAM_BYTES_MAX: usize = 64 * 1024;
    /// Values in one `enum`: they are compared one by one.
    pub const ENUM_VALUES_MAX: usize = 1_000;
    /// Steps (about 10 ns each) that one pass over the inputs may take.
    pub const CHECK_STEPS_MAX: u64 = 2_000_000;
    /// Places (a visited subschema, an item, a member) at which listing the violations may leave
    /// an error of a few hundred bytes behind, before the list is cut.
    pub const LIST_PLACES_MAX: u64 = 50_000;
    /// Bytes of the names on the way to a value for which an error counts once more: each error
    /// repeats them all.
    pub const LISTED_PATH_BYTES: usize = 256;
    /// Bytes of stack that a check may use; worker threads have 2 MiB.
    pub const CHECK_STACK_BYTES_MAX: usize = 512 * 1024;
    /// Violations listed for one schema or one set of inputs; the rest is counted.
    pub const LISTED_MAX: usize = 20;
}

/// To find out whether, and to find the first violation.
const CHECK: Budget = Budget {
    steps: limits::CHECK_STEPS_MAX,
    places: u64::MAX,
};
/// To find all violations.
const LIST: Budget = Budget {
    steps: limits::CHECK_STEPS_MAX,
    places: limits::LIST_PLACES_MAX,
};

/// A work that consists of several checks has used up its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfSteps;

/// A schema that is ready to check inputs. Immutable; share it behind an `Arc`.
pub struct CompiledSchema {
    validator: Validator,
    weight: usize,
    /// It has `anyOf` or `oneOf`, whose error holds the errors of all branches.
    branches: bool,
    /// The members that inputs may have, where it allows no others: told to whoever gives another one.
    members: Vec<Box<str>>,
}

impl fmt::Debug for CompiledSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledSchema")
            .field("weight", &self.weight)
            .finish_non_exhaustive()
    }
}

/// Compiles a draft-07 schema. Cost: tens of microseconds for a small schema, tens of
/// milliseconds at the limits; keep the result.
///
/// # Errors
/// What the author of the schema has to mend, with paths from the schema's root: not draft-07
/// (another `$schema` included), over a limit, a `$ref` that leaves the schema or names no
/// subschema, a regular expression that cannot be matched in linear time.
pub fn compile(schema: &Value) -> Result<CompiledSchema, Vec<Violation>> {
    static META: LazyLock<CompiledSchema> = LazyLock::new(|| {
        let meta = meta::schema();
        let rewritten = rewrite::rewrite(&meta).expect("the meta-schema keeps to the limits");
        build(&rewritten, &meta).expect("the meta-schema is a schema")
    });
    let rewritten = rewrite::rewrite(schema)?;
    let mut steps = u64::MAX;
    META.examine(Subject::Schema, schema, &mut steps)
        .expect("there are steps for every pass")?;
    build(&rewritten, schema)
}

/// Compiles what was rewritten from `schema`.
fn build(rewritten: &Rewritten, schema: &Value) -> Result<CompiledSchema, Vec<Violation>> {
    let built = fuel::unmetered(|| validator(&rewritten.schema).map_err(|e| faults(schema, &e)));
    match built {
        Ok(Ok(validator)) => Ok(CompiledSchema {
            validator,
            weight: rewritten.weight,
            branches: rewritten.branches,
            members: members(schema),
        }),
        Ok(Err(violations)) => Err(violations),
        Err(Exhausted) => Err(vec![report::schema_too_costly()]),
    }
}

/// The members that the root of `schema` names, if it allows no others and they are few enough to be told.
fn members(schema: &Value) -> Vec<Box<str>> {
    let named = || {
        let closed = schema.get("additionalProperties")? == &Value::Bool(false);
        let named = schema.get("properties")?.as_object()?;
        (closed && named.len() <= limits::MEMBERS_TOLD_MAX).then_some(named)
    };
    let named = named().into_iter().flatten();
    named.map(|(name, _)| name.as_str().into()).collect()
}

fn validator(schema: &Value) -> Result<Validator, ValidationError<'_>> {
    jsonschema::draft7::options()
        .offline()
        .should_validate_formats(true)
        .with_format("uuid", |text: &str| parse_uuid_v4(text).is_ok())
        .with_pattern_options(
            PatternOptions::regex()
                .size_limit(limits::PATTERN_PROGRAM_BYTES_MAX)
                .dfa_size_limit(limits::PATTERN_PROGRAM_BYTES_MAX),
        )
        .with_keyword(fuel::KEYWORD, fuel::gauge)
        .with_keyword(multiple_of::KEYWORD, multiple_of::multiple_of)
        .build(schema)
}

/// Why a well-formed schema could not be compiled: a regular expression, of which the compiler
/// shows the text, or the object whose names hold it.
fn faults(schema: &Value, error: &ValidationError<'_>) -> Vec<Violation> {
    let usable = |text: &str| validator(&json!({"pattern": text})).is_ok();
    let instance = error.instance();
    let names = instance.as_object().map(|named| named.keys());
    let text = match names {
        Some(names) => names.map(String::as_str).find(|name| !usable(name)),
        None => instance.as_str(),
    };
    let text = text.map(pattern::as_written);
    report::of_build(schema, text.as_deref(), error)
}

impl CompiledSchema {
    /// Checks `inputs`. Cost: O(size of the inputs) for the schemas that people write, at most
    /// three passes of [`limits::CHECK_STEPS_MAX`] steps for any.
    ///
    /// # Errors
    /// All violations up to [`limits::LISTED_MAX`] and a count of the others, with paths from the
    /// root of the inputs, in an order that depends on schema and inputs only. One violation alone
    /// when the check or the list would cost too much.
    pub fn check(&self, inputs: &Value) -> Result<(), Vec<Violation>> {
        let mut steps = u64::MAX;
        self.check_within(inputs, &mut steps)
            .expect("there are steps for every pass")
    }

    /// The same, of a larger work that has `steps_left`; what the check takes is taken from them.
    ///
    /// # Errors
    /// [`OutOfSteps`]: fewer steps were left than the check may take, and they did not suffice.
    pub fn check_within(
        &self,
        inputs: &Value,
        steps_left: &mut u64,
    ) -> Result<Result<(), Vec<Violation>>, OutOfSteps> {
        self.examine(Subject::Inputs, inputs, steps_left)
    }

    fn examine(
        &self,
        subject: Subject,
        value: &Value,
        steps_left: &mut u64,
    ) -> Result<Result<(), Vec<Violation>>, OutOfSteps> {
        match pass(CHECK, steps_left, || self.validator.is_valid(value))? {
            Ok(true) => return Ok(Ok(())),
            Ok(false) => {}
            Err(Exhausted) => return Ok(Err(vec![subject.too_costly()])),
        }
        let names = 1 + report::path_bytes_max(value) / limits::LISTED_PATH_BYTES;
        let list = Budget {
            places: LIST.places / names as u64,
            ..LIST
        };
        let listed = pass(list, steps_left, || {
            subject.translate(value, &self.members, self.validator.iter_errors(value))
        })?;
        Ok(Err(match listed {
            Ok(violations) => violations,
            Err(Exhausted) if self.branches => vec![subject.faults_too_many()],
            // Without branches the first error alone is small, wherever it is.
            Err(Exhausted) => pass(CHECK, steps_left, || {
                self.validator
                    .validate(value)
                    .err()
                    .map(|error| subject.translate(value, &self.members, std::iter::once(error)))
            })?
            .ok()
            .flatten()
            .unwrap_or_else(|| vec![subject.faults_too_many()]),
        }))
    }

    /// Steps that compiling it took, estimated from above: its text and its regular expressions.
    #[must_use]
    pub const fn compile_steps(&self) -> u64 {
        /// Measured: a regular expression may take 0.3 ms, and a byte of text 0.4 µs.
        const WEIGHT_BYTES_PER_STEP: usize = 8;
        (self.weight / WEIGHT_BYTES_PER_STEP) as u64
    }

    /// Bytes of memory that it holds, estimated from above, for caches that are bounded in bytes.
    #[must_use]
    pub const fn weight(&self) -> usize {
        self.weight
    }
}

/// One pass over the inputs, with what the budget allows and what is left.
fn pass<T>(
    budget: Budget,
    steps_left: &mut u64,
    check: impl FnOnce() -> T,
) -> Result<Result<T, Exhausted>, OutOfSteps> {
    let steps = budget.steps.min(*steps_left);
    let (outcome, taken) = fuel::metered(Budget { steps, ..budget }, check);
    *steps_left -= taken;
    match outcome {
        Err(Exhausted) if steps < budget.steps => Err(OutOfSteps),
        outcome => Ok(outcome),
    }
}
