//! Reasons of tasks that wait for somebody to answer or repair something.

use super::super::steps::Steps;
use super::{NAMES_MAX, Said, Speaker, said};
use serde_json::json;
use taskledger_domain::Timestamp;
use taskledger_domain::flow::explain::{Held, Reason, TaskRef};
use taskledger_domain::flow::{TimerKind, Waits};
use taskledger_domain::task::Status;

impl Speaker<'_> {
    /// Adds the reason that nothing begins on this server, if that keeps the task, or one below it, from starting. It
    /// stands before the reasons of a task that only waits for its turn, and of a group below which nothing runs, and
    /// after those of any other.
    pub(super) fn add_drain(&self, reasons: &mut Vec<Said>) {
        if !self.is_draining || self.e.run.is_none() {
            return;
        }
        let (first, what) = match self.e.reasons.first() {
            Some(Reason::WaitsForDescendants(below)) => {
                let is_pending = |task: &TaskRef| task.status == Status::Pending;
                let listed = &below.listed;
                if listed.more == 0 && !listed.items.iter().any(is_pending) {
                    return;
                }
                (
                    listed.items.iter().all(is_pending),
                    "no task below it starts",
                )
            }
            Some(Reason::WaitsForSlot(_) | Reason::WaitsForWorker { .. }) => {
                (true, "no task starts")
            }
            _ if self.e.task.status == Status::Pending => (false, "no task starts"),
            _ => return,
        };
        let drain = if self.is_stopping {
            said(
                "draining",
                format!("waits because the server is stopping: {what} until it has started again"),
                json!({"next_steps": []}),
            )
        } else {
            let next = Steps::new()
                .now(
                    "system.drain",
                    json!({"drain": false}),
                    "stop draining, so that new attempts start",
                )
                .all();
            said(
                "draining",
                format!(
                    "waits because the server is draining: {what} until draining is cancelled or the server restarts"
                ),
                json!({"next_steps": next}),
            )
        };
        let at = if first { 0 } else { reasons.len() };
        reasons.insert(at, drain);
    }

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

    pub(super) fn time(&self, held: &Held) -> Said {
        let member = match held.timer {
            TimerKind::StartAt => "start_at",
            TimerKind::DelaySeconds => "delay_seconds",
        };
        let whose = match held.of.id == self.e.task.id {
            true => String::new(),
            false => format!(" of the group `{}`", self.facts.name(&held.of)),
        };
        let (at, within) = (held.at, coarse(held.in_ms));
        let update = json!({"task_id": held.of.id});
        let sooner = "change or remove it, to start sooner";
        let next = Steps::new().now("tasks.update", update, sooner).all();
        said(
            "waits_for_time",
            format!("waits until {at} (in {within}), because of `{member}`{whose}"),
            json!({"at": at, "timer": member, "of": self.task(&held.of), "next_steps": next}),
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
                "change its inputs to refer to values that the results have",
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

/// Milliseconds as people say them: rounded up to seconds, the two largest units.
fn coarse(ms: u64) -> String {
    if ms < 1000 {
        return format!("{ms} ms");
    }
    let s = ms.div_ceil(1000);
    let units = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let mut left = s;
    let parts = units.into_iter().map(|(unit, word)| {
        let n = left / unit;
        left %= unit;
        (n, word)
    });
    let parts = parts.skip_while(|(n, _)| *n == 0).take(2);
    let said = parts.filter(|(n, _)| *n > 0);
    let said: Vec<_> = said.map(|(n, word)| format!("{n} {word}")).collect();
    said.join(" ")
}

#[cfg(test)]
mod tests {
    use super::coarse;

    #[test]
    fn a_time_is_told_in_the_two_largest_units() {
        for (ms, said) in [
            (250, "250 ms"),
            (1500, "2 s"),
            (7_199_999, "2 h"),
            (7_500_000, "2 h 5 min"),
            (7_205_000, "2 h"),
            (172_800_000, "2 d"),
        ] {
            assert_eq!(coarse(ms), said);
        }
    }
}
