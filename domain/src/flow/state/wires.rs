//! The state of a task's inputs that come from results.

use crate::TaskId;
use crate::task::wiring::{Need, Wiring};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The inputs of a task that need a value from a result.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Wires {
    pub(crate) needs: Vec<(Need, Wired)>,
}

/// What is known of such a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Wired {
    /// It may come.
    Open,
    /// The task does not depend on what it names.
    Foreign,
    /// The result is there and does not have it.
    Absent,
}

impl Wires {
    /// Those of a task that depends on `is_dependency`; `None` when all of its inputs are literal.
    pub(crate) fn of(wiring: &Wiring, is_dependency: impl Fn(TaskId) -> bool) -> Option<Self> {
        let needs = wiring.needs().map(|need| {
            let state = match need.source() {
                Some(source) if is_dependency(source) => Wired::Open,
                Some(_) | None => Wired::Foreign,
            };
            (need, state)
        });
        let needs: Vec<_> = needs.collect();
        (!needs.is_empty()).then_some(Self { needs })
    }

    /// Adds what is known of the same inputs already.
    pub(crate) fn knowing(mut self, known: &Self) -> Self {
        let absent: HashSet<&str> = known
            .needs
            .iter()
            .filter_map(|(need, state)| (*state == Wired::Absent).then_some(need.text()))
            .collect();
        for (need, state) in &mut self.needs {
            if *state == Wired::Open && absent.contains(need.text()) {
                *state = Wired::Absent;
            }
        }
        self
    }

    pub(crate) fn missing(&self) -> impl Iterator<Item = &str> {
        let missing = self.needs.iter().filter(|(_, state)| *state != Wired::Open);
        missing.map(|(need, _)| need.text())
    }

    /// Roughly what it takes in memory.
    pub(crate) fn weight_bytes(&self) -> usize {
        let needs = self.needs.iter().map(|(need, _)| need.weight_bytes());
        size_of::<Self>() + 16 + needs.sum::<usize>()
    }
}
