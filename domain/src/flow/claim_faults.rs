//! Why a task that a worker names cannot be claimed yet, and what of it is in the log: claims that were refused are
//! facts, and the same refusal twice in a row is one (RFC-0024, sections 3.1 and 4).

use super::state::{Flow, NONE};
use crate::contract::{Broken, Incomplete};
use crate::task::Status;
use crate::{TaskId, limits};
use serde::{Deserialize, Serialize};

/// The refused claims of a task that are in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct ToldClaims {
    /// What the last of them said.
    last: u64,
    /// How many there are in the run.
    pub(crate) times: u32,
}

impl ToldClaims {
    /// Whether the last one said this.
    pub(crate) fn says(self, found: &Broken) -> bool {
        self.times > 0 && self.last == fingerprint(found)
    }

    /// With one more.
    pub(crate) fn and(self, found: &Broken) -> Self {
        Self {
            last: fingerprint(found),
            times: self.times.saturating_add(1),
        }
    }
}

/// FNV-1a of what is wrong, names left out: the same on every node and in every build.
fn fingerprint(found: &Broken) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let mut hash = OFFSET;
    let mut take = |text: &str| {
        for byte in text.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    };
    take(found.name());
    match found {
        Broken::Inputs {
            unresolvable_refs,
            incomplete,
        } => {
            unresolvable_refs.iter().for_each(|it| take(it));
            for it in incomplete {
                take(&it.task_id.to_string());
                take(it.status.as_str());
            }
        }
        Broken::Upstream {
            task_id,
            suspension_id,
            ..
        } => {
            take(&task_id.to_string());
            take(&suspension_id.to_string());
        }
        Broken::Output(fault) => take(&fault.message()),
    }
    hash
}

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
