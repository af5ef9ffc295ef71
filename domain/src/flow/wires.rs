//! Finds inputs of a task that cannot be resolved, as soon as the result is there that should hold them: workers claim
//! no task whose inputs are incomplete (RFC-0024, section 3.1).
//!
//! Only what results say is known here. What a task is wired to after a result was recorded is known if whoever
//! changed the task has looked there (`TaskRespecified.absent`), else it is looked at when the task is claimed; what it
//! was wired to before stays known.

use super::event::Dependency;
use super::state::{Flow, Wired, Wires};
use crate::limits;
use crate::task::Status;
use crate::task::wiring::Wiring;
use crate::{Payload, TaskId};
use std::collections::HashSet;

impl Flow {
    /// The references of a live task that cannot be resolved, at most [`limits::VIOLATIONS_MAX`]; none as far as
    /// is known. Cost: O(wired inputs).
    #[must_use]
    pub fn unresolvable(&self, id: TaskId) -> Vec<String> {
        let wires = self.live(id).and_then(|i| self.wires.get(&i));
        let missing = wires.into_iter().flat_map(Wires::missing);
        missing
            .take(limits::VIOLATIONS_MAX)
            .map(str::to_owned)
            .collect()
    }

    /// As [`Self::unresolvable`], with what tasks have that have not completed.
    pub(super) fn unresolved_yet(&self, i: u32) -> Vec<String> {
        let needs = self.wires.get(&i).into_iter().flat_map(|it| &it.needs);
        let missing = needs.filter(|(need, state)| {
            let source = need.source().and_then(|id| self.live(id));
            let completed = |source| self.at(source).status == Status::Completed;
            *state != Wired::Open || !source.is_some_and(completed)
        });
        let texts = missing.map(|(need, _)| need.text().to_owned());
        texts.take(limits::VIOLATIONS_MAX).collect()
    }

    /// A task that waits for a person, of those that a task depends on: first of those whose results it cannot do
    /// without. Inputs that it can do without are not known here, so each dependency counts. Cost: O(wired inputs +
    /// dependencies).
    pub(super) fn suspended_source(&self, i: u32) -> Option<u32> {
        let needs = self.wires.get(&i).into_iter().flat_map(|it| &it.needs);
        let sources = needs.filter_map(|(need, _)| self.live(need.source()?));
        let dependencies = self.at(i).dependencies.iter().map(|edge| edge.task);
        let mut all = sources.chain(dependencies);
        all.find(|source| self.open_question(*source).is_some())
    }

    /// Takes the inputs of a task that was created or is specified anew. Not while it is linked.
    pub(super) fn wire(&mut self, i: u32, wiring: &Wiring, is_dependency: impl Fn(TaskId) -> bool) {
        let known = self.unwire(i);
        if let Some(wires) = Wires::of(wiring, is_dependency) {
            let wires = match &known {
                Some(known) => wires.knowing(known),
                None => wires,
            };
            self.wires_bytes += wires.weight_bytes();
            self.wires.insert(i, wires);
        }
        self.refresh_lacking(i);
    }

    /// Takes what was looked for in results that are there already, and not found. Not while the task is linked.
    pub(super) fn wire_absent(&mut self, i: u32, absent: &[String]) {
        if absent.is_empty() {
            return;
        }
        let absent: HashSet<&str> = absent.iter().map(String::as_str).collect();
        if let Some(wires) = self.wires.get_mut(&i) {
            for (need, state) in &mut wires.needs {
                if *state == Wired::Open && absent.contains(need.text()) {
                    *state = Wired::Absent;
                }
            }
        }
        self.refresh_lacking(i);
    }

    /// Whether all completed tasks that a wiring needs something of are among those that were looked at.
    pub(super) fn has_looked(&self, wiring: &Wiring, at: &[TaskId]) -> bool {
        wiring.needs().all(|need| {
            let source = need.source();
            source.is_none_or(|id| {
                let completed = |i| self.at(i).status == Status::Completed;
                !self.live(id).is_some_and(completed) || at.contains(&id)
            })
        })
    }

    /// Forgets the inputs of a task, and says what was known of them.
    pub(super) fn unwire(&mut self, i: u32) -> Option<Wires> {
        let wires = self.wires.remove(&i)?;
        self.wires_bytes -= wires.weight_bytes();
        Some(wires)
    }

    /// Takes the new dependencies of a task. Not while it is linked.
    pub(super) fn wire_to(&mut self, i: u32, dependencies: &[Dependency]) {
        let Some(wires) = self.wires.get_mut(&i) else {
            return;
        };
        for (need, state) in &mut wires.needs {
            let source = need.source();
            let is_dependency = source.is_some_and(|id| dependencies.iter().any(|d| d.id == id));
            *state = match (is_dependency, *state) {
                (true, Wired::Foreign) => Wired::Open,
                (true, known) => known,
                (false, _) => Wired::Foreign,
            };
        }
        self.refresh_lacking(i);
    }

    /// Looks in a result for what other tasks need of it. Cost: O(dependents), and O(bytes) when one of them is
    /// wired.
    pub(super) fn look_for_needs(&mut self, i: u32, result: &Payload) {
        if self.wires.is_empty() {
            return;
        }
        let dependents = self.at(i).dependents.iter().map(|edge| edge.task);
        let wired: Vec<u32> = dependents.filter(|d| self.wires.contains_key(d)).collect();
        if wired.is_empty() {
            return;
        }
        let (id, result) = (self.at(i).id, result.to_map());
        for dependent in wired {
            let wires = self.wires.get_mut(&dependent).expect("it was found");
            for (need, state) in &mut wires.needs {
                if need.source() == Some(id) {
                    *state = match need.is_in(&result) {
                        true => Wired::Open,
                        false => Wired::Absent,
                    };
                }
            }
            self.unlink(dependent);
            self.refresh_lacking(dependent);
            self.link(dependent);
        }
    }

    /// What the scheduler looks at. Not while the task is linked.
    pub(super) fn refresh_lacking(&mut self, i: u32) {
        let wires = self.wires.get(&i);
        self.at_mut(i).lacking = wires.is_some_and(|wires| wires.missing().next().is_some());
    }
}
