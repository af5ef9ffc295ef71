//! The standard methods. spec: interface / Standard Methods

use super::prelude::Clause;

/// Of these sections.
pub(super) fn clauses() -> Vec<Clause> {
    Vec::new()
}
