//! One server per data folder.
//!
//! Owns: the file `lock` in the data folder. The operating system holds the lock and lets go of it
//! when the process ends, however it ends, so a stale file never locks anybody out.
//! Taken by `serve` and by commands that write; readers (`events export`) do without.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use taskledger_private as private;

/// Name of the lock file in the data folder.
pub const LOCK_FILE: &str = "lock";
/// Bytes of a lock file that are looked at: a process number and a line end.
const PID_BYTES_MAX: u64 = 32;
/// How often the lock file may vanish between being opened and being locked: each time another
/// command has failed in this moment.
const REMOVALS_MAX: usize = 10;

/// Why a data folder could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process uses the folder; stop it, or choose another folder.
    #[error(
        "the data folder `{folder}` is in use by {holder}; stop it or choose another `--data-dir`"
    )]
    Held {
        /// Path of the data folder.
        folder: PathBuf,
        /// `process 1234`, or `another process` when its number is not known.
        holder: String,
    },
    /// The folder cannot be made or written to.
    #[error("the data folder `{folder}` cannot be used: {source}")]
    Unusable {
        /// Path of the data folder.
        folder: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
}

/// The lock on a data folder, held until it is dropped.
#[derive(Debug)]
pub struct DataDirLock {
    file: File,
    folder: PathBuf,
    /// Whether there was no lock file before.
    made_file: bool,
    /// The folders that were missing, the innermost first.
    made_folders: Vec<PathBuf>,
}

impl DataDirLock {
    /// Makes the folder when it is missing, and locks it. Does not wait.
    ///
    /// # Errors
    /// [`LockError::Held`] names the holder; [`LockError::Unusable`]: no such place, or read-only.
    pub fn acquire(folder: &Path) -> Result<Self, LockError> {
        let unusable = |source| LockError::Unusable {
            folder: folder.to_owned(),
            source,
        };
        let path = folder.join(LOCK_FILE);
        for _ in 0..REMOVALS_MAX {
            let made_folders = private::make_folder(folder).map_err(unusable)?;
            let (mut file, made_file) = open(&path).map_err(unusable)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(LockError::Held {
                        folder: folder.to_owned(),
                        holder: holder(&mut file),
                    });
                }
                Err(TryLockError::Error(source)) => return Err(unusable(source)),
            }
            if is_at(&file, &path).map_err(unusable)? {
                write_pid(&mut file).map_err(unusable)?;
                return Ok(Self {
                    file,
                    folder: folder.to_owned(),
                    made_file,
                    made_folders,
                });
            }
        }
        Err(LockError::Held {
            folder: folder.to_owned(),
            holder: "other processes".to_owned(),
        })
    }

    /// The folder that is locked.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Removes the lock file and the folders that [`Self::acquire`] made, as far as nothing else is in
    /// them: for a command that failed and leaves the place as it found it.
    pub fn undo(self) {
        // The file is removed while it is locked, so nobody else relies on it. What cannot be removed
        // does no harm.
        if self.made_file && std::fs::remove_file(self.folder.join(LOCK_FILE)).is_ok() {
            let mut empty = self.made_folders.iter();
            while empty
                .next()
                .is_some_and(|folder| std::fs::remove_dir(folder).is_ok())
            {}
        }
    }
}

/// The lock file, and whether it was made now.
fn open(path: &Path) -> std::io::Result<(File, bool)> {
    let options = || {
        let mut options = private::options();
        options.read(true).write(true);
        options
    };
    match options().create_new(true).open(path) {
        Ok(file) => Ok((file, true)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let file = options().create(true).truncate(false).open(path)?;
            Ok((file, false))
        }
        Err(error) => Err(error),
    }
}

/// Whether the name still means this file, and not one that its holder has removed since.
fn is_at(file: &File, path: &Path) -> std::io::Result<bool> {
    let held = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(named) => Ok((held.dev(), held.ino()) == (named.dev(), named.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl Drop for DataDirLock {
    fn drop(&mut self) {
        // Closing the file unlocks it too; nothing is lost when this fails.
        let _ = self.file.unlock();
    }
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.take(PID_BYTES_MAX).read_to_string(&mut text);
    match read.ok().and_then(|_| text.trim().parse::<u32>().ok()) {
        Some(pid) => format!("process {pid}"),
        None => "another process".to_owned(),
    }
}

fn write_pid(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}
