//! The refused claims that are in the log already.

use crate::contract::Broken;
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
