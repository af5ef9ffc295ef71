//! Validates inputs against schemas: the task's own `input_schema` and its executor's. spec: validation / Input
//! Validation

use super::ports::{ExecutorSnapshot, Executors};
use super::schema_cache::SchemaCache;
use crate::runtime::maybe_block_in_place;
use serde_json::Value;
use std::sync::Arc;
use taskledger_domain::Payload;
use taskledger_domain::flow::Specification;
use taskledger_domain::limits;
use taskledger_domain::task::call::{TaskList, UnknownMethod};
use taskledger_domain::task::inputs::OutOfSteps;
use taskledger_domain::task::spec::unknown_params;
use taskledger_domain::task::wiring::is_wired;
use taskledger_domain::violation::{PathSegment, Violation};
use taskledger_workers::MethodKey;

/// Bytes of inputs and schemas beyond which a check leaves the threads that serve sockets.
const INLINE_BYTES_MAX: usize = 16 * 1024;
/// Steps (about 15 ns each) after which it leaves them too: a short schema may be a costly one.
const INLINE_STEPS_MAX: u64 = 100_000;
/// Steps that all schemas of one call may take, compiling included: a few seconds of one thread.
/// 16 MiB of inputs take a fifth of it; a schema alone is stopped long before.
const CALL_STEPS_MAX: u64 = 200_000_000;

/// Bytes of `params` that take as long to read as other work takes for a task: about a microsecond.
const PARAMS_BYTES_PER_TASK: usize = 200;

/// A specification, and where it stands in the parameters.
type Checked = (Vec<PathSegment>, Specification);

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
        let schemas = SchemaCache::new(
            super::schema_cache::ENTRIES_MAX,
            super::schema_cache::WEIGHT_BYTES_MAX,
        );
        Self { schemas, executors }
    }

    /// The executors as they stand now, for whoever has declared nothing for themselves.
    #[must_use]
    pub fn executors(&self) -> Arc<dyn ExecutorSnapshot> {
        self.executors.snapshot()
    }

    /// The same for flows of this owner.
    #[must_use]
    pub fn executors_for(&self, owner: Option<&str>) -> Arc<dyn ExecutorSnapshot> {
        self.executors.snapshot_for(owner)
    }

    /// All violations of the specifications of a call, for a flow of this owner: inputs that do not conform, and
    /// members of `params` that nobody reads. Stored tasks are not asked for the latter again when they run: they
    /// may be older than a declaration. Cost: as [`Self::check`], and O(`params`).
    pub async fn check_call(
        self: &Arc<Self>,
        owner: Option<&str>,
        list: Vec<Checked>,
    ) -> Vec<Violation> {
        let bytes: usize = list
            .iter()
            .filter_map(|(_, s)| s.params.as_ref())
            .map(|params| params.as_str().len())
            .sum();
        let executors = self.executors.snapshot_for(owner);
        let mut violations = maybe_block_in_place(bytes / PARAMS_BYTES_PER_TASK, || {
            let found = list
                .iter()
                .flat_map(|(path, s)| undeclared(&*executors, path, s));
            found.take(limits::VIOLATIONS_MAX).collect::<Vec<_>>()
        });
        violations.extend(self.check_by(executors, list).await);
        violations.truncate(limits::VIOLATIONS_MAX);
        violations
    }

    /// Methods of new tasks of a flow of this owner for which there is no executor. Cost: O(tasks).
    #[must_use]
    pub fn unknown_executors(&self, owner: Option<&str>, list: &TaskList) -> Vec<UnknownMethod> {
        let executors = self.executors.snapshot_for(owner);
        list.unknown_executors(|method| executors.knows(method))
    }

    /// Whether there are methods among new tasks that no executor has, for flows of any user. Cost: O(tasks).
    #[must_use]
    pub fn lacks_executors(&self, list: &TaskList) -> bool {
        let executors = self.executors.snapshot();
        let knows = |method: &str| executors.knows(method) || executors.is_remote_for_any(method);
        !list.unknown_executors(knows).is_empty()
    }

    /// All violations of these specifications of tasks of a flow of this owner, at the paths given with them. Cost:
    /// O(size), bounded by the limits of the schema check; long checks run on the blocking pool.
    pub async fn check(
        self: &Arc<Self>,
        owner: Option<&str>,
        list: Vec<Checked>,
    ) -> Vec<Violation> {
        self.check_by(self.executors.snapshot_for(owner), list)
            .await
    }

    async fn check_by(
        self: &Arc<Self>,
        executors: Arc<dyn ExecutorSnapshot>,
        list: Vec<Checked>,
    ) -> Vec<Violation> {
        let list: Vec<_> = list
            .into_iter()
            .filter(|(_, s)| has_schema(&*executors, s))
            .collect();
        if let Some(violations) = self.check_inline(&*executors, &list, INLINE_STEPS_MAX) {
            return violations;
        }
        let this = self.clone();
        let checked =
            tokio::task::spawn_blocking(move || this.check_now(&*executors, &list, CALL_STEPS_MAX));
        match checked.await {
            Ok(violations) => violations,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    /// What is wrong with the output of a worker, by what its method declares; below `output`. Cost: O(output)
    /// when there is a declaration, on the blocking pool unless it is small.
    pub async fn check_output(&self, method: &MethodKey, output: &Payload) -> Vec<Violation> {
        let executors = self.executors.snapshot_for(method.owner.as_deref());
        let Some(schema) = executors.output_schema(&method.name) else {
            return Vec::new();
        };
        let output = output.clone();
        let check = move || {
            let output = Value::Object(output.to_map());
            let faults = schema.check(&output).err().unwrap_or_default();
            let place = ["output".into()];
            faults
                .into_iter()
                .map(|fault| fault.below(&place))
                .collect()
        };
        match tokio::task::spawn_blocking(check).await {
            Ok(violations) => violations,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    /// All violations of a specification, where nobody can wait; `None` when a check takes more than
    /// `steps_max` (about 15 ns each), or may.
    pub fn check_at_once(
        &self,
        specification: &Specification,
        steps_max: u64,
    ) -> Option<Vec<Violation>> {
        let executors = self.executors.snapshot();
        if !has_schema(&*executors, specification) {
            return Some(Vec::new());
        }
        let list = [(Vec::new(), specification.clone())];
        self.check_inline(&*executors, &list, steps_max)
    }

    fn check_inline(
        &self,
        executors: &dyn ExecutorSnapshot,
        list: &[Checked],
        steps_max: u64,
    ) -> Option<Vec<Violation>> {
        let bytes: usize = list
            .iter()
            .map(|(_, s)| {
                s.inputs.as_str().len() + s.schemas.as_ref().map_or(0, |p| p.as_str().len())
            })
            .sum();
        if bytes > INLINE_BYTES_MAX || !list.iter().all(|(_, s)| self.compiles_quickly(s)) {
            return None;
        }
        self.check_all(executors, list, steps_max).ok()
    }

    fn compiles_quickly(&self, specification: &Specification) -> bool {
        specification
            .input_schema()
            .is_none_or(|schema| self.schemas.is_quick(&schema))
    }

    /// As [`Self::check_all`]; what costs too much is a violation.
    fn check_now(
        &self,
        executors: &dyn ExecutorSnapshot,
        list: &[Checked],
        steps_max: u64,
    ) -> Vec<Violation> {
        let checked = self.check_all(executors, list, steps_max);
        checked.unwrap_or_else(|place| {
            vec![Violation::new(
                &place,
                "the schemas of this call are too costly to check together",
                "fewer tasks in a call, or simpler schemas",
                &Value::Null,
            )]
        })
    }

    /// All violations; the place of the task at which `steps_max` were used up.
    fn check_all(
        &self,
        executors: &dyn ExecutorSnapshot,
        list: &[Checked],
        steps_max: u64,
    ) -> Result<Vec<Violation>, Vec<PathSegment>> {
        let mut violations = Vec::new();
        let mut left = steps_max;
        for (path, specification) in list {
            match self.check_one(executors, path, specification, &mut left) {
                Ok(found) => violations.extend(found),
                Err(OutOfSteps) => return Err(below(path, &["schemas"])),
            }
            if violations.len() >= limits::VIOLATIONS_MAX {
                violations.truncate(limits::VIOLATIONS_MAX);
                break;
            }
        }
        Ok(violations)
    }

    fn check_one(
        &self,
        executors: &dyn ExecutorSnapshot,
        path: &[PathSegment],
        specification: &Specification,
        left: &mut u64,
    ) -> Result<Vec<Violation>, OutOfSteps> {
        let inputs = specification.inputs.to_map();
        let method = specification.method.as_deref();
        // Inputs that are not complete before their attempt begins are checked then.
        let is_wired = is_wired(specification);
        let own = match method.filter(|_| !is_wired) {
            Some(method) => executors.check(method, &inputs),
            None => Vec::new(),
        };
        let inputs = Value::Object(inputs);
        let mut violations = Vec::new();
        if let Some(schema) = specification.input_schema() {
            let mut steps = 0;
            let outcome = self.schemas.get_counting(&schema, &mut steps);
            *left = left.checked_sub(steps).ok_or(OutOfSteps)?;
            match outcome {
                Err(faults) => {
                    let place = below(path, &["schemas", "input_schema"]);
                    violations.extend(faults.iter().cloned().map(|v| v.below(&place)));
                }
                Ok(_) if is_wired => {}
                Ok(compiled) => {
                    let faults = compiled.check_within(&inputs, left)?.err();
                    let place = below(path, &["inputs"]);
                    let faults = faults.into_iter().flatten();
                    violations.extend(faults.map(|v| v.below(&place)));
                }
            }
        }
        if let Some(compiled) = specification
            .method
            .as_deref()
            .filter(|_| !is_wired)
            .and_then(|m| executors.input_schema(m))
        {
            let place = below(path, &["inputs"]);
            let faults = compiled.check_within(&inputs, left)?.err();
            // What the executor says itself stands for what its schema says of the same member, or of
            // the whole.
            let said = |fault: &Violation| match fault.path.first() {
                Some(first) => own.iter().any(|v| v.path.first() == Some(first)),
                None => !own.is_empty(),
            };
            let faults = faults.into_iter().flatten().filter(|fault| !said(fault));
            let faults: Vec<_> = faults.collect();
            for fault in faults.into_iter().chain(own) {
                let fault = fault.below(&place);
                if !violations.contains(&fault) {
                    violations.push(fault);
                }
            }
        }
        Ok(violations)
    }
}

/// Members of `params` that nobody reads.
fn undeclared(
    executors: &dyn ExecutorSnapshot,
    path: &[PathSegment],
    specification: &Specification,
) -> Vec<Violation> {
    let Some(params) = &specification.params else {
        return Vec::new();
    };
    let method = specification.method.as_deref();
    let declared = method.and_then(|method| executors.params(method));
    let path = below(path, &["params"]);
    unknown_params(&params.to_map(), declared.as_deref(), &path)
}

fn has_schema(executors: &dyn ExecutorSnapshot, specification: &Specification) -> bool {
    specification.has_input_schema()
        || specification
            .method
            .as_deref()
            .is_some_and(|m| executors.input_schema(m).is_some())
}

fn below(path: &[PathSegment], fields: &[&str]) -> Vec<PathSegment> {
    let fields = fields.iter().map(|f| (*f).into());
    path.iter().cloned().chain(fields).collect()
}

#[cfg(test)]
mod tests {
    use super::{Checked, INLINE_STEPS_MAX, Validation};
    use crate::application::ports::{ExecutorSnapshot, Executors};
    use serde_json::{Value, json};
    use std::sync::Arc;
    use taskledger_domain::task::call;
    use taskledger_domain::task::inputs::CompiledSchema;
    use taskledger_domain::testing::hostile::ladder;
    use tokio::sync::watch;

    /// A server without executors.
    #[derive(Debug)]
    struct Nobody;

    impl Executors for Nobody {
        fn snapshot(&self) -> Arc<dyn ExecutorSnapshot> {
            Arc::new(Nobody)
        }
        fn changes(&self) -> watch::Receiver<u64> {
            watch::channel(1).1
        }
    }

    impl ExecutorSnapshot for Nobody {
        fn number(&self) -> u64 {
            1
        }
        fn knows(&self, _: &str) -> bool {
            false
        }
        fn is_idempotent(&self, _: &str) -> bool {
            false
        }
        fn canonical_name<'a>(&'a self, method: &'a str) -> &'a str {
            method
        }
        fn slot_limit(&self, _: &str) -> usize {
            0
        }
        fn input_schema(&self, _: &str) -> Option<Arc<CompiledSchema>> {
            None
        }
    }

    /// As many tasks with this schema.
    fn tasks(count: usize, schema: &Value) -> Vec<Checked> {
        let task = json!({"name": "a", "schemas": {"method": "m", "input_schema": schema}});
        let list = call::parse_tasks(&Value::from(vec![task; count])).unwrap();
        list.specifications()
            .map(|(path, specification)| (path.to_vec(), specification.clone()))
            .collect()
    }

    /// 2^12 visits and nothing to complain of.
    fn costly() -> Value {
        ladder("allOf", 12, json!({}))
    }

    #[tokio::test]
    async fn many_tasks_that_are_costly_together_are_refused_where_the_steps_end() {
        let validation = Arc::new(Validation::new(Arc::new(Nobody)));
        let few = validation.check(None, tasks(100, &costly())).await;
        assert!(few.is_empty(), "{few:?}");
        let many = validation.check_now(&Nobody, &tasks(100, &costly()), 1_000_000);
        assert_eq!(many.len(), 1, "{many:?}");
        assert_eq!(
            many[0].reason,
            "the schemas of this call are too costly to check together"
        );
        assert_eq!(many[0].field, "schemas");
        assert_eq!(many[0].path.len(), 3, "{:?}", many[0].path);
    }

    #[tokio::test]
    async fn a_short_schema_that_is_costly_leaves_the_threads_that_serve_sockets() {
        let validation = Arc::new(Validation::new(Arc::new(Nobody)));
        let endless = tasks(1, &ladder("allOf", 40, json!({})));
        let inline = validation.check_all(&Nobody, &endless, INLINE_STEPS_MAX);
        assert!(inline.is_err());
        // Elsewhere it is found to be the schema's fault.
        let refused = validation.check(None, endless).await;
        assert_eq!(
            refused[0].reason,
            "is too costly to check these inputs against"
        );
    }
}
