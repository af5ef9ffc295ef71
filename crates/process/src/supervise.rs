//! A process group from the start of its leader to its reaping. Whatever is left of the group is killed: at the
//! leader's end, on order, and when the future is dropped. `taskledger worker` runs its programs with it too.

use futures_util::{Stream, StreamExt as _};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::process::Child;

/// How long output is awaited after the whole group is dead. Only a process that left the group
/// can still hold the pipe open.
pub const DRAIN_GRACE: Duration = Duration::from_millis(500);

/// How the process group is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// SIGTERM, and SIGKILL when it is still there after this time.
    Terminate(Duration),
    /// SIGKILL.
    Kill,
}

/// How a program ended.
#[derive(Debug, Clone, Copy)]
pub struct Finished {
    /// Exit code or signal.
    pub status: ExitStatus,
    /// It was told to end before it did.
    pub stopped: bool,
}

/// Waits for the end of `child`, which leads a process group of its own, while `traffic` serves its pipes. Each
/// of `orders` replaces the one before.
///
/// # Errors
/// The program cannot be waited for.
pub async fn supervise(
    mut child: Child,
    traffic: impl Future<Output = ()>,
    orders: impl Stream<Item = Order>,
) -> io::Result<Finished> {
    let group = Group::of(&child)?;
    let mut watch = Watch::on(&group);
    tokio::pin!(traffic);
    let mut orders = std::pin::pin!(orders.fuse());
    let mut patience = std::pin::pin!(None::<tokio::time::Sleep>);
    let (mut silent, mut stopped) = (false, false);
    loop {
        tokio::select! {
            biased;
            ended = watch.ended(&mut child) => {
                ended?;
                break;
            }
            Some(order) = orders.next() => {
                stopped = true;
                match order {
                    Order::Terminate(grace) => {
                        group.signal(Signal::TERM);
                        patience.set(Some(tokio::time::sleep(grace)));
                    }
                    Order::Kill => {
                        group.signal(Signal::KILL);
                        patience.set(None);
                    }
                }
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
    Ok(Finished { status, stopped })
}

/// Ends when `timer` does; never without one.
async fn over(timer: Option<std::pin::Pin<&mut tokio::time::Sleep>>) {
    match timer {
        Some(timer) => timer.await,
        None => std::future::pending().await,
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
