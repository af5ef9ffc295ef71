//! Section "Groups".

use super::{ANY_TEXT, Cancelled, Completed, Failed, InProgress, Oracle, Pending, Symbol, When};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

type Waits = BTreeMap<Symbol, BTreeSet<Symbol>>;

impl Oracle {
    /// Groups whose own dependencies are satisfied are in progress.
    pub(super) fn open_groups(&mut self, run: usize) {
        for symbol in self.covered(run) {
            let task = self.task(&symbol);
            let waits = task.is_group() && task.status == Pending && self.is_satisfied(&symbol);
            if waits && self.starts_later(&symbol).is_none() {
                self.begin(&symbol);
            }
        }
    }

    /// Ends open groups for which everything that they wait for has ended.
    pub(super) fn close_groups(&mut self, run: usize) {
        for group in self.open(run) {
            let waits = self.group_waits(run);
            if waits[&group]
                .iter()
                .all(|s| self.task(s).status.is_terminal())
            {
                self.decide_group(run, &group);
                // Others may follow from this one.
                return;
            }
        }
    }

    /// Ends the deepest open group of a run in which nothing goes on. False when there is none.
    pub(super) fn decide_open_group(&mut self, run: usize) -> bool {
        let mut open = self.open(run);
        open.sort_by_key(|s| std::cmp::Reverse(self.ancestors(s).len()));
        let Some(group) = open.first() else {
            return false;
        };
        self.decide_group(run, group);
        true
    }

    fn open(&self, run: usize) -> Vec<Symbol> {
        let mut found = self.covered(run);
        found.retain(|s| self.task(s).is_group() && self.task(s).status == InProgress);
        found
    }

    fn decide_group(&mut self, run: usize, group: &str) {
        let waits = self.group_waits(run);
        let judged = self.judged(run, group, &waits[group]);
        let mut awaited = waits[group].iter().chain(&judged);
        let blocked = awaited.any(|s| !self.task(s).status.is_terminal());
        let harmed = self
            .children(group)
            .iter()
            .any(|s| matches!(self.task(s).status, Failed | Cancelled) && !self.is_tolerated(s));
        if blocked || harmed {
            self.fail_for_good(group, ANY_TEXT);
            return;
        }
        let count = |status| {
            let found = judged.iter().filter(|s| self.task(s).status == status);
            found.count()
        };
        let result = if self.children(group).is_empty() {
            json!({})
        } else {
            json!({"completed": count(Completed), "failed": count(Failed), "cancelled": count(Cancelled)})
        };
        self.complete(group, &result);
    }

    /// What a group counts: the descendants that run something, those that wait for the group left out.
    /// A retry leaves out of its run what had completed, so the run does not tell which these are.
    fn judged(&self, run: usize, group: &str, waits: &BTreeSet<Symbol>) -> Vec<Symbol> {
        let depends = |s: &str| self.task(s).dependencies.clone();
        let counts = |s: &Symbol| {
            if self.runs[run].covered.contains(s) {
                return waits.contains(s);
            }
            self.task(s).status.is_terminal() || !super::methods::reaches(s, group, &depends)
        };
        let mut below = self.subtree(group);
        below.retain(|s| s != group && !self.task(s).is_group() && counts(s));
        below
    }

    /// The mean of the children's progress.
    pub(super) fn group_progress(&self, group: &str) -> f64 {
        let children = self.children(group);
        let sum: f64 = children.iter().map(|s| self.shown_progress(s)).sum();
        if children.is_empty() {
            0.0
        } else {
            sum / children.len() as f64
        }
    }

    /// Progress as reads show it.
    pub(super) fn shown_progress(&self, symbol: &str) -> f64 {
        let task = self.task(symbol);
        if task.is_group() && task.status == InProgress {
            self.group_progress(symbol)
        } else {
            task.progress
        }
    }

    /// For each covered group the covered descendants that it waits for: all except those that
    /// wait, even indirectly, for it. Outer groups first: once they have let go of descendants,
    /// inner groups may wait for them.
    fn group_waits(&self, run: usize) -> Waits {
        let covered = &self.runs[run].covered;
        let mut groups = self.covered(run);
        groups.retain(|s| self.task(s).is_group());
        groups.sort_by_key(|s| self.ancestors(s).len());
        let mut waits = Waits::new();
        for group in &groups {
            let mut below: BTreeSet<Symbol> = self.subtree(group).into_iter().collect();
            below.remove(group);
            below.retain(|s| covered.contains(s));
            waits.insert(group.clone(), below);
        }
        for group in &groups {
            let kept = waits[group]
                .iter()
                .filter(|s| !self.waits_for(s, group, &waits));
            let kept = kept.cloned().collect();
            waits.insert(group.clone(), kept);
        }
        waits
    }

    fn waits_for(&self, from: &str, to: &str, waits: &Waits) -> bool {
        let edges = |s: &str| {
            let mut found = self.task(s).dependencies.clone();
            let below = waits.get(s).into_iter().flatten();
            found.extend(below.map(|s| (s.clone(), When::Completed)));
            found
        };
        super::methods::reaches(from, to, &edges)
    }
}
