//! Programs that outlive the server that started them.
//!
//! Owns: a file for each attempt whose program runs. It is there before the program is, so that no kill between leaves
//! a program unnoted; its name tells the attempt, by which everything that was started for it is found (`marked.rs`).
//! Then it tells the program from another process with the same number: when it started, and since which start of the
//! machine. It is not synced: a crash of the machine ends programs too.

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use serde::{Deserialize, Serialize};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use taskledger_domain::TaskId;

use super::{TERMINATE_GRACE, marked};

/// The folder with the files, in the data folder of a server or in that of its machine (`machine`).
pub const FOLDER: &str = "programs";
/// Files that a start looks at: more than a server runs programs at once.
const FILES_MAX: usize = 10_000;
/// How often it is looked whether a program has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long the end of a program is awaited after SIGKILL. What hangs in the kernel cannot be waited for.
const KILL_GRACE: Duration = Duration::from_secs(2);

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    pid: i32,
    /// Clock ticks between the start of the machine and that of the program.
    started: u64,
    /// The start of the machine.
    boot: String,
    task: TaskId,
    attempt: u32,
}

/// The file of an attempt whose program runs; dropping it removes the file.
#[derive(Debug)]
pub(super) struct Note {
    path: PathBuf,
    task: TaskId,
    attempt: u32,
}

impl Note {
    /// Notes an attempt, before its program is started. `None`: nothing could be noted, which is told in the log.
    pub(super) fn begin(folder: &Path, task: TaskId, attempt: u32) -> Option<Self> {
        let path = folder.join(format!("{task}.{attempt}"));
        let noted = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .and_then(|()| std::fs::write(&path, b""));
        warned(task, attempt, noted)?;
        Some(Self {
            path,
            task,
            attempt,
        })
    }

    /// Notes the program, which was just started.
    pub(super) fn started(&self, pid: u32) {
        let noted = || {
            let record = Record {
                pid: i32::try_from(pid).map_err(io::Error::other)?,
                started: boot_ticks(pid)?,
                boot: boot()?,
                task: self.task,
                attempt: self.attempt,
            };
            std::fs::write(&self.path, serde_json::to_vec(&record)?)
        };
        warned(self.task, self.attempt, noted());
    }
}

/// Warns of what could not be noted.
fn warned(task: TaskId, attempt: u32, noted: io::Result<()>) -> Option<()> {
    noted
        .inspect_err(|error| {
            tracing::warn!(task.id = %task, attempt, %error, "a program cannot be noted; if the server is killed, it may run on");
        })
        .ok()
}

/// The attempt that the name of a file tells.
fn attempt_of(path: &Path) -> Option<(TaskId, u32)> {
    let (task, attempt) = path.file_name()?.to_str()?.split_once('.')?;
    Some((TaskId(task.parse().ok()?), attempt.parse().ok()?))
}

impl Drop for Note {
    fn drop(&mut self) {
        // What stays is found not to run any more.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Stops the programs that an earlier server has left running, and waits for their ends. To be called by whoever
/// has the data folder for itself, before any attempt begins. Gives how many there were.
///
/// # Errors
/// The folder cannot be read.
pub async fn stop_orphans(folder: &Path) -> io::Result<usize> {
    let files = match std::fs::read_dir(folder) {
        Ok(files) => files,
        // Nothing was ever noted.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let boot = boot()?;
    let mut stopped = 0;
    for file in files.take(FILES_MAX) {
        let path = file?.path();
        let record = std::fs::read(&path).ok();
        let record = record.and_then(|text| serde_json::from_slice::<Record>(&text).ok());
        if let Some(record) = record.filter(|record| record.boot == boot) {
            stopped += usize::from(stop(&record).await);
        }
        // Also of a program that had just begun and is not in its file yet.
        if let Some((task, attempt)) = attempt_of(&path) {
            stopped += marked::end(task, attempt).await;
        }
        std::fs::remove_file(&path)?;
    }
    Ok(stopped)
}

/// Ends the process group of a program, if it is still there.
async fn stop(record: &Record) -> bool {
    let Some(group) = Pid::from_raw(record.pid) else {
        return false;
    };
    // The number of a group is not given to a new process while the group has members, also without its leader.
    let is_it = started(record.pid).is_ok_and(|at| at.is_none_or(|at| at == record.started));
    if !is_it || kill_process_group(group, Signal::TERM).is_err() {
        return false;
    }
    let (task, attempt) = (record.task, record.attempt);
    tracing::warn!(pid = record.pid, task.id = %task, attempt, "stopping a program that an earlier server left running");
    ended(group, TERMINATE_GRACE).await;
    // Also for what a program that has ended has started itself.
    let _ = kill_process_group(group, Signal::KILL);
    if !ended(group, KILL_GRACE).await {
        tracing::error!(pid = record.pid, task.id = %task, attempt, "the program does not end");
    }
    true
}

/// Whether nothing of the group is left within this time.
async fn ended(group: Pid, within: Duration) -> bool {
    let gone = async {
        while test_kill_process_group(group).is_ok() && !is_zombie(group) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::time::timeout(within, gone).await.is_ok()
}

/// Whether the leader has ended and only waits to be reaped by whoever has inherited it.
fn is_zombie(group: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", group.as_raw_nonzero()));
    stat.is_ok_and(|stat| members(&stat).first() == Some(&"Z"))
}

/// When a process started; `None`: there is none.
fn started(pid: i32) -> io::Result<Option<u64>> {
    /// Behind the name: state is 0, and the time stands at place 22 of the whole line.
    const PLACE: usize = 22 - 3;
    let stat = match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let ticks = members(&stat).get(PLACE).and_then(|text| text.parse().ok());
    let unread = || io::Error::other(format!("/proc/{pid}/stat has another form"));
    ticks.map(Some).ok_or_else(unread)
}

/// The members of a line of `/proc/PID/stat` behind the name, which may hold blanks and brackets.
fn members(stat: &str) -> Vec<&str> {
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    behind.split_whitespace().collect()
}

/// When a process that runs was started, in clock ticks since the start of the machine.
pub(super) fn boot_ticks(pid: u32) -> io::Result<u64> {
    let pid = i32::try_from(pid).map_err(io::Error::other)?;
    started(pid)?.ok_or_else(|| io::Error::other("the process has ended"))
}

fn boot() -> io::Result<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(id.trim().to_owned())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use taskledger_domain::testing::id;
    use tokio::process::{Child, Command};

    /// A program that runs until it is ended.
    pub(in super::super) fn program() -> Child {
        let mut command = Command::new("sleep");
        command.arg("600").process_group(0).kill_on_drop(true);
        command.spawn().expect("`sleep` is there")
    }

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder can be made")
    }

    /// As if the server had been killed: the file stays.
    fn left(folder: &Path, child: &Child) -> PathBuf {
        let pid = child.id().expect("it runs");
        let note = Note::begin(folder, id("a"), 1).expect("it can be noted");
        note.started(pid);
        let path = note.path.clone();
        std::mem::forget(note);
        path
    }

    #[tokio::test]
    async fn a_program_that_was_left_is_ended_before_anything_begins() {
        let folder = folder();
        let mut child = program();
        let path = left(folder.path(), &child);
        assert_eq!(stop_orphans(folder.path()).await.unwrap(), 1);
        assert!(!path.exists());
        assert!(!child.wait().await.unwrap().success());
        assert_eq!(stop_orphans(folder.path()).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn another_process_with_the_same_number_is_left_alone() {
        let folder = folder();
        let mut child = program();
        for other in ["started", "boot"] {
            let path = left(folder.path(), &child);
            let mut record: Record =
                serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            match other {
                "started" => record.started += 1,
                _ => record.boot.push('x'),
            }
            std::fs::write(&path, serde_json::to_vec(&record).unwrap()).unwrap();
            assert_eq!(stop_orphans(folder.path()).await.unwrap(), 0, "{other}");
            assert!(child.try_wait().unwrap().is_none(), "{other}");
            assert!(!path.exists());
        }
    }

    #[tokio::test]
    async fn a_program_that_has_ended_leaves_no_file() {
        let folder = folder();
        let child = program();
        let pid = child.id().unwrap();
        let note = Note::begin(folder.path(), id("a"), 1).unwrap();
        note.started(pid);
        drop(note);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_program_that_had_just_begun_is_ended_too() {
        let folder = folder();
        // Others of this machine, also of another run of this test, have other numbers.
        let attempt = std::process::id();
        std::mem::forget(Note::begin(folder.path(), id("begun"), attempt).unwrap());
        let mut command = Command::new("sleep");
        command.env(marked::VARIABLE, marked::id(id("begun"), attempt));
        let mut child = command.arg("600").kill_on_drop(true).spawn().unwrap();
        assert_eq!(stop_orphans(folder.path()).await.unwrap(), 1);
        assert!(!child.wait().await.unwrap().success());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_file_that_is_cut_off_is_removed() {
        let folder = folder();
        std::fs::write(folder.path().join("7"), "{\"pid\":").unwrap();
        assert_eq!(stop_orphans(folder.path()).await.unwrap(), 0);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
