//! What is checked and how faults are reported. spec: validation

mod errors;
mod inputs;
mod references;
mod states;
mod tasks;

use super::prelude::*;

pub(super) use errors::faults_are_told_together;
pub(super) use tasks::members_agree_with_status;

/// The clauses of this document.
pub(super) fn clauses() -> Vec<Clause> {
    let parts = [
        tasks::clauses(),
        references::clauses(),
        inputs::clauses(),
        states::clauses(),
        errors::clauses(),
    ];
    parts.into_iter().flatten().collect()
}
