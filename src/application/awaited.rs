//! Index of the flows whose ready tasks they cannot start themselves, by the executor these tasks wait for: one that
//! does not exist yet, or one whose tasks workers claim.
//!
//! A flow enters itself when it comes to rest, and before commands are answered (`entering.rs`); whoever changes the
//! directory of executors finds here whom to wake. Nothing rests on it being complete: flows come to rest again after
//! each turn.

use super::ownership::Partitions;
use super::ports::Standing;
use super::slots::View;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use taskledger_domain::FlowId;

/// The flows that wait, by executor. Memory: one entry for each flow and method that it waits for.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    index: Mutex<Index>,
    /// Flows in the index, so that others pass it by.
    flows: AtomicUsize,
}

/// How the directory stood to a method when a flow came to rest.
#[derive(Debug, Clone)]
pub(super) struct Stood {
    /// The owner of the flow.
    owner: Option<Arc<str>>,
    standing: Standing,
    /// Its owner had declared the method for themselves.
    is_own: bool,
    /// All ready tasks of it say that they are remote: whether a worker asks for the method changes nothing.
    is_said: bool,
}

impl Stood {
    /// `view`: for flows of that owner.
    pub(super) fn of(
        (view, owner): (&View, Option<&Arc<str>>),
        method: &str,
        is_said: bool,
    ) -> Self {
        Self {
            owner: owner.cloned(),
            standing: view.standing(method),
            is_own: view.is_own(method),
            is_said,
        }
    }

    fn is_other(&self, (now, is_own): (Standing, bool)) -> bool {
        let seen = |standing| match standing {
            Standing::Unknown if self.is_said => Standing::Remote,
            Standing::Unknown | Standing::BuiltIn | Standing::Remote => standing,
        };
        seen(now) != seen(self.standing) || is_own != self.is_own
    }
}

#[derive(Debug, Default)]
struct Index {
    flows: HashMap<Box<str>, HashMap<FlowId, Stood>>,
    /// What each flow waits for.
    methods: HashMap<FlowId, HashSet<Box<str>>>,
}

impl Index {
    fn forget(&mut self, flow: FlowId) {
        for method in self.methods.remove(&flow).unwrap_or_default() {
            self.leave(flow, &method);
        }
    }

    fn leave(&mut self, flow: FlowId, method: &str) {
        if let Some(flows) = self.flows.get_mut(method) {
            flows.remove(&flow);
            if flows.is_empty() {
                self.flows.remove(method);
            }
        }
    }

    /// Gives for how many methods the flow waits now.
    fn change(&mut self, flow: FlowId, methods: Vec<(Box<str>, Option<Stood>)>) -> usize {
        let mut all = self.methods.remove(&flow).unwrap_or_default();
        for (method, stood) in methods {
            match stood {
                Some(stood) => {
                    let flows = self.flows.entry(method.clone()).or_default();
                    flows.insert(flow, stood);
                    all.insert(method);
                }
                None => {
                    self.leave(flow, &method);
                    all.remove(&method);
                }
            }
        }
        let many = all.len();
        if many > 0 {
            self.methods.insert(flow, all);
        }
        many
    }
}

impl Awaited {
    fn index(&self) -> MutexGuard<'_, Index> {
        self.index
            .lock()
            .expect("no code panics while it holds the index")
    }

    /// What the flow waits for now, in place of what it waited for before.
    pub(super) fn set(&self, flow: FlowId, methods: Vec<(Box<str>, Stood)>) {
        if methods.is_empty() && self.flows.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut index = self.index();
        index.forget(flow);
        let methods = methods.into_iter();
        let methods = methods.map(|(method, stood)| (method, Some(stood)));
        index.change(flow, methods.collect());
        self.flows.store(index.methods.len(), Ordering::Release);
    }

    /// What has changed in what the flow waits for. Gives for how many methods it waits now.
    /// Cost: O(methods that have changed).
    pub(super) fn change(&self, flow: FlowId, methods: Vec<(Box<str>, Option<Stood>)>) -> usize {
        let mut index = self.index();
        let many = index.change(flow, methods);
        self.flows.store(index.methods.len(), Ordering::Release);
        many
    }

    /// Forgets the flows of these partitions.
    pub(super) fn forget(&self, partitions: &Partitions) {
        let mut index = self.index();
        let leaving = index.methods.keys().filter(|f| partitions.contain(**f));
        let leaving: Vec<FlowId> = leaving.copied().collect();
        leaving.into_iter().for_each(|flow| index.forget(flow));
        self.flows.store(index.methods.len(), Ordering::Release);
    }

    /// Flows that wait for an executor to which the directory stands otherwise now: `view` for everybody, `of` for
    /// flows of an owner. Cost: O(methods + flows that wait).
    pub(super) fn changed(&self, view: &View, of: impl Fn(Option<&str>) -> View) -> Vec<FlowId> {
        let index = self.index();
        let mut changed = Vec::new();
        for (method, flows) in &index.flows {
            let shared = (view.standing(method), false);
            let now = |then: &Stood| match &then.owner {
                Some(owner) if view.has_owners() => {
                    let view = of(Some(owner));
                    (view.standing(method), view.is_own(method))
                }
                Some(_) | None => shared,
            };
            let other = flows.iter().filter(|(_, then)| then.is_other(now(then)));
            changed.extend(other.map(|(flow, _)| *flow));
        }
        changed
    }
}
