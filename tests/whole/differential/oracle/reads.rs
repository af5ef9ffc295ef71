//! The reading methods: a task as the data model shows it, trees, and lists with their filters.

use super::{Answer, Cancelled, Failed, Oracle, Pending, RunState, Symbol, Task, When, ids, time};
use serde_json::{Map, Value, json};
use taskledger_domain::Timestamp;

/// Tasks in a page unless the call says otherwise.
const LIMIT: usize = 100;

impl Oracle {
    pub(super) fn get(&self, map: &Map<String, Value>) -> Answer {
        let id = self.stored(&map["task_id"])?;
        Ok(self.with_run(&id))
    }

    pub(super) fn tree(&self, map: &Map<String, Value>) -> Answer {
        let id = self.stored(&map["task_id"])?;
        let mut tree = self.shown_tree(&id);
        tree["task"] = self.with_run(&id);
        Ok(tree)
    }

    pub(super) fn children_of(&self, map: &Map<String, Value>) -> Answer {
        let id = self.stored(&map["parent_id"])?;
        let children: Vec<_> = self.children(&id).iter().map(|s| self.shown(s)).collect();
        Ok(json!({"children": children}))
    }

    /// `{task, children}`, all the way down.
    pub(crate) fn shown_tree(&self, symbol: &str) -> Value {
        let children: Vec<_> = self
            .children(symbol)
            .iter()
            .map(|s| self.shown_tree(s))
            .collect();
        json!({"task": self.shown(symbol), "children": children})
    }

    /// The complete object of a task.
    pub(crate) fn shown(&self, symbol: &str) -> Value {
        let task = self.task(symbol);
        let id = |s: &str| json!(format!("@{s}"));
        let at = |t: Option<i64>| t.map_or(Value::Null, time);
        let dependency = |(s, when): &(Symbol, When)| when.shown(id(s));
        let mut shown = json!({
            "id": id(symbol),
            "parent_id": task.parent.as_deref().map_or(Value::Null, id),
            "user_id": task.user,
            "name": task.name,
            "status": task.status.name(),
            "priority": task.priority,
            "inputs": task.inputs,
            "schemas": task.schemas,
            "params": task.params,
            "result": task.result,
            "error": task.error,
            "dependencies": task.dependencies.iter().map(dependency).collect::<Vec<_>>(),
            "progress": self.shown_progress(symbol),
            "created_at": time(task.created),
            "started_at": at(task.started),
            "updated_at": time(task.updated),
            "completed_at": at(task.completed),
            "root_task_id": id(&task.flow),
            "attempt": task.attempt,
        });
        if let Some(at) = task.start_at.as_str() {
            let at = Timestamp::parse(at).expect("it was checked");
            shown["start_at"] = time(at.0);
        }
        if let Some(next) = task.next_attempt {
            shown["next_attempt_at"] = time(next);
        }
        if let Some(question) = &task.question {
            shown["suspension"] = question.shown();
        }
        let blockers = self.blockers(task);
        if !blockers.is_empty() {
            shown["blocked_by"] = Value::Array(blockers);
        }
        let latest = self.runs.iter().rfind(|r| r.covered.contains(symbol));
        if task.status == Pending && latest.is_some_and(|r| r.state != RunState::Running) {
            shown["skipped"] = json!(true);
        }
        shown
    }

    /// `tasks.get` and `tasks.tree` of the root of a run show the run too, until a later run covers
    /// the task. The root of the flow shows the latest run that covers it.
    fn with_run(&self, symbol: &str) -> Value {
        let mut shown = self.shown(symbol);
        let latest = self.runs.iter().rposition(|r| r.covered.contains(symbol));
        let shows =
            |run: &usize| self.runs[*run].root == symbol || self.task(symbol).flow == symbol;
        if let Some(run) = latest.filter(shows) {
            shown["run"] = self.shown_run(run);
        }
        shown
    }

    fn blockers(&self, task: &Task) -> Vec<Value> {
        let mut found = Vec::new();
        for (dependency, when) in &task.dependencies {
            let status = self.task(dependency).status;
            if task.status == Pending
                && *when == When::Completed
                && matches!(status, Failed | Cancelled)
            {
                found.push(json!({"id": format!("@{dependency}"), "status": status.name()}));
            }
        }
        found
    }

    fn shown_run(&self, run: usize) -> Value {
        let state = match self.runs[run].state {
            RunState::Running => "running",
            RunState::Completed => "completed",
            RunState::Failed => "failed",
            RunState::Cancelled => "cancelled",
        };
        let counts = self.runs[run].counts.clone();
        let counts = counts.unwrap_or_else(|| self.counts(run));
        let mut shown =
            json!({"id": format!("@{}", self.runs[run].symbol), "state": state, "counts": counts});
        if self.runs[run].state != RunState::Running {
            shown["skipped"] = shown["counts"]["pending"].clone();
        }
        shown
    }

    pub(super) fn list(&self, map: &Map<String, Value>) -> Answer {
        let found = self.matching(map);
        let number = |name: &str| map.get(name).and_then(Value::as_f64).map(|n| n as usize);
        let limit = number("limit").unwrap_or(LIMIT);
        let offset = number("offset").unwrap_or(0);
        let page: Vec<_> = found
            .iter()
            .skip(offset)
            .take(limit)
            .map(|s| self.shown(s))
            .collect();
        let more = offset.saturating_add(page.len()) < found.len() && !page.is_empty();
        let mut answer =
            json!({"tasks": page, "total": found.len(), "limit": limit, "offset": offset});
        if more {
            answer["next_cursor"] = json!(super::ANY_TEXT);
        }
        Ok(answer)
    }

    /// All tasks of a list, in its order.
    pub(crate) fn matching(&self, map: &Map<String, Value>) -> Vec<Symbol> {
        let text = |name: &str| map.get(name).and_then(Value::as_str);
        let moment = |name: &str| {
            text(name)
                .and_then(|t| Timestamp::parse(t).ok())
                .map(|t| t.0)
        };
        let parent = text("parent_id").and_then(ids::symbol);
        let (after, before) = (moment("created_after"), moment("created_before"));
        let wanted = |s: &&Symbol| {
            let task = self.task(s);
            text("status").is_none_or(|v| v == task.status.name())
                && text("user_id").is_none_or(|v| Some(v) == task.user.as_deref())
                && text("name").is_none_or(|v| v == task.name)
                && parent
                    .as_ref()
                    .is_none_or(|p| task.parent.as_ref() == Some(p))
                && !(map.get("suspended") == Some(&Value::Bool(true)) && task.question.is_none())
                && !(map.get("root_only") == Some(&Value::Bool(true)) && task.parent.is_some())
                && map
                    .get("priority")
                    .and_then(Value::as_f64)
                    .is_none_or(|v| v == task.priority as f64)
                && after.is_none_or(|t| task.created >= t)
                && before.is_none_or(|t| task.created < t)
        };
        let mut found: Vec<Symbol> = self.order.iter().filter(wanted).cloned().collect();
        if text("order") != Some("asc") {
            found.reverse();
        }
        found
    }
}
