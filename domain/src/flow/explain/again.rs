//! Tells whether the rules would accept a new run of a task, by asking the rules themselves.

use crate::flow::command::{Capacity, Command, Execute, Include};
use crate::flow::event::RunKind;
use crate::flow::refusal::{Refusal, Rejection};
use crate::flow::state::Flow;
use crate::limits;
use crate::task::Status;
use crate::{RunId, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The answer that the rules would give to `tasks.execute` or `tasks.retry` of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Again {
    /// It would run.
    Accepted,
    /// An active run covers it, or a task that would run with it: only after that run has ended.
    AfterRun,
    /// It would run and fail again: a cancelled task below it keeps it from completing. A copy can complete.
    OnlyCopy,
    /// Refused for another reason.
    Refused(Refusal),
}

impl Flow {
    /// Judges a run of the live task `i` without changing anything.
    /// Cost: O(tasks that the run would cover).
    pub(super) fn again(
        &self,
        i: u32,
        kind: RunKind,
        now: Timestamp,
        capacity: &dyn Capacity,
    ) -> Again {
        let command = Command::Execute(Execute {
            create: Vec::new(),
            task: self.at(i).id,
            kind,
            include: Include::Needed,
            // Nothing is kept of the decision, so the run needs no id of its own.
            run_id: RunId(Uuid::nil()),
            allow_unknown_executors: false,
            executor_wait_ms: limits::EXECUTOR_WAIT_MS_DEFAULT,
            wait_bounds: Default::default(),
            callback: None,
            origin: None,
        });
        match self.decide(&command, now, capacity) {
            Ok(_) if kind == RunKind::Retry && self.is_harmed_by_cancel(i) => Again::OnlyCopy,
            Ok(_) => Again::Accepted,
            Err(Rejection::Refused(refusals)) => {
                let refusal = refusals.first;
                match matches!(refusal, Refusal::AlreadyExecuting(_)) {
                    true => Again::AfterRun,
                    false => Again::Refused(refusal),
                }
            }
            Err(Rejection::Outdated(what)) => {
                unreachable!("a run rests on nothing that was read before: {what:?}")
            }
        }
    }

    /// Whether a cancelled task below a failed group keeps it from completing. Cost: O(tasks below it).
    fn is_harmed_by_cancel(&self, group: u32) -> bool {
        let mut open = vec![group];
        while let Some(i) = open.pop() {
            if !self.at(i).is_group() {
                continue;
            }
            for child in self
                .children(i)
                .filter(|&child| self.harms_its_group(child))
            {
                if self.at(child).status == Status::Cancelled {
                    return true;
                }
                open.push(child);
            }
        }
        false
    }
}
