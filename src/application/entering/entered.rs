//! What a flow in memory remembers of what it has entered.

use crate::application::slots::View;
use taskledger_domain::flow::Flow;
use taskledger_domain::schedule::Outside;

/// What a flow in memory has entered.
#[derive(Debug, Clone, Default)]
pub(in crate::application) struct Entered {
    pub(super) outside: Outside,
    /// The snapshot of the directory of executors and the owner for which that holds; `None`: nothing is entered.
    pub(super) of: Option<(u64, Option<Box<str>>)>,
}

impl Entered {
    pub(in crate::application) fn weight_bytes(&self) -> usize {
        self.outside.weight_bytes()
    }

    pub(super) fn holds(&self, flow: &Flow, view: &View) -> bool {
        let of = self.of.as_ref();
        of.is_some_and(|(number, owner)| {
            *number == view.number() && owner.as_deref() == flow.owner()
        })
    }

    pub(super) fn owner(&self) -> Option<&str> {
        self.of.as_ref()?.1.as_deref()
    }
}
