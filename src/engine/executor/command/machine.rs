//! Programs of servers without a data folder: each server has a folder of its own on its machine.
//!
//! Owns: below one folder of the machine, for each server `NAME.lock`, which the server holds locked while it runs, and
//! `NAME/` with the records of its programs (`orphans`). The operating system releases the lock however the server
//! ends, so whoever gets the lock knows that the programs in `NAME/` have been left, and stops them. Any server of this
//! user may do so, for whichever database the other one worked. Only programs of this machine are found.

use super::orphans::{boot_ticks, stop_orphans};
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use taskledger_private as private;

/// Extension of the file that a running server holds locked.
const LOCK: &str = "lock";
/// Name of the file that whoever looks for left programs holds locked meanwhile.
const TURN_FILE: &str = "turn";
/// Files in the folder that one look reads: more than servers run and have been killed on a machine.
const FILES_MAX: usize = 10_000;
/// Servers that one process runs at once, as tests do.
const SERVERS_MAX: u32 = 1_000;
/// How long the look of another server is waited for: it may be stopping programs that ignore SIGTERM.
const TURN_WAIT: Duration = Duration::from_secs(30);
/// How often it is tried meanwhile.
const TURN_EVERY: Duration = Duration::from_millis(20);

/// The folder in which one server notes its programs; removed when it is dropped.
#[derive(Debug)]
pub struct MachineFolder {
    /// The folder with those of all servers of this machine.
    all: PathBuf,
    own: PathBuf,
    lock: PathBuf,
    /// Locked as long as it is open.
    _held: File,
}

impl MachineFolder {
    /// Makes a folder for a server below `all`, which is made with mode 0700 if it is missing.
    ///
    /// # Errors
    /// The system's reason why nothing can be written there.
    pub fn make(all: &Path) -> io::Result<Self> {
        private::make_folder(all)?;
        let pid = std::process::id();
        let ticks = boot_ticks(pid)?;
        for number in 0..SERVERS_MAX {
            let own = all.join(format!("{pid}-{ticks}-{number}"));
            // Nobody else looks at it before it is locked and has its name.
            let unnamed = own.with_extension("new");
            let held = match private::create_new(&unnamed) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            };
            let lock = own.with_extension(LOCK);
            if lock.exists() {
                std::fs::remove_file(&unnamed)?;
                continue;
            }
            held.try_lock()?;
            std::fs::rename(&unnamed, &lock)?;
            private::make_folder(&own)?;
            return Ok(Self {
                all: all.to_owned(),
                own,
                lock,
                _held: held,
            });
        }
        Err(io::Error::other(format!(
            "process {pid} has {SERVERS_MAX} folders there already"
        )))
    }

    /// Where this server notes its programs.
    pub(super) fn own(&self) -> &Path {
        &self.own
    }

    /// Stops what servers that have ended have left, before an attempt that may follow one of theirs.
    pub(super) async fn stop_left(&self) {
        stop_left(&self.all).await;
    }
}

impl Drop for MachineFolder {
    fn drop(&mut self) {
        // If programs are noted still, the folder stays, and the next server looks for them.
        if std::fs::remove_dir(&self.own).is_ok() {
            let _ = std::fs::remove_file(&self.lock);
        }
    }
}

/// Stops the programs that servers of this machine have left running, and waits for their ends. Gives how many there
/// were. What keeps it from looking is logged. Cost: O(servers), and a look at all processes for each program left.
pub async fn stop_left(all: &Path) -> usize {
    stop(all).await.unwrap_or_else(|error| {
        tracing::warn!(folder = %all.display(), %error, "programs that earlier servers have left cannot be looked for");
        0
    })
}

async fn stop(all: &Path) -> io::Result<usize> {
    let files = match std::fs::read_dir(all) {
        Ok(files) => files,
        // No server of this machine has ever noted a program.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let files = files.take(FILES_MAX).map(|file| Ok(file?.path()));
    let files: Vec<PathBuf> = files.collect::<io::Result<_>>()?;
    let locks = files.iter().filter(|path| {
        let extension = path.extension();
        extension.is_some_and(|extension| extension == LOCK)
    });
    // What another server is stopping now has ended when its turn has.
    let _turn = turn(all).await?;
    let mut stopped = 0;
    for lock in locks {
        let held = match File::open(lock) {
            Ok(file) => file,
            // Its server ended calmly meanwhile, or another one has looked after it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        match held.try_lock() {
            Ok(()) => {}
            // Its server runs.
            Err(TryLockError::WouldBlock) => continue,
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let own = lock.with_extension("");
        stopped += stop_orphans(&own).await?;
        for removed in [std::fs::remove_dir(&own), std::fs::remove_file(lock)] {
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
    }
    Ok(stopped)
}

/// One look at a time: held until the file is dropped.
async fn turn(all: &Path) -> io::Result<File> {
    let path = all.join(TURN_FILE);
    let file = private::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)?;
    let taken = async {
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(TURN_EVERY).await,
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    };
    let taken = tokio::time::timeout(TURN_WAIT, taken).await;
    taken.map_err(|_| io::Error::other("another server has been looking for too long"))??;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::executor::command::orphans::Note;
    use crate::engine::executor::command::orphans::tests::program;
    use std::os::unix::fs::PermissionsExt as _;
    use taskledger_domain::testing::id;
    use tokio::process::Child;

    fn noted(folder: &MachineFolder, child: &Child) {
        let note = Note::begin(folder.own(), id("machine"), 1).expect("it can be noted");
        note.started(child.id().expect("it runs"));
        std::mem::forget(note);
    }

    #[tokio::test]
    async fn only_programs_of_servers_that_have_ended_are_stopped() {
        let place = tempfile::tempdir().expect("a folder can be made");
        let all = place.path().join("programs");
        assert_eq!(stop_left(&all).await, 0, "there is nothing yet");
        let (killed, runs) = (
            MachineFolder::make(&all).unwrap(),
            MachineFolder::make(&all).unwrap(),
        );
        let (mut left, mut kept) = (program(), program());
        noted(&killed, &left);
        noted(&runs, &kept);
        assert_eq!(stop_left(&all).await, 0, "both servers run");
        let mode = std::fs::metadata(&all).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);

        // As the operating system does when a process is killed.
        killed._held.unlock().unwrap();
        runs.stop_left().await;

        assert!(!left.wait().await.unwrap().success());
        assert!(kept.try_wait().unwrap().is_none());
        assert!(!killed.own.exists() && !killed.lock.exists() && runs.own.exists());
    }

    #[test]
    fn a_server_that_ends_leaves_nothing_behind() {
        let place = tempfile::tempdir().expect("a folder can be made");
        drop(MachineFolder::make(place.path()).unwrap());
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
