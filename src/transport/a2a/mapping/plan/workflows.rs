//! Saved workflows that messages run: by a part, or by their skill.

use super::source::{Form, Piece, Source};
use super::{Plan, Reading, faults, with_whole_numbers};
use crate::application::api::workflows::{Kept, RunWorkflow, UnfitWorkflow};
use serde_json::{Map, Value};
use std::sync::Arc;
use taskledger_a2a::{Content, Error, Part};
use taskledger_domain::PathSegment;
use taskledger_domain::Payload;
use taskledger_domain::task::Labels;

/// Members of data that name a saved workflow.
const WORKFLOW: [&str; 2] = ["workflow", "template"];

/// A run of the workflow that a part names, which has nothing else to run beside it.
pub(super) fn named(parts: &[Part], reading: Reading) -> Result<Option<Plan>, Error> {
    let objects = parts.iter().enumerate().filter_map(|(i, part)| {
        let Content::Data(Value::Object(data)) = &part.content else {
            return None;
        };
        Some((i, data))
    });
    let is_named = |data: &Map<String, Value>| {
        let has_tasks = ["tasks", "taskId", "task_id", "name"];
        WORKFLOW.iter().any(|it| data.contains_key(*it))
            && !has_tasks.iter().any(|it| data.contains_key(*it))
            && (reading == Reading::Generous || is_certain(data))
    };
    let mut found = objects.filter(|(_, data)| is_named(data));
    let Some((part, data)) = found.next() else {
        return Ok(None);
    };
    let at = |member: &str| format!("message.parts[{part}].data.{member}");
    if let Some((other, _)) = found.next() {
        let field = format!("message.parts[{other}].data");
        return Err(Error::invalid_member(field, "only one workflow can be run"));
    }
    let member = if data.contains_key(WORKFLOW[0]) {
        WORKFLOW[0]
    } else {
        WORKFLOW[1]
    };
    let name = data.get(member).and_then(Value::as_str);
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        let reason = "the name of a saved workflow is required";
        return Err(Error::invalid_member(at(member), reason));
    };
    let version = match data.get("version") {
        None | Some(Value::Null) => None,
        Some(given) => {
            let whole = with_whole_numbers(given.clone());
            let number = whole.as_u64().and_then(|it| u32::try_from(it).ok());
            let number = number.filter(|it| *it > 0).ok_or_else(|| {
                Error::invalid_member(at("version"), "the number of a version is required, from 1")
            })?;
            Some(number)
        }
    };
    let trigger = match data.get("inputs") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(inputs)) => inputs.clone(),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            return Err(Error::invalid_member(at("inputs"), "an object is required"));
        }
    };
    Ok(Some(run_of(part, name, version, trigger)))
}

/// A run of the workflow that a skill names, with the first object of the message as its inputs.
pub(super) fn of_skill(parts: &[Part], name: &str) -> Result<Plan, Error> {
    if let Some(plan) = named(parts, Reading::Generous)? {
        let is_same = matches!(&plan, Plan::Workflow { run, .. } if *run.kept.name == *name);
        if !is_same {
            let reason = "the message names another workflow than its skill";
            return Err(Error::invalid_member("message.parts", reason));
        }
        return Ok(plan);
    }
    let inputs = parts
        .iter()
        .enumerate()
        .find_map(|(i, part)| match &part.content {
            Content::Data(Value::Object(data)) => Some((i, data.clone())),
            Content::Data(_) | Content::Text(_) | Content::Raw(_) | Content::Url(_) => None,
        });
    let (part, data) = inputs.unwrap_or_default();
    let inputs = match data.get("inputs") {
        Some(Value::Object(inputs)) if data.len() == 1 => inputs.clone(),
        Some(_) | None => data,
    };
    Ok(run_of(part, name, None, inputs))
}

/// Whether data names a workflow beyond doubt: it has the members of such a run and no others.
fn is_certain(data: &Map<String, Value>) -> bool {
    let is_known = |name: &str| WORKFLOW.contains(&name) || matches!(name, "version" | "inputs");
    data.keys().all(|name| is_known(name))
        && data.get("inputs").is_none_or(Value::is_object)
        && WORKFLOW
            .iter()
            .any(|it| data.get(*it).is_some_and(Value::is_string))
}

fn run_of(part: usize, name: &str, version: Option<u32>, trigger: Map<String, Value>) -> Plan {
    let trigger = match with_whole_numbers(Value::Object(trigger)) {
        Value::Object(trigger) => trigger,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    };
    let piece = Piece {
        part,
        form: Form::Workflow,
        first: 0,
        tasks: usize::MAX,
    };
    Plan::Workflow {
        run: RunWorkflow {
            kept: Kept {
                owner: None,
                name: Arc::from(name),
            },
            version,
            trigger: Payload::from_map(&trigger),
            user_id: None,
            execute: true,
            labels: Labels::default(),
        },
        source: Source(vec![piece]),
    }
}

/// Why a workflow gives no tasks.
pub(crate) fn unfit(unfit: &UnfitWorkflow, source: &Source) -> Error {
    let at = |member: &str| source.field(&[PathSegment::from(member)]);
    let one = |member: &str, reason: String| Error::invalid_member(at(member), reason);
    match unfit {
        UnfitWorkflow::Absent("version") => one(
            "version",
            "no such version of the workflow is kept".to_owned(),
        ),
        UnfitWorkflow::Absent(_) => one("workflow", "no workflow is kept by this name".to_owned()),
        UnfitWorkflow::Trigger(reason) => one("inputs", reason.to_string()),
        UnfitWorkflow::Document(faults) => {
            let first = faults.first();
            let told = first.map_or_else(String::new, |it| format!(": {} {}", it.path, it.reason));
            one("workflow", format!("the document has faults{told}"))
        }
        UnfitWorkflow::Tasks(violations) => Error::invalid(faults(violations, source)),
        UnfitWorkflow::Unplayable(_) | UnfitWorkflow::NotKept(_) | UnfitWorkflow::NoSchemas(_) => {
            one("workflow", "it cannot be run".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::message;
    use super::super::{Plan, plan};
    use serde_json::{Value, json};
    use taskledger_a2a::Part;
    use taskledger_domain::PathSegment;

    #[test]
    fn a_workflow_is_named_by_a_part_or_by_the_skill() {
        let data = json!({"workflow": "report", "version": 2.0, "inputs": {"n": 1.0}});
        let Ok(Plan::Workflow { run, source }) = plan(&message(vec![Part::data(data)]), None, None)
        else {
            panic!("the part names a workflow");
        };
        assert_eq!((&*run.kept.name, run.version), ("report", Some(2)));
        assert_eq!(Value::Object(run.trigger.to_map()), json!({"n": 1}));
        let field = source.field(&[PathSegment::from("inputs")]);
        assert_eq!(field, "message.parts[0].data.inputs");
        let mut by_skill = message(vec![Part::text("please"), Part::data(json!({"n": 2}))]);
        by_skill.metadata = json!({"skillId": "workflow:report"}).as_object().cloned();
        let Ok(Plan::Workflow { run, .. }) = plan(&by_skill, None, None) else {
            panic!("the skill names a workflow");
        };
        assert_eq!(Value::Object(run.trigger.to_map()), json!({"n": 2}));
        for (data, member) in [
            (json!({"workflow": 7}), "workflow"),
            (json!({"template": ""}), "template"),
            (json!({"workflow": "a", "version": 0}), "version"),
            (json!({"workflow": "a", "inputs": []}), "inputs"),
        ] {
            let refused = plan(&message(vec![Part::data(data)]), None, None)
                .err()
                .expect("a fault");
            let field = format!("message.parts[0].data.{member}");
            assert_eq!(refused.faults.listed[0].field, field);
        }
    }
}
