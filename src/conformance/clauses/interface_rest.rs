//! A2A, streaming, push notifications, authentication, errors, requirements. spec: interface / the rest

use super::prelude::Clause;

/// Of these sections.
pub(super) fn clauses() -> Vec<Clause> {
    Vec::new()
}
