//! Reasons of tasks that wait for what somebody has to say or mend.

use super::super::steps::Steps;
use super::{NAMES_MAX, Said, Speaker, said};
use serde_json::json;
use taskledger_domain::Timestamp;
use taskledger_domain::flow::Waits;

impl Speaker<'_> {
    pub(super) fn suspended(&self, waits: &Waits) -> Said {
        let until = waits.expires_at;
        let ends = until.map_or_else(String::new, |at| format!(", until {at}"));
        let answer = json!({"task_id": self.e.task.id, "suspension_id": waits.suspension});
        let next = Steps::new()
            .now("tasks.respond", answer, "answer it, with a `value`")
            .all();
        said(
            "suspended",
            format!(
                "waits for an answer of a person since {}{ends}",
                waits.since
            ),
            json!({"suspension_id": waits.suspension, "since": waits.since, "expires_at": until,
                "next_steps": next}),
        )
    }

    pub(super) fn lacks_inputs(&self, refs: &[String], until: Option<Timestamp>) -> Said {
        let listed: Vec<&str> = refs.iter().take(NAMES_MAX).map(String::as_str).collect();
        let more = match refs.len() - listed.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let ends = until.map_or_else(String::new, |at| format!("; it fails at {at}"));
        let update = json!({"task_id": self.e.task.id});
        let next = Steps::new()
            .now(
                "tasks.update",
                update,
                "wire its inputs to what results have",
            )
            .all();
        let listed = listed.join("`, `");
        said(
            "lacks_inputs",
            format!("is ready, but no worker may claim it: no value for `{listed}`{more}{ends}"),
            json!({"unresolvable_refs": refs, "until": until, "next_steps": next}),
        )
    }
}
