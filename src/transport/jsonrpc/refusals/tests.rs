//! Every refusal with its code, message and data.

mod runs;
mod values;

use super::{reason, refused_call};
use crate::application::api::{CallNames, KnownExecutors, Refused};
use crate::transport::jsonrpc::ErrorKind;
use serde_json::{Map, Value, json};
use taskledger_domain::TaskId;
use taskledger_domain::flow::{ClosedBy, Refusal, SelfDependency, TransitionFault};
use taskledger_domain::task::Status::Completed;
use taskledger_domain::task::call::{self, Fresh};

/// Ids that were made for the call.
const A: &str = "550e8400-e29b-41d4-a716-44665544000a";
const B: &str = "550e8400-e29b-41d4-a716-44665544000b";
/// The id of a stored task.
const STORED: &str = "660e8400-e29b-41d4-a716-446655440001";

fn id(text: &str) -> TaskId {
    TaskId::parse(text).unwrap()
}

/// A call of two tasks: one with the alias `a`, and one below it that has only a name, `b`.
fn two_tasks() -> CallNames {
    let tasks = json!([{"id": "a", "name": "first"}, {"name": "b", "parent_id": "a"}]);
    let mut list = call::parse_tasks(&tasks).unwrap();
    let names = CallNames::written_at(list.take_paths());
    let made = |place| match place {
        Fresh::Root => id(A),
        Fresh::Below => id(B),
    };
    names.resolved(&mut list.resolve(made).unwrap())
}

/// Path, reason, expected, actual.
type Row<'t> = (&'t str, &'t str, &'t str, Value);

/// Checks what a call with these names reads.
#[track_caller]
fn reads(names: &CallNames, refusal: Refusal, kind: ErrorKind, told: &[Row<'_>], more: Value) {
    let faults: Vec<Value> = told
        .iter()
        .map(|(path, reason, expected, actual)| {
            let path: Vec<Value> = path
                .split('/')
                .map(|step| step.parse::<usize>().map_or_else(|_| json!(step), |i| json!(i)))
                .collect();
            let field = path.iter().rev().find(|step| step.is_string()).unwrap();
            json!({"field": field, "reason": reason, "expected": expected, "actual": actual, "path": path})
        })
        .collect();
    let mut data = match faults.as_slice() {
        [Value::Object(only)] => only.clone(),
        _ => Map::new(),
    };
    data.insert("errors".to_owned(), Value::Array(faults));
    data.extend(more.as_object().cloned().unwrap_or_default());
    let (code, message) = kind.row();
    let names = names.clone();
    assert_eq!(
        json!(refused_call(&refused(refusal, names))),
        json!({"code": code, "message": message, "data": data})
    );
}

fn refused(refusal: Refusal, names: CallNames) -> Refused {
    Refused {
        refusal,
        others: Vec::new(),
        names,
        unknown_executors: Vec::new(),
        executors: KnownExecutors::default(),
    }
}

/// The same without further members in `data`.
#[track_caller]
fn lists(names: &CallNames, refusal: Refusal, kind: ErrorKind, told: &[Row<'_>]) {
    reads(names, refusal, kind, told, json!({}));
}

#[test]
fn a_refusal_is_the_same_after_a_journey_between_nodes() {
    let refused = Refused {
        refusal: Refusal::CircularDependency {
            cycle: vec![id(A), id(B), id(A)],
            len: 2,
            closed_by: ClosedBy::Dependencies,
            has_group: false,
        },
        others: vec![Refusal::InvalidTree(Vec::new())],
        names: two_tasks(),
        unknown_executors: Vec::new(),
        executors: KnownExecutors::default(),
    };
    let text = serde_json::to_string(&refused).unwrap();
    assert_eq!(serde_json::from_str::<Refused>(&text).unwrap(), refused);
}

#[test]
fn a_long_alias_is_told_whole() {
    let alias = "x".repeat(200) + &"é".repeat(50);
    let mut list = call::parse_tasks(&json!([{"id": alias, "name": "n"}])).unwrap();
    let names = CallNames::written_at(list.take_paths());
    let names = names.resolved(&mut list.resolve(|_| id(A)).unwrap());
    let refusal = Refusal::SelfDependency(vec![SelfDependency {
        task: id(A),
        index: 0,
    }]);
    let error = refused_call(&refused(refusal, names));
    assert_eq!(error.data["actual"], json!(alias));
    assert_eq!(error.data["cycle"], json!([alias, alias]));
}

#[test]
fn the_reason_alone_is_that_of_the_first_fault() {
    let fault = TransitionFault::NotFailed {
        task: id(A),
        status: Completed,
    };
    let refusal = Refusal::InvalidTransition(vec![fault]);
    assert_eq!(reason(&refusal), "Task is completed");
}
