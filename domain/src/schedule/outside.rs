//! The ready tasks of a flow that it does not start by itself, method by method: workers claim them, or nobody has
//! their executor. Kept beside the state and brought up to date by what has changed in it, because a flow may wait
//! for a thousand methods when a claim takes one task.

use super::settle::{first_due, firsts};
use crate::Timestamp;
use crate::flow::state::{Line, Standing};
use crate::flow::{Capacity, Flow};
use crate::task::Priority;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of what is kept of one method.
const METHOD_BYTES: usize = 64;

/// The tasks of one method that a flow offers to workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offered {
    /// Priority of the first task.
    pub priority: Priority,
    /// When that became ready.
    pub since: Timestamp,
    /// Tasks, those included whose next attempt is not due yet.
    pub ready: usize,
}

/// The ready tasks of one method that the flow does not start by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// `None` while none is due.
    pub offered: Option<Offered>,
    /// All of them say that they are remote, whoever asks for the method.
    pub is_said: bool,
}

/// Ready tasks by method. Holds for one directory of executors.
#[derive(Debug, Clone, Default)]
pub struct Outside {
    methods: BTreeMap<u32, Waiting>,
    /// Methods with tasks that are not due yet.
    later: BTreeSet<u32>,
    offered: usize,
}

impl Outside {
    /// Everything anew, for whoever knows nothing of the flow yet or asks another directory.
    /// Cost: O(methods with ready tasks).
    pub fn renewed<'a>(
        flow: &'a mut Flow,
        now: Timestamp,
        capacity: &dyn Capacity,
    ) -> (Self, Vec<(&'a str, Option<Waiting>)>) {
        let methods = flow.ready.keys().map(|line| line.method);
        flow.touched.0 = methods.collect();
        let mut outside = Self::default();
        let all = outside.update(flow, now, capacity);
        (outside, all)
    }

    /// Brings it up to date. Gives the methods whose tasks wait otherwise than before; `None`: none waits any more.
    /// Cost: O(methods whose ready tasks have changed, or are not due yet).
    pub fn update<'a>(
        &mut self,
        flow: &'a mut Flow,
        now: Timestamp,
        capacity: &dyn Capacity,
    ) -> Vec<(&'a str, Option<Waiting>)> {
        let mut methods = std::mem::take(&mut flow.touched.0);
        methods.extend(&self.later);
        let flow = &*flow;
        let mut changed = Vec::new();
        for method in methods {
            let is = self.look(flow, method, now, capacity);
            let was = match is {
                Some(waiting) => self.methods.insert(method, waiting),
                None => self.methods.remove(&method),
            };
            let is_offered =
                |waiting: Option<Waiting>| waiting.is_some_and(|w| w.offered.is_some());
            self.offered += usize::from(is_offered(is));
            self.offered -= usize::from(is_offered(was));
            if is != was
                && let Some(name) = flow.methods.text(method)
            {
                changed.push((name, is));
            }
        }
        changed
    }

    /// Roughly what it takes in memory.
    #[must_use]
    pub fn weight_bytes(&self) -> usize {
        self.methods.len() * METHOD_BYTES
    }

    /// Methods of which something is offered.
    #[must_use]
    pub const fn offered(&self) -> usize {
        self.offered
    }

    /// Methods of which something waits.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.methods.len()
    }

    fn look(
        &mut self,
        flow: &Flow,
        method: u32,
        now: Timestamp,
        capacity: &dyn Capacity,
    ) -> Option<Waiting> {
        let mut found: Option<Waiting> = None;
        let mut is_later = false;
        for line in Line::all(method) {
            let Some(queue) = flow.ready.get(&line) else {
                continue;
            };
            if flow.standing(line, capacity) == Standing::Local {
                continue;
            }
            is_later |= !line.lacking && firsts(queue).any(|rank| rank.since > now);
            let first = first_due(flow, line, now).filter(|_| !line.lacking);
            let offered = first.map(|first| Offered {
                priority: first.priority,
                since: first.since,
                ready: queue.len(),
            });
            let waiting = Waiting {
                offered,
                is_said: line.remote,
            };
            found = Some(found.map_or(waiting, |other| other.and(waiting)));
        }
        if is_later {
            self.later.insert(method);
        } else {
            self.later.remove(&method);
        }
        found
    }
}

impl Waiting {
    /// Those of its tasks that say that they are remote, and those that do not.
    fn and(self, other: Self) -> Self {
        let offered = match (self.offered, other.offered) {
            (Some(a), Some(b)) => {
                let (priority, since) = (a.priority, a.since).min((b.priority, b.since));
                let ready = a.ready + b.ready;
                Some(Offered {
                    priority,
                    since,
                    ready,
                })
            }
            (one, None) | (None, one) => one,
        };
        Self {
            offered,
            is_said: self.is_said && other.is_said,
        }
    }
}
