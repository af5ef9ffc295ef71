//! Programs that run for a task: a process group from start to end, and its output.
//!
//! Owns: waiting for a program and ending all it has started ([`supervise`]), its output within bounds and without
//! secrets ([`Captured`]). May not: know what runs, or for whom. The server runs the programs of `command_executor`
//! with it, `taskledger worker` and `taskledger broker subscribe` theirs.

mod capture;
mod supervise;

pub use capture::Captured;
pub use supervise::{DRAIN_GRACE, Finished, Order, supervise};

use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::ChildStdin;

/// How long a program may clean up between SIGTERM and SIGKILL. Shorter than what the engine
/// gives an executor.
pub const TERMINATE_GRACE: Duration = Duration::from_secs(2);

/// Writes all of `text` and closes the pipe. A program need not read what it is given.
pub async fn feed(pipe: Option<ChildStdin>, text: Option<String>) {
    if let (Some(mut pipe), Some(text)) = (pipe, text) {
        drop(pipe.write_all(text.as_bytes()).await);
        drop(pipe.shutdown().await);
    }
}
