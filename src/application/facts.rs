//! What single events hold, for whoever reads them by their version.

use taskledger_domain::flow::{Event, Specification};

/// The specification that the event gave its task.
#[must_use]
pub fn specification(event: &Event) -> Option<&Specification> {
    if let Event::TaskCreated(e) = event {
        Some(&e.specification)
    } else if let Event::TaskRespecified(e) = event {
        Some(&e.specification)
    } else {
        None
    }
}

/// The name that the event gave its task.
#[must_use]
pub fn name(event: &Event) -> Option<&str> {
    if let Event::TaskCreated(e) = event {
        Some(&e.name)
    } else if let Event::TaskRenamed(e) = event {
        Some(&e.name)
    } else {
        None
    }
}
