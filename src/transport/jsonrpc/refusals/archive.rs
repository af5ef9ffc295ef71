//! Texts for why a flow cannot be archived.

use serde_json::Value;
use taskledger_domain::Violation;
use taskledger_domain::flow::ArchiveFault;

/// No method archives a flow, so no caller meets these; the table is whole all the same.
pub(super) fn archive(fault: ArchiveFault) -> Violation {
    let of = |reason: &str, expected: &str, actual: Value| {
        Violation::of("flow", reason, expected, &actual)
    };
    match fault {
        ArchiveFault::Already { version } => of(
            "Flow was archived already",
            "a flow in the log",
            version.into(),
        ),
        ArchiveFault::Changed { version, copied } => of(
            "Flow has changed since it was copied",
            &format!("version {copied}, which was copied"),
            version.into(),
        ),
        ArchiveFault::Running => of("Flow is running", "a flow at rest", Value::Null),
        ArchiveFault::NotEnded { status } => of(
            "Not all tasks have ended",
            "a flow whose tasks have all ended",
            Value::from(status.as_str()),
        ),
    }
}
