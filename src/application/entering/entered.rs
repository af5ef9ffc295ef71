//! What a flow in memory remembers of its entries in the indexes.

use crate::application::slots::View;
use std::sync::Arc;
use taskledger_domain::flow::Flow;
use taskledger_domain::schedule::Outside;

/// What a flow in memory has entered.
#[derive(Debug, Clone, Default)]
pub(in crate::application) struct Entered {
    pub(super) outside: Outside,
    /// The snapshot of the directory of executors for which that holds; `None`: nothing is entered.
    pub(super) number: Option<u64>,
    /// The owner for whom it holds.
    pub(super) owner: Option<Arc<str>>,
}

impl Entered {
    pub(in crate::application) fn weight_bytes(&self) -> usize {
        self.outside.weight_bytes()
    }

    pub(super) fn holds(&self, flow: &Flow, view: &View) -> bool {
        self.number == Some(view.number()) && self.owner.as_deref() == flow.owner()
    }

    pub(super) fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }
}
