//! Flows that the read models leave out, because an event of them cannot be read or folded.

use taskledger_log::damage::Damaged;
use taskledger_projections::{DamagedFlow, DamagedFlows};

/// Names the flows in the server's log that are folded no further from now on.
pub(super) fn name_new(before: &DamagedFlows, after: &DamagedFlows) {
    for (flow, damaged) in after.iter().filter(|(flow, _)| !before.contains_key(flow)) {
        tracing::warn!(
            flow.id = %flow,
            position = damaged.position,
            reason = %damaged.reason,
            "the read models leave out a flow from here on"
        );
    }
}

/// The flows of damaged events. What a row that is missing belonged to is not known.
pub(crate) fn damaged_flows(damaged: &[Damaged]) -> Vec<DamagedFlow> {
    let of_flow = |it: &Damaged| {
        Some(DamagedFlow {
            flow: it.flow?,
            position: it.position,
            is_readable: false,
            reason: it.reason.clone(),
        })
    };
    damaged.iter().filter_map(of_flow).collect()
}
