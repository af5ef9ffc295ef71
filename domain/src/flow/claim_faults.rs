//! Reasons why a task that a worker names cannot be claimed yet, and which of them are in the log: refused claims are
//! recorded, and the same refusal twice in a row is recorded once.

use super::state::{Flow, NONE};
use crate::contract::{Broken, Incomplete};
use crate::task::Status;
use crate::{TaskId, limits};

impl Flow {
    /// Why a pending task in a run cannot be claimed yet, as far as dependencies and their results say so; `None`:
    /// they do not keep it from its start. Names of tasks are left out, references are as they are stored. Cost:
    /// O(dependencies + wired inputs).
    #[must_use]
    pub fn claim_fault(&self, id: TaskId) -> Option<Broken> {
        self.claim_fault_of(self.live(id)?)
    }

    pub(super) fn claim_fault_of(&self, i: u32) -> Option<Broken> {
        let task = self.at(i);
        if task.status != Status::Pending || task.is_group() || task.run == NONE {
            return None;
        }
        if task.unsatisfied == 0 {
            return task.lacking.then(|| Broken::Inputs {
                unresolvable_refs: self.unresolvable(task.id),
                incomplete: Vec::new(),
            });
        }
        if let Some(source) = self.suspended_source(i)
            && let Some(open) = self.open_question(source)
        {
            return Some(Broken::Upstream {
                task_id: self.at(source).id,
                phase_name: None,
                suspension_id: open.id,
                expires_at: open.expires_at,
            });
        }
        let incomplete = task.dependencies.iter().filter_map(|edge| {
            let other = self.at(edge.task);
            let waits = !self.is_met(*edge);
            waits.then_some(Incomplete {
                task_id: other.id,
                phase_name: None,
                status: other.status,
            })
        });
        Some(Broken::Inputs {
            unresolvable_refs: self.unresolved_yet(i),
            incomplete: incomplete.take(limits::VIOLATIONS_MAX).collect(),
        })
    }

    /// Forgets which refused claims of a task are in the log.
    pub(super) fn forget_claims(&mut self, i: u32) {
        self.told_claims.remove(&i);
    }
}
