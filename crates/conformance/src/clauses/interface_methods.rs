//! The methods, one file for each few of them. spec: interface / Standard Methods

mod copy;
mod create;
mod delete;
mod examples;
mod execute;
mod list;
mod read;
mod update;

use super::prelude::*;

pub(super) use examples::{METHODS, all_methods_exist};

/// The clauses of these sections.
pub(super) fn clauses() -> Vec<Clause> {
    let parts = [
        examples::clauses(),
        create::clauses(),
        read::get(),
        update::clauses(),
        delete::clauses(),
        list::clauses(),
        execute::clauses(),
        execute::cancel(),
        read::tree(),
        read::children(),
        copy::clauses(),
    ];
    parts.into_iter().flatten().collect()
}
