//! Inputs against schemas: the task's own `input_schema` and its executor's.
//! spec: validation / Input Validation

use super::ports::Executors;
use super::schema_cache::{self, SchemaCache};
use serde_json::Value;
use std::sync::Arc;
use taskledger_domain::flow::Specification;
use taskledger_domain::limits;
use taskledger_domain::task::inputs::CompiledSchema;
use taskledger_domain::violation::{PathSegment, Violation};

/// Bytes of inputs and schemas beyond which a check leaves the threads that serve sockets.
const INLINE_BYTES_MAX: usize = 16 * 1024;
/// Steps (about 10 ns each) of the checks of one call beyond which it leaves them too.
const INLINE_STEPS_MAX: u64 = 100_000;

/// Checks specifications; compiled schemas are shared between calls.
#[derive(Debug)]
pub struct Validation {
    schemas: SchemaCache,
    executors: Arc<dyn Executors>,
}

impl Validation {
    /// A validation with an empty cache of schemas.
    #[must_use]
    pub fn new(executors: Arc<dyn Executors>) -> Self {
        Self {
            schemas: SchemaCache::default(),
            executors,
        }
    }

    /// All violations of these specifications, at the paths given with them. Cost: O(size), bounded
    /// by the limits of the schema check; long checks run on the blocking pool.
    pub async fn check(
        self: &Arc<Self>,
        list: Vec<(Vec<PathSegment>, Specification)>,
    ) -> Vec<Violation> {
        let list: Vec<_> = list
            .into_iter()
            .filter(|(_, s)| self.has_schema(s))
            .collect();
        let bytes: usize = list
            .iter()
            .map(|(_, s)| {
                s.inputs.as_str().len() + s.schemas.as_ref().map_or(0, |p| p.as_str().len())
            })
            .sum();
        if bytes <= INLINE_BYTES_MAX
            && let Some(violations) = self.check_inline(&list)
        {
            return violations;
        }
        let this = self.clone();
        let checked = tokio::task::spawn_blocking(move || {
            let check = |schema: &CompiledSchema, inputs: &Value| Some(schema.check(inputs));
            this.check_all(&list, |schema| Some(this.schemas.get(schema)), check)
        });
        match checked.await {
            Ok(violations) => violations.unwrap_or_default(),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    /// The same, unless it would take long.
    fn check_inline(&self, list: &[(Vec<PathSegment>, Specification)]) -> Option<Vec<Violation>> {
        let steps = INLINE_STEPS_MAX / list.len().max(1) as u64;
        self.check_all(
            list,
            |schema| self.schemas.get_quickly(schema),
            |schema, inputs| schema.check_within(inputs, steps),
        )
    }

    fn has_schema(&self, specification: &Specification) -> bool {
        specification
            .schemas
            .as_ref()
            .is_some_and(|s| s.as_str().contains("input_schema"))
            || specification
                .method
                .as_deref()
                .is_some_and(|m| self.executors.input_schema(m).is_some())
    }

    /// All violations; `None` when `compile` or `check` gave up.
    fn check_all(
        &self,
        list: &[(Vec<PathSegment>, Specification)],
        compile: impl Fn(&Value) -> Option<schema_cache::Outcome>,
        check: impl Fn(&CompiledSchema, &Value) -> Option<Result<(), Vec<Violation>>>,
    ) -> Option<Vec<Violation>> {
        let mut violations = Vec::new();
        for (path, specification) in list {
            violations.extend(self.check_one(path, specification, &compile, &check)?);
            if violations.len() >= limits::VIOLATIONS_MAX {
                violations.truncate(limits::VIOLATIONS_MAX);
                break;
            }
        }
        Some(violations)
    }

    fn check_one(
        &self,
        path: &[PathSegment],
        specification: &Specification,
        compile: impl Fn(&Value) -> Option<schema_cache::Outcome>,
        check: impl Fn(&CompiledSchema, &Value) -> Option<Result<(), Vec<Violation>>>,
    ) -> Option<Vec<Violation>> {
        let at = |fields: &[&str]| {
            path.iter()
                .cloned()
                .chain(fields.iter().map(|f| (*f).into()))
                .collect::<Vec<_>>()
        };
        let inputs = Value::Object(specification.inputs.to_map());
        let mut violations = Vec::new();
        let schema = specification
            .schemas
            .as_ref()
            .and_then(|s| s.to_map().remove("input_schema"));
        if let Some(schema) = schema {
            match compile(&schema)? {
                Err(faults) => {
                    let place = at(&["schemas", "input_schema"]);
                    violations.extend(faults.iter().cloned().map(|v| v.below(&place)));
                }
                Ok(compiled) => {
                    let faults = check(&compiled, &inputs)?.err().unwrap_or_default();
                    violations.extend(faults.into_iter().map(|v| v.below(&at(&["inputs"]))));
                }
            }
        }
        if let Some(compiled) = specification
            .method
            .as_deref()
            .and_then(|m| self.executors.input_schema(m))
        {
            for fault in check(&compiled, &inputs)?.err().unwrap_or_default() {
                let fault = fault.below(&at(&["inputs"]));
                if !violations.contains(&fault) {
                    violations.push(fault);
                }
            }
        }
        Some(violations)
    }
}
