//! One server per data folder.
//!
//! Owns: the file `lock` in the data folder. The operating system holds the lock and lets go of it
//! when the process ends, however it ends, so a stale file never locks anybody out.
//! Taken by `serve` and by commands that write; readers (`events export`) do without.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

/// Name of the lock file in the data folder.
pub const LOCK_FILE: &str = "lock";
/// Bytes of a lock file that are looked at: a process number and a line end.
const PID_BYTES_MAX: u64 = 32;

/// Why a data folder could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process uses the folder; stop it, or choose another folder.
    #[error(
        "the data folder `{folder}` is in use by {holder}; stop it or choose another `--data-dir`"
    )]
    Held {
        /// The folder.
        folder: PathBuf,
        /// `process 1234`, or `another process` when its number is not known.
        holder: String,
    },
    /// The folder cannot be made or written to.
    #[error("the data folder `{folder}` cannot be used: {source}")]
    Unusable {
        /// The folder.
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
        std::fs::create_dir_all(folder).map_err(unusable)?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(folder.join(LOCK_FILE))
            .map_err(unusable)?;
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
        write_pid(&mut file).map_err(unusable)?;
        Ok(Self {
            file,
            folder: folder.to_owned(),
        })
    }

    /// The folder that is locked.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
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
