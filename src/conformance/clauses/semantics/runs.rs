//! What this project decided. Section: Runs

use crate::conformance::clauses::prelude::Clause;

/// Of this section.
pub(super) fn clauses() -> Vec<Clause> {
    Vec::new()
}
