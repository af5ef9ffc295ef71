//! Checks whether tasks can be made of a document without faults of its own, by the rules for single tasks.

use crate::faults::{Fault, Faults};
use crate::node::{At, Node};
use crate::path::Path;
use crate::workflow::{Phase, Workflow};
use serde_json::{Map, Value};
use taskledger_domain::contract::{FormFault, Outputs};
use taskledger_domain::task::call::read_tasks;
use taskledger_domain::{PathSegment, Violation};

/// Reports what the server would refuse in the tasks of a run, whatever its trigger is. Cost: O(size).
pub(crate) fn check(workflow: &Workflow, root: &Node, faults: &Faults) {
    // What a trigger may be wrong about is known when there is one.
    let Ok(tasks) = workflow.tasks_of(&workflow.whole_plan(), &Map::new(), None) else {
        return;
    };
    // The first task is the run.
    for (phase, task) in workflow.phases.iter().zip(tasks.iter().skip(1)) {
        let schemas = task.get("schemas").and_then(Value::as_object);
        let Some(Err(wrong)) = schemas.map(Outputs::parse) else {
            continue;
        };
        for fault in wrong {
            faults.error(of_form(phase, &fault, root));
        }
    }
    if let Err(violations) = read_tasks(&Value::Array(tasks)) {
        for violation in violations {
            faults.error(of_task(workflow, &violation, root));
        }
    }
}

/// A fault of what a phase declares.
fn of_form(phase: &Phase, fault: &FormFault, root: &Node) -> Fault {
    let path = Path::default().key("workflow").key(&phase.name);
    let path = fault.path.iter().fold(path, |path, name| path.key(name));
    let reason = format!("{}, expected {}", fault.reason, fault.expected);
    let steps = fault.path.iter().map(String::as_str);
    let at = of_phase(root, &phase.name, steps);
    let mut fault = Fault::new(&path, at, reason);
    fault.phase_name = Some(phase.name.clone());
    fault
}

fn of_task(workflow: &Workflow, violation: &Violation, root: &Node) -> Fault {
    let mut segments = violation.path.iter();
    let mut path = Path::default().key("workflow");
    let mut phase = None;
    // `tasks`, the number of the task, the first of which is the run, and then what is of the task.
    if let (Some(PathSegment::Key(_)), Some(PathSegment::Index(i))) =
        (segments.next(), segments.next())
    {
        phase = i.checked_sub(1).and_then(|i| workflow.phases.get(i));
    }
    if let Some(phase) = phase {
        path = path.key(&phase.name);
    }
    for segment in segments {
        path = match segment {
            PathSegment::Key(key) if key == "schemas" => path,
            PathSegment::Key(key) => path.key(key),
            PathSegment::Index(index) => path.index(*index),
        };
    }
    let reason = format!("{}, expected {}", violation.reason, violation.expected);
    let at = phase.and_then(|phase| {
        let steps = violation.path.iter().skip(2).map(|step| match step {
            PathSegment::Key(key) => key.clone(),
            PathSegment::Index(index) => index.to_string(),
        });
        let steps: Vec<String> = steps.filter(|step| step != "schemas").collect();
        of_phase(root, &phase.name, steps.iter().map(String::as_str))
    });
    let mut fault = Fault::new(&path, at, reason);
    fault.phase_name = phase.map(|phase| phase.name.clone());
    fault
}

/// The place of something in a phase, or of what is nearest above it.
fn of_phase<'s>(root: &Node, phase: &str, steps: impl Iterator<Item = &'s str>) -> Option<At> {
    let member = |node: &Node, name: &str| {
        let entries = node.entries().unwrap_or_default();
        entries.iter().position(|entry| entry.key == name)
    };
    let workflow = &root.entries()?[member(root, "workflow")?].value;
    let phase = &workflow.entries()?[member(workflow, phase)?];
    let inside = phase.place(&Path::default(), steps);
    let is_phase = std::ptr::eq(inside.node, &*phase.value);
    if is_phase { phase.at } else { inside.at }
}
