//! `taskledger tasks get`

use super::as_of::AsOf;
use super::read::Read;
use super::{CliError, Output, Params, Request};
use crate::output::{member, members};
use crate::tree::SKIPPED;
use serde_json::Value;
use std::io;

/// Show one task
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger tasks get 0f8fad5b-d9cb-469f-a165-70867728950e
  taskledger tasks get 0f8fad5b-d9cb-469f-a165-70867728950e --as-of 1042
  taskledger tasks get 0f8fad5b-d9cb-469f-a165-70867728950e --json | jq .result")]
pub(super) struct Args {
    /// The task
    #[arg(value_name = "ID")]
    task_id: String,
    #[command(flatten)]
    as_of: AsOf,
    #[command(flatten)]
    read: Read,
}

impl Args {
    pub(super) fn request(self) -> Result<Request, CliError> {
        Ok(Request {
            method: "tasks.get",
            params: self
                .as_of
                .add_to(Params::default().with("task_id", self.task_id))
                .read(&self.read)
                .build(),
            show,
        })
    }
}

pub(super) fn show(result: &Value, out: &mut Output) -> io::Result<()> {
    const FIRST: [&str; 11] = [
        "id",
        "name",
        "status",
        "progress",
        "error",
        "result",
        "attempt",
        "created_at",
        "started_at",
        "completed_at",
        "updated_at",
    ];
    let mut shown = result.clone();
    if let Some(run) = shown.get_mut("run") {
        *run = Value::String(in_words(run));
    }
    members(&shown, &FIRST, out)
}

/// A run in a line: `failed: 3 completed, 1 failed, 2 skipped (018fad5b-..)`. What has ended leaves nothing pending:
/// those tasks are skipped.
fn in_words(run: &Value) -> String {
    let counts = run.get("counts").and_then(Value::as_object);
    let counts = counts.into_iter().flatten();
    let skipped = run.get(SKIPPED).and_then(Value::as_u64).unwrap_or(0);
    let counts = counts.filter_map(|(status, count)| {
        let count = count.as_u64()?;
        let is_pending = status == "pending";
        Some((
            status.as_str(),
            if is_pending {
                count.saturating_sub(skipped)
            } else {
                count
            },
        ))
    });
    let some = counts
        .chain([(SKIPPED, skipped)])
        .filter(|(_, count)| *count != 0);
    let some: Vec<String> = some
        .map(|(status, count)| format!("{count} {status}"))
        .collect();
    let (state, id) = (member(run, "state"), member(run, "id"));
    if some.is_empty() {
        return format!("{state} ({id})");
    }
    format!("{state}: {} ({id})", some.join(", "))
}

#[cfg(test)]
mod tests {
    use super::in_words;
    use serde_json::json;

    #[test]
    fn a_run_is_a_line_with_the_counts_that_are_not_zero() {
        let run = json!({"id": "r", "state": "failed",
            "counts": {"completed": 3, "failed": 1, "pending": 0}});
        assert_eq!(in_words(&run), "failed: 3 completed, 1 failed (r)");
        let ended = json!({"id": "r", "state": "failed", "skipped": 1,
            "counts": {"completed": 2, "failed": 1, "pending": 1}});
        assert_eq!(
            in_words(&ended),
            "failed: 2 completed, 1 failed, 1 skipped (r)"
        );
        let none = json!({"id": "r", "state": "running", "counts": {"completed": 0}});
        assert_eq!(in_words(&none), "running (r)");
    }
}
