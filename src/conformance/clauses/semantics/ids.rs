//! What this project decided. Section: Ids

use crate::conformance::clauses::prelude::Clause;

/// Of this section.
pub(super) fn clauses() -> Vec<Clause> {
    Vec::new()
}
