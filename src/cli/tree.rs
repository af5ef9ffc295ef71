//! A task tree as lines of text.

use super::output::member;
use serde_json::Value;

/// One task of a tree, in the order in which people read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// The branches before the name.
    pub(super) branches: String,
    /// Whole, as other commands take it.
    pub(super) id: String,
    /// Its name.
    pub(super) name: String,
    /// Where it stands.
    pub(super) status: String,
    /// How far it is, in percent, while it is in progress.
    pub(super) percent: Option<u8>,
    /// Why it failed or was cancelled.
    pub(super) error: String,
    /// What else is to be said about it.
    pub(super) note: String,
}

impl Line {
    /// The line as it is shown. Long errors are cut, so that a line stays a line.
    pub(super) fn text(&self) -> String {
        const ERROR_CHARS_MAX: usize = 120;
        let mark = mark(&self.status);
        let mut text = format!("{}{mark} {}  {}", self.branches, self.name, self.status);
        if let Some(percent) = self.percent {
            text.push_str(&format!(" {percent} %"));
        }
        if !self.error.is_empty() {
            text.push_str(": ");
            text.extend(self.error.chars().take(ERROR_CHARS_MAX));
            if self.error.chars().nth(ERROR_CHARS_MAX).is_some() {
                text.push('…');
            }
        }
        if !self.note.is_empty() {
            text.push_str("  ");
            text.push_str(&self.note);
        }
        text
    }

    /// The same in a list of changes, where branches make no sense.
    pub(super) fn change(&self) -> String {
        let plain = Self {
            branches: String::new(),
            ..self.clone()
        };
        format!("{}  ({})", plain.text(), self.id)
    }
}

/// What is said of a pending task whose run has ended without it.
const SKIPPED: &str = "skipped";

/// One sign for each status, so that a tree is read at a glance.
pub(super) fn mark(status: &str) -> char {
    match status {
        "pending" => '·',
        SKIPPED => '○',
        "in_progress" => '▸',
        "completed" => '✓',
        "failed" => '✗',
        "cancelled" => '–',
        _ => '?',
    }
}

/// The lines of `{task, children}`, parents before children. Cost: O(tasks x depth); no recursion.
pub(super) fn lines(tree: &Value) -> Vec<Line> {
    struct Waiting<'a> {
        node: &'a Value,
        own: String,
        below: String,
    }
    let mut lines = Vec::new();
    let mut waiting = vec![Waiting {
        node: tree,
        own: String::new(),
        below: String::new(),
    }];
    while let Some(Waiting { node, own, below }) = waiting.pop() {
        if let Some(task) = node.get("task") {
            lines.push(line(task, own));
        }
        let children = node.get("children").and_then(Value::as_array);
        let children = children.map_or(&[][..], Vec::as_slice);
        // The last child first, because the stack gives back the first.
        for (from_end, child) in children.iter().rev().enumerate() {
            let (own, more) = if from_end == 0 {
                ("└─ ", "   ")
            } else {
                ("├─ ", "│  ")
            };
            waiting.push(Waiting {
                node: child,
                own: format!("{below}{own}"),
                below: format!("{below}{more}"),
            });
        }
    }
    lines
}

fn line(task: &Value, branches: String) -> Line {
    let status = member(task, "status");
    let percent = task
        .get("progress")
        .and_then(Value::as_f64)
        .filter(|_| status == "in_progress")
        .map(|progress| (progress.clamp(0.0, 1.0) * 100.0) as u8);
    Line {
        branches,
        id: member(task, "id"),
        name: member(task, "name"),
        status: if task.get("skipped") == Some(&Value::Bool(true)) {
            SKIPPED.to_owned()
        } else {
            status
        },
        percent,
        error: member(task, "error"),
        note: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn task(name: &str, status: &str) -> Value {
        json!({"id": name, "name": name, "status": status, "progress": 0.425, "error": null})
    }

    #[test]
    fn a_tree_is_drawn_parents_first() {
        let tree = json!({"task": task("root", "in_progress"), "children": [
            {"task": task("a", "completed"), "children": [
                {"task": task("a1", "completed"), "children": []}]},
            {"task": task("b", "pending"), "children": [
                {"task": task("b1", "failed")}]},
        ]});
        let text: Vec<String> = lines(&tree).iter().map(Line::text).collect();
        assert_eq!(
            text,
            [
                "▸ root  in_progress 42 %",
                "├─ ✓ a  completed",
                "│  └─ ✓ a1  completed",
                "└─ · b  pending",
                "   └─ ✗ b1  failed",
            ]
        );
    }

    #[test]
    fn what_a_run_has_left_pending_is_skipped() {
        let mut left = task("left", "pending");
        left["skipped"] = json!(true);
        let text = lines(&json!({"task": left}))[0].text();
        assert_eq!(text, "○ left  skipped");
    }

    #[test]
    fn errors_are_shown_and_cut() {
        let tree =
            json!({"task": {"id": "x", "name": "x", "status": "failed", "error": "e".repeat(500)}});
        let text = lines(&tree)[0].text();
        assert!(text.starts_with("✗ x  failed: eee") && text.ends_with('…'));
        assert!(text.chars().count() < 150);
    }

    #[test]
    fn a_deep_tree_costs_no_stack() {
        let mut tree = json!({"task": task("leaf", "pending"), "children": []});
        for _ in 0..60 {
            tree = json!({"task": task("n", "pending"), "children": [tree]});
        }
        assert_eq!(lines(&tree).len(), 61);
    }

    #[test]
    fn an_answer_of_another_shape_has_no_lines() {
        assert_eq!(lines(&json!(null)), []);
        assert_eq!(lines(&json!({"children": 7})), []);
    }
}
