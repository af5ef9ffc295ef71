//! The registry as the application asks it.

use super::executor::{Registered, Registry};
use crate::application::ports::Executors;
use serde_json::{Map, Value};
use std::sync::Arc;
use taskledger_domain::Violation;
use taskledger_domain::task::inputs::CompiledSchema;

/// Slots of an executor that does not exist: none can be taken, because nothing starts.
const UNKNOWN_SLOTS: usize = 0;

/// The server's executors behind the application's port; it does not change while the server runs.
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
    fn params(&self, method: &str) -> Option<Arc<[String]>> {
        self.0.get(method)?.params().cloned()
    }
    fn input_schema(&self, method: &str) -> Option<Arc<CompiledSchema>> {
        self.0.get(method)?.input_schema().cloned()
    }
}
