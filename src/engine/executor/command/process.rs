//! One program from start to reaping. The program leads a process group of its own; whatever is
//! left of the group when the attempt ends is killed: at the program's end, on cancel, and when
//! this future is dropped.

use super::capture::Captured;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::io;
use std::os::fd::OwnedFd;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::io::unix::AsyncFd;
use tokio::process::{Child, ChildStdin, Command};
use tokio_util::sync::CancellationToken;

/// How long a program may clean up between SIGTERM and SIGKILL. Shorter than what the engine
/// gives an executor.
pub const TERMINATE_GRACE: Duration = Duration::from_secs(2);
/// How long output is awaited after the whole group is dead. Only a process that left the group
/// can still hold the pipe open.
pub const DRAIN_GRACE: Duration = Duration::from_millis(500);

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
    let group = Group::of(&child)?;
    let mut watch = Watch::on(&group);
    let (to, from, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut stdout, mut stderr) = (capture(), capture());

    let mut stopped = false;
    let status = {
        let traffic = async {
            tokio::join!(feed(to, stdin), stdout.fill(from), stderr.fill(errors));
        };
        tokio::pin!(traffic);
        let mut silent = false;
        let mut patience = std::pin::pin!(None::<tokio::time::Sleep>);
        loop {
            tokio::select! {
                biased;
                ended = watch.ended(&mut child) => {
                    ended?;
                    break;
                }
                () = cancel.cancelled(), if !stopped => {
                    stopped = true;
                    group.signal(Signal::TERM);
                    patience.set(Some(tokio::time::sleep(TERMINATE_GRACE)));
                }
                () = over(patience.as_mut().as_pin_mut()) => {
                    group.signal(Signal::KILL);
                    patience.set(None);
                }
                () = &mut traffic, if !silent => silent = true,
            }
        }
        // The leader is a zombie until `wait`, so the group's number cannot mean another group.
        group.signal(Signal::KILL);
        let status = child.wait().await?;
        group.reaped();
        if !silent {
            // What it wrote before its end counts, a late process outside of the group does not.
            drop(tokio::time::timeout(DRAIN_GRACE, &mut traffic).await);
        }
        status
    };
    Ok(Ended {
        status,
        stdout,
        stderr,
        stopped,
    })
}

/// Ends when `timer` does; never without one.
async fn over(timer: Option<std::pin::Pin<&mut tokio::time::Sleep>>) {
    match timer {
        Some(timer) => timer.await,
        None => std::future::pending().await,
    }
}

/// Writes all of `text` and closes the pipe. A program need not read what it is given.
async fn feed(pipe: Option<ChildStdin>, text: Option<String>) {
    if let (Some(mut pipe), Some(text)) = (pipe, text) {
        drop(pipe.write_all(text.as_bytes()).await);
        drop(pipe.shutdown().await);
    }
}

/// The process group that the program leads. Killed when this is dropped before the program was
/// reaped; the runtime reaps it then.
struct Group {
    leader: Pid,
    alive: std::cell::Cell<bool>,
}

impl Group {
    fn of(child: &Child) -> io::Result<Self> {
        let leader = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw)
            .ok_or_else(|| io::Error::other("the program has no process id"))?;
        Ok(Self {
            leader,
            alive: std::cell::Cell::new(true),
        })
    }

    fn signal(&self, signal: Signal) {
        // Nobody left to hear it is what we want.
        let _ = kill_process_group(self.leader, signal);
    }

    fn reaped(&self) {
        self.alive.set(false);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.alive.get() {
            self.signal(Signal::KILL);
        }
    }
}

/// Tells when the program has ended, without reaping it where the kernel can (Linux 5.3).
enum Watch {
    Pidfd(AsyncFd<OwnedFd>),
    Wait,
}

impl Watch {
    #[expect(
        deprecated,
        reason = "the safe constructor is deprecated for types whose descriptor may change or \
                  close under it; an `OwnedFd` that nobody else touches does neither"
    )]
    fn on(group: &Group) -> Self {
        pidfd_open(group.leader, PidfdFlags::empty())
            .ok()
            .and_then(|fd| AsyncFd::with_interest(fd, tokio::io::Interest::READABLE).ok())
            .map_or(Self::Wait, Self::Pidfd)
    }

    async fn ended(&mut self, child: &mut Child) -> io::Result<()> {
        match self {
            Self::Pidfd(fd) => fd.readable().await.map(drop),
            Self::Wait => child.wait().await.map(drop),
        }
    }
}
