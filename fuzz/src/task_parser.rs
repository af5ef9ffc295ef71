//! Bytes as the parameters of `tasks.create`, and as `updates` of `tasks.update`.
//!
//! What is refused is refused with a bounded list of faults. What is accepted survives: written as
//! the plainest call that says the same, it reads as the same tasks; created in a flow, its events
//! are stored and read without loss. Its schemas are compiled and its inputs checked, within the
//! limits of both.

use serde_json::{Map, Value, json};
use taskledger_domain::codec::{self, snapshot};
use taskledger_domain::flow::{Command, Flow, Refusal, Rejection, Specification};
use taskledger_domain::task::call::{self, NewTask, TaskList, Unresolved};
use taskledger_domain::task::{inputs, spec};
use taskledger_domain::testing::{START, Server, id};
use taskledger_domain::violation::{PathSegment, Violation};
use taskledger_domain::{TaskId, limits};

/// Bytes of text that one violation adds to what it repeats of the input.
const VIOLATION_TEXT_BYTES_MAX: usize = 4096;

/// Reads `bytes` as a call.
///
/// # Panics
/// When a claim does not hold.
pub fn run(bytes: &[u8]) {
    // The door's limits on depth and encoding are those of this parser.
    let Ok(Value::Object(map)) = serde_json::from_slice(bytes) else {
        return;
    };
    match spec::updates(&map) {
        Ok(updates) => {
            let whole = Specification::assemble(taskledger_domain::Payload::empty(), None, None);
            let updated = whole.updated(&updates);
            assert!(updated.bytes() <= 3 * limits::PAYLOAD_BYTES_MAX);
        }
        Err(faults) => bounded(&faults, bytes, limits::VIOLATIONS_MAX),
    }
    match call::parse_create(&map) {
        Err(faults) => bounded(&faults, bytes, limits::VIOLATIONS_MAX),
        Ok(list) => accepted(list, bytes),
    }
}

fn accepted(list: TaskList, bytes: &[u8]) {
    assert!((1..=limits::TASKS_PER_CALL_MAX).contains(&list.len()));
    for (path, specification) in list.specifications() {
        assert!(path.len() <= 2 * list.len() + 3, "a path of its tree");
        check_inputs(specification, bytes);
    }
    let tasks = match resolve(list) {
        Ok(tasks) => tasks,
        Err(refusal) => return bounded_refusal(&refusal, bytes),
    };
    let plain = json!({"tasks": tasks.iter().map(written).collect::<Vec<_>>()});
    // Through text, as a caller would send it.
    let plain: Map<String, Value> =
        serde_json::from_str(&plain.to_string()).expect("what was written is JSON");
    let again = call::parse_create(&plain).expect("what was accepted is accepted again");
    let again = resolve(again).expect("what was resolved is resolved again");
    assert_eq!(tasks, again, "the plainest call says the same");
    created(tasks, bytes);
}

fn resolve(list: TaskList) -> Result<Vec<NewTask>, Refusal> {
    let mut minted = 0;
    let mint = |_| {
        minted += 1;
        id(&format!("minted {minted}"))
    };
    let resolved = list.resolve(mint).map(|resolved| resolved.tasks);
    resolved.map_err(Unresolved::first)
}

/// A task with every reference written out.
fn written(task: &NewTask) -> Value {
    let text = |id: TaskId| Value::from(id.to_string());
    let mut members = Map::new();
    members.insert("id".to_owned(), text(task.id));
    members.insert("name".to_owned(), task.name.clone().into());
    members.insert("priority".to_owned(), task.priority.get().into());
    let payload = |p: &taskledger_domain::Payload| Value::Object(p.to_map());
    members.insert("inputs".to_owned(), payload(&task.specification.inputs));
    members.insert("labels".to_owned(), json!(task.labels));
    let list: Vec<Value> = (task.dependencies.iter()).map(|d| json!(d)).collect();
    members.insert("dependencies".to_owned(), list.into());
    let optional = [
        ("parent_id", task.parent.map(text)),
        ("user_id", task.user_id.clone().map(Value::from)),
        ("schemas", task.specification.schemas.as_ref().map(payload)),
        ("params", task.specification.params.as_ref().map(payload)),
        (
            "start_at",
            task.specification.start_at.map(|at| at.to_string().into()),
        ),
    ];
    for (name, value) in optional {
        members.extend(value.map(|v| (name.to_owned(), v)));
    }
    Value::Object(members)
}

/// The tasks as a new flow: what is recorded of them is read without loss.
fn created(tasks: Vec<NewTask>, bytes: &[u8]) {
    let mut flow = Flow::default();
    let created = flow.handle(&Command::Create(tasks), START, &mut Server::default());
    let events = match created {
        Ok((events, _)) => events,
        Err(Rejection::Refused(refusals)) => {
            return refusals
                .into_iter()
                .for_each(|it| bounded_refusal(&it, bytes));
        }
        Err(Rejection::Outdated(what)) => panic!("nothing is outdated in a new flow: {what:?}"),
    };
    for event in &events {
        let stored = codec::encode(event);
        let read = codec::decode(stored.kind, stored.schema_version, &stored.data);
        assert_eq!(read.as_ref().ok(), Some(event), "{}", stored.data);
    }
    let read = snapshot::decode(&snapshot::encode(&flow));
    assert_eq!(
        read.ok().as_ref(),
        Some(&flow),
        "a snapshot reads as it was written"
    );
}

fn check_inputs(specification: &Specification, bytes: &[u8]) {
    let schemas = specification.schemas.as_ref().map(|s| s.to_map());
    let Some(schema) = schemas.and_then(|mut s| s.remove("input_schema")) else {
        return;
    };
    let listed = inputs::limits::LISTED_MAX + 1;
    match inputs::compile(&schema) {
        Err(faults) => bounded(&faults, bytes, listed),
        Ok(compiled) => {
            let value = Value::Object(specification.inputs.to_map());
            let first = compiled.check(&value);
            assert_eq!(
                first,
                compiled.check(&value),
                "the same check says the same"
            );
            if let Err(faults) = first {
                bounded(&faults, bytes, listed);
            }
        }
    }
}

/// A refusal names faults, not more than it may, in not much more text than it was given.
fn bounded(faults: &[Violation], bytes: &[u8], count_max: usize) {
    assert!(!faults.is_empty(), "a refusal has a reason");
    assert!(faults.len() <= count_max, "{} faults", faults.len());
    for fault in faults {
        assert!(!fault.field.is_empty() || names_nothing(fault), "{fault:?}");
        assert!(!fault.reason.is_empty(), "{fault:?}");
        let text = json!(fault).to_string();
        // A name stands in `field`, in `path` and perhaps in `actual`, with escapes.
        let max = VIOLATION_TEXT_BYTES_MAX + 8 * bytes.len();
        assert!(text.len() <= max, "{} bytes: {text}", text.len());
    }
}

/// As [`bounded`]: a refusal repeats each text of the input once.
fn bounded_refusal(refusal: &Refusal, bytes: &[u8]) {
    let text = json!(refusal).to_string();
    let max = limits::VIOLATIONS_MAX * VIOLATION_TEXT_BYTES_MAX + 8 * bytes.len();
    assert!(text.len() <= max, "{} bytes: {text}", text.len());
}

/// The empty name is a name.
fn names_nothing(fault: &Violation) -> bool {
    fault
        .path
        .iter()
        .any(|s| matches!(s, PathSegment::Key(key) if key.is_empty()))
}
