//! Tells whether the rules would accept a new run of a task, by asking the rules themselves.

use crate::flow::command::{Capacity, Command, Execute};
use crate::flow::event::RunKind;
use crate::flow::refusal::{Refusal, Rejection};
use crate::flow::state::Flow;
use crate::limits;
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
            // Nothing is kept of the decision, so the run needs no id of its own.
            run_id: RunId(Uuid::nil()),
            allow_unknown_executors: false,
            executor_wait_ms: limits::EXECUTOR_WAIT_MS_DEFAULT,
            wait_bounds: Default::default(),
            callback: None,
            origin: None,
        });
        match self.decide(&command, now, capacity) {
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
}
