//! Maps errors of SQLite to errors of the log.
//!
//! Owns: the one table from SQLite's codes to [`Error`], and the question whether a failed COMMIT
//! may still take effect.

use crate::Error;
use rusqlite::ErrorCode;
use rusqlite::ffi::{SQLITE_BUSY, SQLITE_FULL, SQLITE_IOERR_WRITE};
use taskledger_domain::Position;

/// The error of a statement that writes, before COMMIT. Nothing was written.
pub(super) fn of_write(error: &rusqlite::Error, head: Position) -> Error {
    match error.sqlite_error_code() {
        Some(
            ErrorCode::DiskFull
            | ErrorCode::ReadOnly
            | ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied,
        ) => Error::NotWritable(error.to_string()),
        _ => of_read(error, head),
    }
}

/// The error of a statement that reads rows after `position`.
pub(super) fn of_read(error: &rusqlite::Error, position: Position) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Error::Corrupt {
            position: position.saturating_add(1),
            flow: None,
            reason: format!("the file is damaged here or after: {error}"),
        },
        _ => Error::Unavailable(error.to_string()),
    }
}

/// Whether it is certain that a COMMIT which failed with `error`, and whose transaction SQLite has
/// rolled back, has not reached and will never reach the disk.
///
/// Certain: no space, or a `write` that failed. The commit mark is in the last bytes of the last
/// frame that is written, under a checksum; when a write failed, that frame is incomplete and a
/// later recovery stops before it. Not certain: a failed sync (the frames are in the file and may
/// or may not survive), and anything unexpected.
pub(super) fn commit_is_certainly_absent(error: &rusqlite::Error) -> bool {
    let code = error
        .sqlite_error()
        .map_or(0, |failure| failure.extended_code);
    code == SQLITE_FULL || code == SQLITE_IOERR_WRITE || code & 0xff == SQLITE_BUSY
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi::{self, SQLITE_IOERR_FSYNC};

    fn error(code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
    }

    #[test]
    fn a_commit_without_space_is_certainly_absent_and_one_without_sync_is_not() {
        assert!(commit_is_certainly_absent(&error(SQLITE_FULL)));
        assert!(commit_is_certainly_absent(&error(SQLITE_IOERR_WRITE)));
        assert!(!commit_is_certainly_absent(&error(SQLITE_IOERR_FSYNC)));
        assert!(!commit_is_certainly_absent(&rusqlite::Error::InvalidQuery));
    }
}
