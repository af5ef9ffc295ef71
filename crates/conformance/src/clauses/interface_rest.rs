//! A2A, streams, callbacks, authentication, errors and requirements. spec: interface, from A2A
//! Protocol Integration on

mod a2a;
mod a2a_task;
mod authentication;
mod errors;
mod events;
mod push;
mod requirements;
mod streaming;

use super::prelude::*;

pub(super) use a2a::the_card_is_json;
pub(super) use errors::strangers_are_told;
pub(super) use streaming::sse_is_supported;

/// The clauses of these sections.
pub(super) fn clauses() -> Vec<Clause> {
    let parts = [
        a2a::clauses(),
        a2a_task::clauses(),
        streaming::clauses(),
        events::clauses(),
        push::clauses(),
        authentication::clauses(),
        errors::clauses(),
        requirements::clauses(),
    ];
    parts.into_iter().flatten().collect()
}
