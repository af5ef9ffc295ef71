//! `skip_when`: a condition on what is known when a run is created. Phases for which it holds are left out of the run.
//!
//! `true`, `false`, a reference, `not` and a reference, or a reference with `==` or `!=` and a JSON value. A reference
//! is `$trigger.<key>` or `$initial_state.<key>`, as in `inputs`; alone, it holds when its value is there and neither
//! null nor false. A value that is absent equals null.

use serde_json::{Map, Value};
use taskledger_domain::contract::equal;
use taskledger_domain::json;

use crate::limits;
use crate::node::Node;
use crate::source::{self, found};
use crate::workflow::{Phase, SkipWhen, Source, Workflow};

/// What would be understood.
pub(crate) const FORMS: &str = "write true, false, `$trigger.<key>`, `not $trigger.<key>`, or `$trigger.<key> == <JSON value>` (or `!=`; integers of 64 bits); `$initial_state.<key>` likewise";

/// Reads a condition; `None` for one that is not understood.
pub(crate) fn read(node: &Node) -> Option<SkipWhen> {
    if let Some(Value::Bool(always)) = node.scalar() {
        return Some(SkipWhen::Always(*always));
    }
    let text = node.text()?.trim();
    if let Ok(always) = text.parse::<bool>() {
        return Some(SkipWhen::Always(always));
    }
    let operators = ["==", "!="].into_iter();
    let first = operators.filter_map(|it| Some((text.find(it)?, it))).min();
    if let Some((at, operator)) = first {
        return Some(SkipWhen::Value {
            source: known(text[..at].trim())?,
            is: Some(json::read(&text.as_bytes()[at + operator.len()..]).ok()?),
            negated: operator == "!=",
        });
    }
    let (from, negated) = match text.strip_prefix("not ") {
        Some(from) => (from.trim(), true),
        None => (text, false),
    };
    Some(SkipWhen::Value {
        source: known(from)?,
        is: None,
        negated,
    })
}

/// A reference in a condition. What looks like a longer expression is none, although a key may be any text.
fn known(text: &str) -> Option<Source> {
    let is_expression = |c: char| c.is_whitespace() || "=<>&|!()+*?".contains(c);
    let key = text.split_once('#').map_or(text, |(key, _)| key);
    source::known(text).filter(|_| !key.contains(is_expression))
}

impl SkipWhen {
    /// Whether the phase may be left out, whatever the trigger is.
    pub(crate) const fn may_hold(&self) -> bool {
        !matches!(self, Self::Always(false))
    }

    /// Whether it holds in every run or in none; `None`: that depends on the trigger.
    pub(crate) fn fixed(
        &self,
        initial_state: impl FnOnce() -> Option<Map<String, Value>>,
    ) -> Option<bool> {
        match self {
            Self::Always(always) => Some(*always),
            Self::Value { source, .. } => match source {
                Source::InitialState { .. } => {
                    Some(self.holds(&Map::new(), &initial_state().unwrap_or_default()))
                }
                Source::Trigger { .. } | Source::Phase { .. } => None,
            },
        }
    }

    fn holds(&self, trigger: &Map<String, Value>, initial_state: &Map<String, Value>) -> bool {
        let (source, is, negated) = match self {
            Self::Always(always) => return *always,
            Self::Value {
                source,
                is,
                negated,
            } => (source, is, *negated),
        };
        let value = match source {
            Source::Trigger { key, pointer } => found(trigger, key, pointer.as_deref()),
            Source::InitialState { key, pointer } => found(initial_state, key, pointer.as_deref()),
            Source::Phase { .. } => None,
        };
        let holds = match is {
            Some(is) => equal(value.unwrap_or(&Value::Null), is),
            None => value.is_some_and(|value| *value != Value::Bool(false)),
        };
        holds != negated
    }
}

/// Which phases are left out of a run, and what the others wait for.
pub(crate) struct Plan {
    /// By phase.
    pub(crate) is_skipped: Vec<bool>,
    /// By phase: the phases that it waits for; in place of one that is left out, those that it would have waited for.
    pub(crate) depends_on: Vec<Vec<usize>>,
}

impl Workflow {
    /// All phases, whatever their conditions say.
    pub(crate) fn whole_plan(&self) -> Plan {
        Plan {
            is_skipped: vec![false; self.phases.len()],
            depends_on: self.edges(),
        }
    }

    /// The phases of a run with this trigger; `None` when too many steps are needed to tell what they wait for.
    pub(crate) fn plan(&self, trigger: &Map<String, Value>) -> Option<Plan> {
        let holds = |phase: &Phase| {
            let condition = phase.skip_when.as_ref();
            condition.is_some_and(|it| it.holds(trigger, &phase.initial_state))
        };
        let is_skipped: Vec<bool> = self.phases.iter().map(holds).collect();
        let mut depends_on = self.edges();
        if is_skipped.contains(&true) {
            depends_on = around(&depends_on, &is_skipped)?;
        }
        Some(Plan {
            is_skipped,
            depends_on,
        })
    }

    fn edges(&self) -> Vec<Vec<usize>> {
        let names = self.phases.iter().enumerate();
        let names: std::collections::HashMap<&str, usize> =
            names.map(|(i, phase)| (phase.name.as_str(), i)).collect();
        let edges = self.phases.iter().map(|phase| {
            let on = phase.depends_on.iter();
            on.map(|name| names[name.as_str()]).collect()
        });
        edges.collect()
    }
}

/// Edges that go past skipped nodes, each once, in the order in which they are met.
fn around(edges: &[Vec<usize>], is_skipped: &[bool]) -> Option<Vec<Vec<usize>>> {
    // Which node has last been seen from which.
    let mut seen_from = vec![usize::MAX; edges.len()];
    let (mut steps, mut count) = (0, 0);
    let mut kept = vec![Vec::new(); edges.len()];
    for node in (0..edges.len()).filter(|node| !is_skipped[*node]) {
        let mut open: Vec<usize> = edges[node].iter().rev().copied().collect();
        while let Some(next) = open.pop() {
            steps += 1;
            if steps > limits::SKIP_STEPS_MAX || count > limits::SKIP_EDGES_MAX {
                return None;
            }
            if std::mem::replace(&mut seen_from[next], node) == node {
                continue;
            }
            if is_skipped[next] {
                open.extend(edges[next].iter().rev());
            } else {
                count += 1;
                kept[node].push(next);
            }
        }
    }
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::around;

    #[test]
    fn edges_go_past_skipped_nodes_once() {
        // 3 -> 2 -> 1 -> 0, 3 -> 1, 4 -> 3
        let edges = [vec![], vec![0], vec![1], vec![2, 1], vec![3]];
        let kept = around(&edges, &[false, true, true, false, false]);
        assert_eq!(kept, Some(vec![vec![], vec![], vec![], vec![0], vec![3]]));
    }
}
