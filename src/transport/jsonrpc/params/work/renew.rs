//! `tasks.renew`.

use super::super::super::reader::integer;
use super::super::super::reader::{Fault, Parameters, Reader, text};
use super::kinds::{Fraction, OutputText, held, lease_seconds};
use serde_json::Value;
use taskledger_domain::flow::OutputPart;
use taskledger_domain::limits::{MESSAGE_CHARS_MAX, OUTPUT_PARTS_MAX};
use taskledger_domain::task::Progress;
use taskledger_domain::{LeaseId, TaskId, Violation};

/// The lease to renew, and what the worker reports with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// The task that the worker holds.
    pub task: TaskId,
    /// The lease; `None`: no lease of this server.
    pub lease: Option<LeaseId>,
    /// Milliseconds from now; absent: as it was claimed, or what is left.
    pub lease_ms: Option<u64>,
    /// How much is done.
    pub progress: Option<Progress>,
    /// What the worker is doing, in words for people.
    pub message: Option<String>,
    /// What it has made since the last time, with its place among the parts of the attempt, from 1.
    pub output: Option<(u32, OutputPart)>,
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
        let output_part = reader.optional(
            "output_part",
            OutputText,
            "The next part of the output, a text or an object: recorded at once, sent by streams, and shown by A2A before the result. At most 64 KiB; all parts of an attempt together at most 1000 and 1 MiB. The lease is renewed also where a part is refused.",
        );
        let output_number = reader.optional(
            "output_number",
            integer(1..=u64::from(OUTPUT_PARTS_MAX)),
            "The number of `output_part` among the parts of the attempt, from 1. Sending a recorded number again changes nothing, so a call can be repeated after a lost answer; a number that leaves a gap is refused. Required with each part.",
        );
        let fault = |expected| Fault::new("missing", expected);
        match (reader.given("output_part"), reader.given("output_number")) {
            (true, false) => reader.report(
                "output_number",
                fault("the number of `output_part`, from 1"),
                &Value::Null,
            ),
            (false, true) => reader.report(
                "output_part",
                fault("the part that has this number"),
                &Value::Null,
            ),
            (true, true) | (false, false) => {}
        }
        reader.finish(|| {
            Some(Self {
                task: task?,
                lease: lease?,
                lease_ms: lease_s.map(|seconds| seconds * 1000),
                progress,
                message,
                output: output_number
                    .and_then(|it| u32::try_from(it).ok())
                    .zip(output_part),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{ID, faults, map};
    use super::*;
    use serde_json::json;
    use taskledger_domain::Payload;

    #[test]
    fn everything_is_read() {
        let given = json!({"task_id": ID, "lease": ID, "lease_seconds": 3600, "progress": 0.5,
            "message": "half", "output_part": {"page": 1}, "output_number": 3});
        let read = Params::read(&map(given)).unwrap();
        assert_eq!(
            read.lease.map(|lease| lease.to_string()).as_deref(),
            Some(ID)
        );
        assert_eq!(read.lease_ms, Some(3_600_000));
        assert_eq!(read.progress, Some(Progress::from_millionths(500_000)));
        assert_eq!(read.message.as_deref(), Some("half"));
        let page = Payload::parse(r#"{"page":1}"#).unwrap();
        assert_eq!(read.output, Some((3, OutputPart::Data(page))));
    }

    #[test]
    fn every_fault_is_named() {
        let given = json!({"lease": "", "lease_seconds": 3601, "progress": 2, "message": "",
            "output_part": "", "output_number": 0});
        let fields: Vec<_> = faults(Params::read(&map(given)))
            .into_iter()
            .map(|(field, _)| field)
            .collect();
        let expected = [
            "task_id",
            "lease",
            "lease_seconds",
            "progress",
            "message",
            "output_part",
            "output_number",
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn a_part_and_its_number_come_together() {
        for (alone, lacks) in [
            (json!({"output_part": "one"}), "output_number"),
            (json!({"output_number": 1}), "output_part"),
        ] {
            let mut given = map(alone);
            given.extend(map(json!({"task_id": ID, "lease": ID})));
            let found = faults(Params::read(&given));
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].0, lacks);
        }
    }
}
