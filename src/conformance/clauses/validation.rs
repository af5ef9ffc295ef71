//! What is checked and how faults are reported. spec: validation

use super::prelude::Clause;

/// Of these sections.
pub(super) fn clauses() -> Vec<Clause> {
    Vec::new()
}
