//! Tasks that a schedule creates directly: what each run changes in them, and which members they may not have.

use serde_json::{Value, json};
use taskledger_beside::Owner;
use taskledger_domain::limits::VIOLATIONS_MAX;
use taskledger_domain::{PathSegment, Violation};
use uuid::Uuid;

/// What tasks that a schedule starts are told of it, where their inputs ask for it.
const PLACEHOLDERS: [&str; 3] = ["$schedule.name", "$schedule.id", "$schedule.scheduled_at"];
/// All placeholders begin with this.
const PREFIX: &str = "$schedule.";

/// Gives the root of a run its id, if it is known, its owner and the mark of its schedule.
pub(super) fn rooted(
    tasks: &mut [Value],
    flow: Option<Uuid>,
    owner: Option<&str>,
    of: &ScheduledTime,
) {
    let is_root = |task: &&mut Value| task.get("parent_id").is_none_or(Value::is_null);
    let Some(root) = tasks.iter_mut().find(is_root) else {
        return;
    };
    let alias = root.get("id").and_then(Value::as_str).map(str::to_owned);
    let id = flow.map(|flow| Value::from(flow.to_string()));
    if let Some(id) = &id {
        root["id"] = id.clone();
    }
    if let Some(owner) = owner {
        root["user_id"] = Value::from(owner);
    }
    // Methods of the server take only parameters that they know.
    if root.pointer("/schemas/method").is_none_or(Value::is_null) {
        if !root["params"].is_object() {
            root["params"] = json!({});
        }
        root["params"]["schedule"] = json!({"id": of.id, "name": of.name, "scheduled_at": of.at});
    }
    if let (Some(alias), Some(id)) = (alias, id) {
        tasks.iter_mut().for_each(|task| renamed(task, &alias, &id));
    }
}

/// Has everything that names a task by its alias name it by its id.
fn renamed(task: &mut Value, alias: &str, id: &Value) {
    let names = |value: &Value| value.as_str() == Some(alias);
    if task.get("parent_id").is_some_and(names) {
        task["parent_id"] = id.clone();
    }
    for on in task
        .get_mut("dependencies")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if names(on) {
            *on = id.clone();
        } else if on.get("id").is_some_and(names) {
            on["id"] = id.clone();
        }
    }
    let children = task.get_mut("children").and_then(Value::as_array_mut);
    children
        .into_iter()
        .flatten()
        .for_each(|child| renamed(child, alias, id));
}

/// What a run is told of its schedule.
pub(super) struct ScheduledTime {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) at: String,
}

impl ScheduledTime {
    /// Puts it where the inputs of a task and of those below it ask for it.
    pub(super) fn fill_in(&self, task: &mut Value) {
        if let Some(inputs) = task.get_mut("inputs") {
            self.replaced(inputs);
        }
        let children = task.get_mut("children").and_then(Value::as_array_mut);
        children
            .into_iter()
            .flatten()
            .for_each(|child| self.fill_in(child));
    }

    fn replaced(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                let [name, id, at] = PLACEHOLDERS;
                let put = match text.as_str() {
                    it if it == name => &self.name,
                    it if it == id => &self.id,
                    it if it == at => &self.at,
                    _ => return,
                };
                put.clone_into(text);
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.replaced(item)),
            Value::Object(members) => members.values_mut().for_each(|it| self.replaced(it)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// What tasks of a schedule may not say, as they are started again and again, for its owner.
pub(super) fn unfit_tasks(owner: &Owner, tasks: &Value) -> Vec<Violation> {
    let mut faults = Vec::new();
    let items = tasks.as_array().map(Vec::as_slice).unwrap_or_default();
    for (i, task) in items.iter().enumerate() {
        unfit_task(
            owner,
            task,
            &[PathSegment::from("tasks"), i.into()],
            &mut faults,
        );
    }
    faults
}

fn unfit_task(owner: &Owner, task: &Value, path: &[PathSegment], faults: &mut Vec<Violation>) {
    if faults.len() >= VIOLATIONS_MAX {
        return;
    }
    let at = |member: &'static str| {
        path.iter()
            .cloned()
            .chain([member.into()])
            .collect::<Vec<_>>()
    };
    if let Some(id) = task.get("id").filter(|id| id.as_str().is_some_and(is_uuid)) {
        let expected = "an alias, or nothing: each run creates new tasks, with new ids";
        let reason = "a UUID could be taken once only";
        faults.push(Violation::new(&at("id"), reason, expected, id));
    }
    if let (Some(owner), Some(user)) = (&owner.user, task.get("user_id").filter(|it| !it.is_null()))
        && user.as_str() != Some(&**owner)
    {
        let expected = "nothing, or the owner of the schedule";
        let reason = "not the owner of the schedule";
        faults.push(Violation::new(&at("user_id"), reason, expected, user));
    }
    if let Some(inputs) = task.get("inputs") {
        unfit_inputs(inputs, &at("inputs"), faults);
    }
    let children = task.get("children").and_then(Value::as_array);
    for (i, child) in children.into_iter().flatten().enumerate() {
        let below: Vec<_> = at("children").into_iter().chain([i.into()]).collect();
        unfit_task(owner, child, &below, faults);
    }
}

/// Texts that look like what is replaced, and are not.
fn unfit_inputs(value: &Value, path: &[PathSegment], faults: &mut Vec<Violation>) {
    let at = |segment: PathSegment| path.iter().cloned().chain([segment]).collect::<Vec<_>>();
    match value {
        Value::String(text) => {
            let is_known = PLACEHOLDERS.contains(&text.as_str());
            if text.starts_with(PREFIX) && !is_known && faults.len() < VIOLATIONS_MAX {
                let expected = format!("one of {}", PLACEHOLDERS.join(", "));
                faults.push(Violation::new(
                    path,
                    "not replaced by anything",
                    expected,
                    value,
                ));
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                unfit_inputs(item, &at(i.into()), faults);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                unfit_inputs(member, &at(name.as_str().into()), faults);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_uuid(text: &str) -> bool {
    Uuid::try_parse(text).is_ok()
}
