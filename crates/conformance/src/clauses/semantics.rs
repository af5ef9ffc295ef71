//! What the documents leave open and this project decided, one file for each subject.

mod cleaning;
mod dependencies;
mod errors;
mod groups;
mod guarantees;
mod ids;
mod inputs;
mod labels;
mod limits;
mod looks;
mod methods_change;
mod methods_copy;
mod methods_execute;
mod methods_ours;
mod methods_read;
mod order;
mod retries;
mod runs;
mod states;
mod streams;
mod trees;

use super::prelude::Clause;

/// In the order of the subjects.
pub(super) fn clauses() -> Vec<Clause> {
    let parts = [
        ids::clauses(),
        trees::clauses(),
        limits::clauses(),
        states::clauses(),
        retries::clauses(),
        groups::clauses(),
        dependencies::clauses(),
        cleaning::clauses(),
        runs::clauses(),
        methods_execute::clauses(),
        methods_change::clauses(),
        methods_copy::clauses(),
        methods_read::clauses(),
        methods_ours::clauses(),
        labels::clauses(),
        inputs::clauses(),
        errors::clauses(),
        guarantees::clauses(),
    ];
    parts.into_iter().flatten().collect()
}
