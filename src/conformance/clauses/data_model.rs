//! Tasks, dependencies, trees, results, executors. spec: data-model

use super::prelude::Clause;

/// Of these sections.
pub(super) fn clauses() -> Vec<Clause> {
    Vec::new()
}
