//! Finds processes that have left the process group of the program that started them, as `setsid` does, by an
//! environment variable that processes inherit. They are found by a variable of the environment, which processes
//! inherit.
//!
//! What a program gives another environment is not found, nor what runs as another user.

use super::TERMINATE_GRACE;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::time::Duration;
use taskledger_domain::TaskId;

/// The variable that tells attempts apart.
pub(super) const VARIABLE: &str = "TASKLEDGER_ATTEMPT_ID";
/// Processes that are looked at: more than a machine runs of one user.
const PROCESSES_MAX: usize = 100_000;
/// How often it is looked whether they have ended. A look reads the environment of each process of this user.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The value of the variable for an attempt.
pub(super) fn id(task: TaskId, attempt: u32) -> String {
    format!("{task}/{attempt}")
}

/// Ends what an attempt has left running: SIGTERM, and SIGKILL when it is still there after the usual time. Gives how
/// many processes there were. Cost: O(processes of this user).
pub(super) async fn end(task: TaskId, attempt: u32) -> usize {
    let entry = format!("{VARIABLE}={}", id(task, attempt));
    let found = signalled(&entry, Signal::TERM).await;
    if found == 0 {
        return 0;
    }
    tracing::warn!(task.id = %task, attempt, processes = found, "stopping what a program has started in a session of its own");
    let gone = async {
        while !found_with(&entry).await.is_empty() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    if tokio::time::timeout(TERMINATE_GRACE, gone).await.is_err() {
        signalled(&entry, Signal::KILL).await;
    }
    found
}

/// Sends a signal to all of them; gives how many there were.
async fn signalled(entry: &str, signal: Signal) -> usize {
    let mut count = 0;
    for pid in found_with(entry).await {
        // The descriptor means one process, whoever gets its number next, so what it is can be looked at again.
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
            continue;
        };
        if has(pid, entry) && pidfd_send_signal(&process, signal).is_ok() {
            count += 1;
        }
    }
    count
}

async fn found_with(entry: &str) -> Vec<Pid> {
    let entry = entry.to_owned();
    let looked = tokio::task::spawn_blocking(move || look(&entry)).await;
    let looked = looked.unwrap_or_else(|error| Err(io::Error::other(error)));
    looked.unwrap_or_else(|error| {
        tracing::warn!(%error, "processes cannot be looked through; what programs have started in sessions of their own runs on");
        Vec::new()
    })
}

fn look(entry: &str) -> io::Result<Vec<Pid>> {
    let own = rustix::process::getpid();
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc")?.take(PROCESSES_MAX) {
        let name = process?.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        let pid = pid.and_then(Pid::from_raw).filter(|pid| *pid != own);
        found.extend(pid.filter(|pid| has(*pid, entry)));
    }
    Ok(found)
}

/// Whether the environment of a process has this entry. Those of other users cannot be read, ended ones have none.
fn has(pid: Pid, entry: &str) -> bool {
    let environment = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()));
    environment.is_ok_and(|all| {
        all.split(|byte| *byte == 0)
            .any(|it| it == entry.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskledger_domain::testing::id as task;
    use tokio::process::Command;

    #[tokio::test]
    async fn what_has_a_session_of_its_own_is_found_and_ended_and_others_are_not() {
        // Processes of other tests, and of other runs of this one, are on the same machine.
        let (mine, other) = (std::process::id(), u32::MAX - std::process::id());
        let task = task("marked");
        let started = |attempt: u32| {
            let mut command = Command::new("setsid");
            command.args(["--wait", "sleep", "600"]).kill_on_drop(true);
            command.env(VARIABLE, id(task, attempt));
            command.spawn().expect("`setsid` is there")
        };
        let (mut first, mut second) = (started(mine), started(other));
        let entry = format!("{VARIABLE}={}", id(task, mine));
        // `setsid` becomes `sleep`. While it does, it has no environment that could be read.
        let sleeps = |pid: &Pid| {
            let name = std::fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero()));
            name.is_ok_and(|name| name == "sleep\n") && has(*pid, &entry)
        };
        while !found_with(&entry).await.iter().any(sleeps) {
            tokio::task::yield_now().await;
        }
        assert!(end(task, mine).await > 0);
        first.wait().await.expect("it was started");
        assert!(found_with(&entry).await.is_empty());
        assert!(second.try_wait().expect("it was started").is_none());
        assert!(end(task, other).await > 0);
        second.wait().await.expect("it was started");
        assert_eq!(end(task, 0).await, 0);
    }
}
