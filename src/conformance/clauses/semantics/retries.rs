//! What this project decided. Section: Retry

use crate::conformance::clauses::prelude::Clause;

/// Of this section.
pub(super) fn clauses() -> Vec<Clause> {
    Vec::new()
}
