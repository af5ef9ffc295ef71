//! What the documents leave open and this project decided, one file for each subject.

mod dependencies;
mod errors;
mod groups;
mod ids;
mod inputs;
mod methods;
mod retries;
mod runs;
mod states;
mod trees;

use super::prelude::Clause;

/// In the order of the subjects.
pub(super) fn clauses() -> Vec<Clause> {
    let parts = [
        ids::clauses(),
        trees::clauses(),
        states::clauses(),
        retries::clauses(),
        groups::clauses(),
        dependencies::clauses(),
        runs::clauses(),
        methods::clauses(),
        inputs::clauses(),
        errors::clauses(),
    ];
    parts.into_iter().flatten().collect()
}
