//! Runs one program from start to end: its pipes, its exit, and how it is stopped.

use super::orphans::Note;
use futures_util::stream;
use std::io;
use std::process::{ExitStatus, Stdio};
use taskledger_process::{Captured, Finished, Order, TERMINATE_GRACE, feed, supervise};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

/// How a program ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) stdout: Captured,
    pub(super) stderr: Captured,
    /// It was told to stop.
    pub(super) stopped: bool,
}

/// Runs `command` to its end, or stops it when `cancel` says so.
///
/// # Errors
/// The program cannot be started or waited for.
pub(super) async fn run(
    mut command: Command,
    stdin: Option<String>,
    capture: impl Fn() -> Captured,
    cancel: &CancellationToken,
    note: Option<Note>,
) -> io::Result<Ended> {
    command
        .stdin(if stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = command.spawn()?;
    if let (Some(note), Some(pid)) = (&note, child.id()) {
        note.started(pid);
    }
    let (to, from, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut stdout, mut stderr) = (capture(), capture());
    let traffic = async {
        tokio::join!(feed(to, stdin), stdout.fill(from), stderr.fill(errors));
    };
    let orders = stream::once(async {
        cancel.cancelled().await;
        Order::Terminate(TERMINATE_GRACE)
    });
    let Finished { status, stopped } = supervise(child, traffic, orders).await?;
    // It is reaped.
    drop(note);
    Ok(Ended {
        status,
        stdout,
        stderr,
        stopped,
    })
}
