//! Makes a write beyond the limit on file sizes (`ulimit -f`) an error instead of a signal that kills the process.

use super::CliError;
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

/// From now on a write beyond the limit fails like one to a full disk, which the log can handle.
/// Without this the system ends the process with SIGXFSZ. Listening once is enough: the handler
/// stays when the listener is gone.
///
/// # Errors
/// [`CliError::Failed`]: the system refuses.
pub(super) fn make_it_an_error() -> Result<(), CliError> {
    signal(SignalKind::from_raw(Signal::XFSZ.as_raw()))
        .map(drop)
        .map_err(|error| CliError::Failed(format!("cannot listen for SIGXFSZ: {error}")))
}
