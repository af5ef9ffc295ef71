//! Section "Groups".

use super::{ANY_TEXT, Cancelled, Completed, Failed, InProgress, Oracle, Pending, Symbol};
use serde_json::json;

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
            let ended = |s: &Symbol| self.task(s).status.is_terminal();
            if self.awaited(run, &group).iter().all(ended) {
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
        let judged = self.judged(group);
        let awaited = self.awaited(run, group);
        let mut awaited = awaited.iter().chain(&judged);
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

    /// What a group counts: the descendants that run something, covered or not.
    fn judged(&self, group: &str) -> Vec<Symbol> {
        let mut below = self.subtree(group);
        below.retain(|s| s != group && !self.task(s).is_group());
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

    /// The covered descendants of a group, for all of which it waits.
    fn awaited(&self, run: usize, group: &str) -> Vec<Symbol> {
        let covered = &self.runs[run].covered;
        let mut below = self.subtree(group);
        below.retain(|s| s != group && covered.contains(s));
        below
    }
}
