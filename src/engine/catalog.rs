//! The registry as the application asks it.

use super::executor::{Registered, Registry};
use crate::application::api::ExecutorView;
use crate::application::ports::{ExecutorList, Executors};
use serde_json::{Map, Value};
use std::sync::Arc;
use taskledger_domain::task::inputs::CompiledSchema;
use taskledger_domain::{Payload, Violation};

/// Slots of an executor that does not exist: none can be taken, because nothing starts.
const UNKNOWN_SLOTS: usize = 0;

/// See the module.
#[derive(Debug)]
pub struct Catalog(Registry);

impl Catalog {
    /// A catalog of these executors.
    #[must_use]
    pub const fn new(registry: Registry) -> Self {
        Self(registry)
    }

    /// The executor with this name or alias.
    #[must_use]
    pub fn get(&self, method: &str) -> Option<&Registered> {
        self.0.get(method)
    }

    /// All executors, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Registered> {
        self.0.iter()
    }
}

impl Executors for Catalog {
    fn knows(&self, method: &str) -> bool {
        self.0.get(method).is_some()
    }
    fn is_idempotent(&self, method: &str) -> bool {
        self.0
            .get(method)
            .is_some_and(|r| r.description().idempotent)
    }
    fn canonical_name<'a>(&'a self, method: &'a str) -> &'a str {
        self.0.get(method).map_or(method, Registered::name)
    }
    fn slot_limit(&self, method: &str) -> usize {
        self.0.effective_limit(method).unwrap_or(UNKNOWN_SLOTS)
    }
    fn check(&self, method: &str, inputs: &Map<String, Value>) -> Vec<Violation> {
        let executor = self.0.get(method).map(Registered::executor);
        executor.map_or_else(Vec::new, |executor| executor.check(inputs))
    }
    fn input_schema(&self, method: &str) -> Option<Arc<CompiledSchema>> {
        self.0.get(method)?.input_schema().cloned()
    }
}

impl ExecutorList for Catalog {
    fn list(&self) -> Vec<ExecutorView> {
        let view = |registered: &Registered| {
            let description = registered.description();
            let schema = description.input_schema.as_ref().and_then(Value::as_object);
            ExecutorView {
                name: description.name.clone(),
                aliases: description.aliases.clone(),
                summary: description.summary.clone(),
                idempotent: description.idempotent,
                pure: description.pure,
                input_schema: schema.map(Payload::from_map),
                limit: registered.limit(),
            }
        };
        self.iter().map(view).collect()
    }
}
