//! `tasks.renew`.

use super::super::super::reader::{Parameters, Reader, text};
use super::kinds::{Fraction, held, lease_seconds};
use taskledger_domain::limits::MESSAGE_CHARS_MAX;
use taskledger_domain::task::Progress;
use taskledger_domain::{LeaseId, TaskId, Violation};

/// Whose lease is renewed, and what the worker says besides.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// The claimed task.
    pub task: TaskId,
    /// The lease; `None`: no lease of this server.
    pub lease: Option<LeaseId>,
    /// Milliseconds from now; absent: as it was claimed, or what is left.
    pub lease_ms: Option<u64>,
    /// How much is done.
    pub progress: Option<Progress>,
    /// For people.
    pub message: Option<String>,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let (task, lease) = held(&mut reader);
        let lease_s = reader.optional(
            "lease_seconds",
            lease_seconds(),
            "How long the lease holds from now on, also if that is less than what is left of it. Without it the lease holds for as long as it was claimed for, or for what is left if that is more.",
        );
        let about = "How much is done. Recorded at most once a second, and the first 1; what comes between is not recorded.";
        let progress = reader.optional("progress", Fraction, about);
        let message = reader.optional(
            "message",
            text(MESSAGE_CHARS_MAX),
            "What the worker is doing, for people; kept in the history with the progress, when that is recorded.",
        );
        reader.finish(|| {
            Some(Self {
                task: task?,
                lease: lease?,
                lease_ms: lease_s.map(|seconds| seconds * 1000),
                progress,
                message,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{ID, faults, map};
    use super::*;
    use serde_json::json;

    #[test]
    fn everything_is_read() {
        let given = json!({"task_id": ID, "lease": ID, "lease_seconds": 3600, "progress": 0.5,
            "message": "half"});
        let read = Params::read(&map(given)).unwrap();
        assert_eq!(
            read.lease.map(|lease| lease.to_string()).as_deref(),
            Some(ID)
        );
        assert_eq!(read.lease_ms, Some(3_600_000));
        assert_eq!(read.progress, Some(Progress::from_millionths(500_000)));
        assert_eq!(read.message.as_deref(), Some("half"));
    }

    #[test]
    fn every_fault_is_named() {
        let given = json!({"lease": "", "lease_seconds": 3601, "progress": 2, "message": ""});
        let fields: Vec<_> = faults(Params::read(&map(given)))
            .into_iter()
            .map(|(field, _)| field)
            .collect();
        let expected = ["task_id", "lease", "lease_seconds", "progress", "message"];
        assert_eq!(fields, expected);
    }
}
