//! Records which events hold the parts of outputs that a run's tasks have reported.

use super::contradiction::Contradiction;
use super::held::{Part, Place};
use super::upsert::upsert;
use super::working_set::WorkingSet;
use crate::Error;
use std::sync::LazyLock;
use taskledger_domain::Recorded;
use taskledger_domain::flow::{OutputPart, TaskOutputAppended};
use taskledger_domain::payload::json_length;
use taskledger_sql::{MultiRow, Tx, int};

impl WorkingSet {
    /// Takes a part of the output of a task of a run.
    ///
    /// # Errors
    /// The event contradicts those before.
    pub(super) fn appended(
        &mut self,
        recorded: &Recorded,
        e: &TaskOutputAppended,
    ) -> Result<(), Contradiction> {
        let row = &self.task(e.task_id)?.placed.row;
        let ordinal = row.ordinal;
        if let Some(run) = row.run_id.and_then(|id| self.runs.get(&id)) {
            let part = Part {
                attempt: e.attempt,
                version: recorded.version,
                bytes: json_bytes(&e.part),
            };
            self.outputs.insert((run.no, ordinal, e.number), part);
        }
        Ok(())
    }
}

/// Bytes of the JSON text of a part. Cost: O(size).
fn json_bytes(part: &OutputPart) -> usize {
    match part {
        OutputPart::Text(text) => 2 + text.chars().map(json_length).sum::<usize>(),
        OutputPart::Data(data) => data.as_str().len(),
    }
}

pub(super) async fn write(set: &mut WorkingSet, tx: &mut Tx<'_>) -> Result<(), Error> {
    let parts: Vec<(Place, Part)> = std::mem::take(&mut set.outputs).into_iter().collect();
    UPSERT
        .execute(tx, &parts, |((run_no, ordinal, number), part), args| {
            args.int(*run_no);
            args.int(i64::from(*ordinal));
            args.int(i64::from(*number));
            args.int(i64::from(part.attempt));
            args.position(part.version);
            args.int(int(part.bytes as u64));
        })
        .await?;
    Ok(())
}

static UPSERT: LazyLock<MultiRow> = LazyLock::new(|| {
    upsert(
        "run_output",
        "run_no, ordinal, number",
        &["run_no", "ordinal", "number", "attempt", "version", "bytes"],
    )
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_json() {
        for text in ["", "plain", "é\u{1}\n\"\\\u{8}\u{c}\r\t\u{1f}\u{7f}/"] {
            let json = serde_json::to_string(text).expect("a text");
            let part = OutputPart::Text(text.to_owned());
            assert_eq!(json_bytes(&part), json.len(), "{json}");
        }
    }
}
