//! What this project decided. Section: Dependencies and failure

use crate::conformance::clauses::prelude::Clause;

/// Of this section.
pub(super) fn clauses() -> Vec<Clause> {
    Vec::new()
}
