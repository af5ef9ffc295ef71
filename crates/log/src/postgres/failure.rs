//! Maps errors of the database to errors of the log.
//!
//! Owns: the one table from SQLSTATE to [`Error`], and the question whether a statement that failed
//! may have been committed.

use crate::Error;
use sqlx::postgres::{PgDatabaseError, PgSeverity};
use taskledger_domain::Position;

/// SQLSTATE of `taskledger.append` when the writer's epoch has been raised.
const STALE_EPOCH: &str = "TL001";

/// The outcome of a failed statement that writes and commits by itself.
#[derive(Debug)]
pub(super) enum Failed {
    /// Certainly nothing was written.
    Nothing(Error),
    /// Nothing was written, because the writer's epoch is not the current one.
    StaleEpoch,
    /// Written or not: the connection is gone, or does not answer.
    Unknown(String),
}

/// The error of a statement that was its own transaction.
///
/// An answer of severity ERROR comes from a transaction that was rolled back: after the commit record
/// is written the server knows no errors, only FATAL and PANIC. Those end the connection, perhaps
/// after the commit (a session that waits for a standby is ended that way), and a connection that
/// breaks says nothing at all.
pub(super) fn of_write(error: &sqlx::Error, head: Position) -> Failed {
    let Some(answer) = answer(error) else {
        return Failed::Unknown(error.to_string());
    };
    match answer.severity() {
        PgSeverity::Fatal | PgSeverity::Panic => Failed::Unknown(error.to_string()),
        PgSeverity::Error
        | PgSeverity::Warning
        | PgSeverity::Notice
        | PgSeverity::Debug
        | PgSeverity::Info
        | PgSeverity::Log => {
            if answer.code() == STALE_EPOCH {
                Failed::StaleEpoch
            } else {
                Failed::Nothing(of_code(answer, head))
            }
        }
    }
}

/// The error of a statement that only reads, or that may be repeated.
pub(super) fn of_read(error: &sqlx::Error, after: Position) -> Error {
    match answer(error) {
        Some(answer) => of_code(answer, after),
        None => Error::Unavailable(words(error)),
    }
}

/// Whether the connection is gone, so that asking again on another one may help.
pub(super) fn is_broken(error: &sqlx::Error) -> bool {
    match answer(error) {
        Some(answer) => matches!(answer.severity(), PgSeverity::Fatal | PgSeverity::Panic),
        None => matches!(error, sqlx::Error::Io(_) | sqlx::Error::Protocol(_)),
    }
}

fn answer(error: &sqlx::Error) -> Option<&PgDatabaseError> {
    error
        .as_database_error()
        .and_then(|e| e.try_downcast_ref::<PgDatabaseError>())
}

fn of_code(answer: &PgDatabaseError, after: Position) -> Error {
    let code = answer.code();
    let text = match answer.detail() {
        Some(detail) => format!("{} ({detail}) [{code}]", answer.message()),
        None => format!("{} [{code}]", answer.message()),
    };
    // The class is in the first two characters.
    match (code, code.get(..2)) {
        // A statement or lock that took too long; the head row may be held by somebody else.
        ("57014" | "55P03", _) => Error::Unavailable(format!("the database is too slow: {text}")),
        // The disk is full, memory or connections have run out, or a limit of the server is met.
        ("53300", _) => Error::Unavailable(text),
        (_, Some("53" | "54")) => Error::NotWritable(text),
        // A standby, or a server that has been told to take no more writes.
        ("25006", _) => Error::NotWritable(text),
        // The files under the server cannot be read or written.
        (_, Some("58")) => Error::NotWritable(text),
        ("42501", _) => Error::NotWritable(text),
        ("XX001" | "XX002", _) => Error::Corrupt {
            position: after.saturating_add(1),
            flow: None,
            reason: format!("the database is damaged here or after: {text}"),
        },
        (_, _) => Error::Unavailable(text),
    }
}

/// What the driver has to say, in words that an operator can use.
fn words(error: &sqlx::Error) -> String {
    if matches!(error, sqlx::Error::PoolTimedOut) {
        "all connections to the database stayed busy, or none could be made".to_owned()
    } else if matches!(error, sqlx::Error::PoolClosed) {
        "the log is closed".to_owned()
    } else {
        error.to_string()
    }
}
