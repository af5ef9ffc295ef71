//! How a worker is stopped, and what it prints meanwhile.

use tokio_util::sync::CancellationToken;

/// What ends a worker, in two steps.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop {
    /// Nothing more is claimed.
    pub(super) claiming: CancellationToken,
    /// What runs is terminated and released.
    pub(super) running: CancellationToken,
}

/// Tells people on standard error.
pub(super) fn say(text: &str) {
    taskledger_terminal::complain("taskledger worker", &text);
}
