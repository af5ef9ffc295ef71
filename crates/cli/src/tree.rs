//! Writes a task tree as lines of text.

use super::output::{Style, Text, member, style};
use super::span::span;
use super::when::time;
use serde_json::Value;
use std::collections::HashMap;
use taskledger_domain::Timestamp;

/// Signs of a progress bar.
const BAR_SIGNS: u8 = 8;
/// Tasks that are named when one waits for several.
const NAMED_MAX: usize = 3;

/// One task of a tree, in the order in which people read it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Line {
    /// The branches before the name.
    pub(super) branches: String,
    /// Whole, as other commands take it.
    pub(super) id: String,
    pub(super) name: String,
    /// Where it stands.
    pub(super) status: String,
    /// How far it is, in percent, while it is in progress.
    pub(super) percent: Option<u8>,
    /// When its status changed last, if that is known.
    pub(super) changed_at: Option<Timestamp>,
    /// Why it failed or was cancelled.
    pub(super) error: String,
    /// Which attempt it is; told from the second on.
    pub(super) attempt: u64,
    /// How long it has taken, or takes so far, in milliseconds.
    pub(super) took: Option<u64>,
    /// What else is to be said about it.
    pub(super) note: String,
    /// It runs nothing itself, so it does not count as a task of a run.
    pub(super) is_group: bool,
}

impl Line {
    /// The line as it is shown. Long errors are cut, so that a line stays a line.
    pub(super) fn text(&self) -> Text {
        const ERROR_CHARS_MAX: usize = 120;
        let style = style(&self.status);
        let mut text = Text::of(Style::Dim, self.branches.as_str())
            .with(style, mark(&self.status).to_string())
            .with(Style::Plain, format!(" {}  ", self.name))
            .with(style, self.status.as_str());
        if let Some(percent) = self.percent {
            text.push(Style::Busy, format!(" {}", bar(percent)));
            text.push(Style::Plain, format!(" {percent} %"));
        }
        if !self.error.is_empty() {
            let mut error = String::from(": ");
            error.extend(self.error.chars().take(ERROR_CHARS_MAX));
            if self.error.chars().nth(ERROR_CHARS_MAX).is_some() {
                error.push('…');
            }
            text.push(
                if self.status == "failed" {
                    Style::Bad
                } else {
                    Style::Plain
                },
                error,
            );
        }
        if let Some(took) = self.took {
            text.push(Style::Dim, format!("  {}", span(took)));
        }
        if self.attempt > 1 {
            text.push(Style::Dim, format!("  attempt {}", self.attempt));
        }
        if !self.note.is_empty() {
            text.push(Style::Warn, format!("  {}", self.note));
        }
        text.hanging(self.hang())
    }

    /// What stands before the rest of a long line: the branches go on.
    fn hang(&self) -> String {
        let branches = self.branches.replace("├─", "│ ").replace("└─", "  ");
        format!("{branches}  ")
    }

    /// The same in a list of changes, where branches make no sense.
    pub(super) fn change(&self) -> Text {
        let plain = Self {
            branches: String::new(),
            ..self.clone()
        };
        plain.text().with(Style::Dim, format!("  ({})", plain.id))
    }
}

/// What is said of a pending task whose run has ended without it.
pub(super) const SKIPPED: &str = "skipped";

/// The status of a task as people read it.
pub(super) fn shown_status(task: &Value) -> String {
    match task.get("skipped") == Some(&Value::Bool(true)) {
        true => SKIPPED.to_owned(),
        false => member(task, "status"),
    }
}

/// How far something is, drawn.
fn bar(percent: u8) -> String {
    let full = u16::from(percent.min(100)) * u16::from(BAR_SIGNS) / 100;
    (0..u16::from(BAR_SIGNS))
        .map(|n| if n < full { '▰' } else { '▱' })
        .collect()
}

/// Statuses in the order in which tasks are counted, and their words there.
pub(super) const WORDS: [(&str, &str); 6] = [
    ("completed", "completed"),
    ("in_progress", "running"),
    ("pending", "pending"),
    ("failed", "failed"),
    ("cancelled", "cancelled"),
    (SKIPPED, SKIPPED),
];

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

/// The same with how long each has taken, and what it waits for. Cost: O(tasks x depth + dependencies).
pub(super) fn lines_at(tree: &Value, now: Timestamp) -> Vec<Line> {
    let mut tasks: HashMap<String, &Value> = HashMap::new();
    let mut waiting = vec![tree];
    while let Some(node) = waiting.pop() {
        if let Some(task) = node.get("task") {
            tasks.insert(member(task, "id"), task);
        }
        let children = node.get("children").and_then(Value::as_array);
        waiting.extend(children.into_iter().flatten());
    }
    let mut lines = lines(tree);
    for line in &mut lines {
        if let Some(task) = tasks.get(&line.id) {
            line.took = took(task, now);
            line.note = note(task, &tasks, now);
        }
    }
    lines
}

/// How long a task has taken, or takes so far, in milliseconds.
pub(super) fn took(task: &Value, now: Timestamp) -> Option<u64> {
    let started = time(task, "started_at")?;
    let ended = time(task, "completed_at").unwrap_or(now);
    Some(ended.ms_since(started))
}

/// What a task that does not run waits for.
pub(super) fn note(task: &Value, tasks: &HashMap<String, &Value>, now: Timestamp) -> String {
    if task.get("suspension").is_some_and(Value::is_object) {
        return "waits for a person".to_owned();
    }
    let is_skipped = task.get("skipped") == Some(&Value::Bool(true));
    if member(task, "status") != "pending" || is_skipped {
        return String::new();
    }
    let own = time(task, "next_attempt_at");
    if let Some(at) = own
        && (at > now || held(task, tasks, now).is_none())
    {
        let is_first = task.get("attempt").and_then(Value::as_u64).unwrap_or(0) == 0;
        let (word, ready) = match is_first {
            true => ("starts", "ready to start"),
            false => ("retry", "ready to retry"),
        };
        return match at > now {
            true => format!("{word} in {}", span(at.ms_since(now))),
            // It waits for a slot, or for a worker.
            false => ready.to_owned(),
        };
    }
    let dependencies = task.get("dependencies").and_then(Value::as_array);
    let (mut open, mut lost) = (Vec::new(), Vec::new());
    for dependency in dependencies.into_iter().flatten() {
        let Some(on) = tasks.get(&member(dependency, "id")) else {
            continue;
        };
        let name = format!("`{}`", member(on, "name"));
        let is_required = dependency.get("required") != Some(&Value::Bool(false))
            && member(dependency, "when") != "always";
        match member(on, "status").as_str() {
            "pending" | "in_progress" => open.push(name),
            "failed" | "cancelled" if is_required => lost.push(name),
            _ => {}
        }
    }
    let (word, mut names) = match lost.is_empty() {
        true => ("waits for", open),
        false => ("blocked by", lost),
    };
    if names.is_empty() {
        return held(task, tasks, now).unwrap_or_default();
    }
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    let names = names.join(", ");
    match more {
        0 => format!("{word} {names}"),
        more => format!("{word} {names} and {more} more"),
    }
}

/// Until when a task is held back by its own `start_at`, or by a group around it that starts later, if that is longer.
/// Cost: O(depth).
fn held(task: &Value, tasks: &HashMap<String, &Value>, now: Timestamp) -> Option<String> {
    let parent = |task: &&Value| tasks.get(&member(task, "parent_id")).copied();
    let around = std::iter::successors(parent(&task), parent).take(tasks.len());
    let own = time(task, "start_at").map(|at| (at, None));
    let of_groups = around.flat_map(|group| {
        let is_pending = member(group, "status") == "pending";
        let delayed = time(group, "next_attempt_at").filter(|_| is_pending);
        let both = [time(group, "start_at"), delayed].into_iter().flatten();
        both.map(move |at| (at, Some(group)))
    });
    let later = own.into_iter().chain(of_groups).filter(|(at, _)| *at > now);
    // Of equal times the nearest counts.
    let (at, of) = later.reduce(|longest, next| if next.0 > longest.0 { next } else { longest })?;
    let because = of.map_or_else(String::new, |group| {
        format!(", because of `{}`", member(group, "name"))
    });
    Some(not_before(at, now, &because))
}

/// The words for a time that a task waits for.
pub(super) fn not_before(at: Timestamp, now: Timestamp, because: &str) -> String {
    format!("not before {at} (in {}){because}", span(at.ms_since(now)))
}

/// How far a task is, in percent, while it is in progress.
pub(super) fn percent(task: &Value, progress: f64) -> Option<u8> {
    let is_running = member(task, "status") == "in_progress";
    is_running.then(|| (progress.clamp(0.0, 1.0) * 100.0) as u8)
}

fn line(task: &Value, branches: String) -> Line {
    let progress = task.get("progress").and_then(Value::as_f64);
    let percent = progress.and_then(|progress| percent(task, progress));
    Line {
        branches,
        id: member(task, "id"),
        name: member(task, "name"),
        status: shown_status(task),
        percent,
        changed_at: time(task, "completed_at").or_else(|| time(task, "started_at")),
        error: member(task, "error"),
        attempt: task.get("attempt").and_then(Value::as_u64).unwrap_or(0),
        is_group: task.get("schemas").is_none_or(Value::is_null),
        ..Line::default()
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
        let text: Vec<String> = lines(&tree)
            .iter()
            .map(|line| line.text().letters())
            .collect();
        assert_eq!(
            text,
            [
                "▸ root  in_progress ▰▰▰▱▱▱▱▱ 42 %",
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
        let text = lines(&json!({"task": left}))[0].text().letters();
        assert_eq!(text, "○ left  skipped");
    }

    #[test]
    fn errors_are_shown_and_cut() {
        let tree =
            json!({"task": {"id": "x", "name": "x", "status": "failed", "error": "e".repeat(500)}});
        let text = lines(&tree)[0].text().letters();
        assert!(text.starts_with("✗ x  failed: eee") && text.ends_with('…'));
        assert!(text.chars().count() < 150);
    }

    #[test]
    fn what_tasks_take_and_wait_for_is_told() {
        let now = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
        let dependency = |id: &str| json!([{"id": id, "required": true}]);
        let mut a = task("a", "failed");
        a["started_at"] = json!("2026-01-31T11:59:50Z");
        a["completed_at"] = json!("2026-01-31T11:59:52.500Z");
        a["attempt"] = 3.into();
        let mut b = task("b", "in_progress");
        b["started_at"] = json!("2026-01-31T11:58:00Z");
        let mut c = task("c", "pending");
        c["next_attempt_at"] = json!("2026-01-31T12:00:02Z");
        c["attempt"] = json!(1);
        let (mut g, mut h) = (task("g", "pending"), task("h", "pending"));
        g["next_attempt_at"] = json!("2026-01-31T14:00:00Z");
        h["start_at"] = json!("2026-01-31T12:00:30Z");
        // Its time has come, and nobody has started it.
        let mut i = task("i", "pending");
        i["attempt"] = json!(1);
        i["next_attempt_at"] = json!("2026-01-31T11:59:59Z");
        let (mut d, mut e) = (task("d", "pending"), task("e", "pending"));
        d["dependencies"] = dependency("b");
        e["dependencies"] = json!([{"id": "a"}, {"id": "b"}]);
        let mut f = task("f", "in_progress");
        f["suspension"] = json!({"question": "?"});
        let children = [a, b, c, d, e, f, g, h, i].map(|task| json!({ "task": task }));
        let tree = json!({"task": task("root", "pending"), "children": children});
        let shown: Vec<String> = lines_at(&tree, now)[1..]
            .iter()
            .map(|line| line.text().letters().split_off("├─ ".len()))
            .collect();
        assert_eq!(
            shown,
            [
                "✗ a  failed  2.5 s  attempt 3",
                "▸ b  in_progress ▰▰▰▱▱▱▱▱ 42 %  2 min 0 s",
                "· c  pending  retry in 2.0 s",
                "· d  pending  waits for `b`",
                "· e  pending  blocked by `a`",
                "▸ f  in_progress ▰▰▰▱▱▱▱▱ 42 %  waits for a person",
                "· g  pending  starts in 2 h 0 min",
                "· h  pending  not before 2026-01-31T12:00:30.000000Z (in 30 s)",
                "· i  pending  ready to retry",
            ]
        );
    }

    #[test]
    fn a_task_below_a_group_that_starts_later_says_so() {
        let now = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
        let below = |name: &str, parent: &str, more: Value| {
            let mut task = task(name, "pending");
            task["parent_id"] = json!(parent);
            let more = more.as_object().unwrap().clone();
            task.as_object_mut().unwrap().extend(more);
            task
        };
        let mut root = task("root", "pending");
        root["start_at"] = json!("2026-01-31T12:00:30Z");
        let delayed = json!({"next_attempt_at": "2026-01-31T12:01:00Z"});
        let own = json!({"start_at": "2026-01-31T12:05:00Z"});
        let passed = json!({"next_attempt_at": "2026-01-31T11:59:59Z", "attempt": 0});
        let waits = json!({"dependencies": [{"id": "a"}]});
        let tree = json!({"task": root, "children": [
            {"task": below("a", "root", json!({}))},
            {"task": below("g", "root", delayed), "children": [
                {"task": below("b", "g", json!({}))},
                {"task": below("c", "g", own)},
                {"task": below("d", "g", passed)},
                {"task": below("e", "g", waits)},
            ]},
        ]});
        let lines = lines_at(&tree, now);
        let notes: Vec<&str> = lines.iter().map(|line| line.note.as_str()).collect();
        assert_eq!(
            notes,
            [
                "not before 2026-01-31T12:00:30.000000Z (in 30 s)",
                "not before 2026-01-31T12:00:30.000000Z (in 30 s), because of `root`",
                "starts in 1 min 0 s",
                "not before 2026-01-31T12:01:00.000000Z (in 1 min 0 s), because of `g`",
                "not before 2026-01-31T12:05:00.000000Z (in 5 min 0 s)",
                "not before 2026-01-31T12:01:00.000000Z (in 1 min 0 s), because of `g`",
                "waits for `a`",
            ]
        );
        // Once they have begun, they hold nothing back.
        let later = Timestamp::parse("2026-01-31T12:02:00Z").unwrap();
        assert_eq!(lines_at(&tree, later)[3].note, "");
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
