//! Refusals because inputs or outputs break a task's contract: the named errors of RFC-0024, section 4.

use super::super::error::{ErrorKind, RpcError};
use super::super::replies::fault as fault_json;
use crate::application::api::workflows::{
    Fault, NoSchemas, Refusal, UnfitTrigger, UnfitWorkflow, Unplayable, WIRING,
};
use serde_json::{Value, json};
use taskledger_domain::contract::{Breach, Broken, OutputFault};
use taskledger_domain::limits::VIOLATIONS_MAX;
use taskledger_domain::{PathSegment, TaskId, Violation};

/// The parameter with a result.
const OUTPUT: &str = "output";
/// What a trigger should be that gives no tasks.
const TRIGGER: &str = "values of the types that inputs declare, with which no phase is skipped that another one needs; smaller if it is too large";
/// What a document should be whose fault suggests nothing.
const SOUND: &str = "a document without faults; `workflows.validate` lists each with its position";

/// -31022 to -31025: a contract of the task is not kept. The members beside `errors` are those of its history and of
/// notices.
pub(super) fn broken(task: TaskId, breach: &Breach) -> RpcError {
    let (kind, errors) = match &breach.broken {
        Broken::Inputs { incomplete, .. } => {
            let (reason, expected) = match incomplete.is_empty() {
                true => (
                    "inputs of the task cannot be resolved",
                    "a task whose wired inputs are in the results of its dependencies",
                ),
                false => (
                    "dependencies of the task have not completed",
                    "a task whose dependencies have completed",
                ),
            };
            let fault = Violation::of("task_id", reason, expected, &task.to_string().into());
            (ErrorKind::UnresolvableInput, vec![fault])
        }
        Broken::Upstream { .. } => {
            let reason = "a task whose result it needs waits for a person";
            let expected = "a task whose wired inputs are in the results of its dependencies";
            let fault = Violation::of("task_id", reason, expected, &task.to_string().into());
            (ErrorKind::UpstreamSuspended, vec![fault])
        }
        Broken::Output(fault) => of_output(fault),
    };
    let payload = breach.payload(task);
    let told = RpcError::new(kind, errors);
    payload
        .into_iter()
        .fold(told, |told, (name, value)| told.with(&name, value))
}

fn of_output(fault: &OutputFault) -> (ErrorKind, Vec<Violation>) {
    if let Some(large) = &fault.too_large {
        let expected = format!("at most {} bytes of JSON", large.limit);
        let violation = Violation::of(OUTPUT, fault.message(), expected, &large.bytes.into());
        return (ErrorKind::InvalidParams, vec![violation]);
    }
    let missing = fault.missing.iter().map(|key| {
        let path = [OUTPUT.into(), key.as_str().into()];
        let (reason, expected) = ("Required key is missing", "a value of the declared type");
        Violation::new(&path, reason, expected, &Value::Null)
    });
    let mismatches = fault.mismatches.iter().map(|it| {
        let path = place_of(&it.pointer);
        Violation::new(
            &path,
            "Wrong type",
            &*it.expected,
            &it.actual.as_str().into(),
        )
    });
    let kind = match fault.missing.is_empty() {
        true => ErrorKind::OutputTypeMismatch,
        false => ErrorKind::MissingOutput,
    };
    (kind, missing.chain(mismatches).collect())
}

/// -32602: why a trigger, which is given at `place`, gives no tasks. Values that it lacks are faults of their own;
/// `missing_keys` has their keys.
pub(super) fn unfit_trigger(
    unfit: &UnfitTrigger,
    place: &[PathSegment],
    expected: &str,
) -> RpcError {
    let lacking = match unfit {
        UnfitTrigger::Lacking(lacking) => lacking,
        UnfitTrigger::TooLarge
        | UnfitTrigger::Skipped { .. }
        | UnfitTrigger::TooManySkipped
        | UnfitTrigger::NoTime { .. }
        | UnfitTrigger::Unlike { .. } => {
            let violation = Violation::new(place, unfit.to_string(), expected, &Value::Null);
            return RpcError::invalid_params(vec![violation]);
        }
    };
    let faults = lacking.iter().map(|it| {
        let path = [place, &[it.key.as_str().into()]].concat();
        let expected = format!(
            "a value: input `{}` of phase `{}` is `{}`",
            it.input, it.phase, it.reference
        );
        Violation::new(&path, "Required value is missing", expected, &Value::Null)
    });
    let mut keys: Vec<&str> = Vec::new();
    for it in lacking {
        if !keys.contains(&it.key.as_str()) {
            keys.push(&it.key);
        }
    }
    RpcError::invalid_params(faults.collect()).with("missing_keys", json!(keys))
}

/// -32602, or -31021 when nothing but wiring is wrong: why a document gives no tasks.
pub(in crate::transport::jsonrpc) fn unfit_workflow(unfit: &UnfitWorkflow) -> RpcError {
    let faults = match unfit {
        UnfitWorkflow::Document(faults) => faults,
        UnfitWorkflow::Trigger(unfit) => return unfit_trigger(unfit, &["trigger".into()], TRIGGER),
        UnfitWorkflow::Tasks(violations) => return RpcError::invalid_params(violations.clone()),
        UnfitWorkflow::Absent(member) => {
            let (reason, expected) = match *member {
                "name" => (
                    "there is no saved workflow of this name",
                    "a name of `workflows.list`",
                ),
                _ => (
                    "there is no such version",
                    "a version of `workflows.versions`",
                ),
            };
            let violation = Violation::of(member, reason, expected, &Value::Null);
            return RpcError::new(ErrorKind::WorkflowNotFound, vec![violation]);
        }
        UnfitWorkflow::Unplayable(unplayable) => {
            let field = match unplayable {
                Unplayable::Trigger(_) => "trigger",
                Unplayable::Tasks(_) => "document",
                Unplayable::UnknownPhase(_)
                | Unplayable::NoObject(_)
                | Unplayable::TooCostly
                | Unplayable::TooLarge => "outputs",
            };
            let expected = match field {
                "trigger" => TRIGGER,
                "document" => SOUND,
                _ => {
                    "outputs by names of phases: an object each, or a list of objects; with inputs at most as large as a request"
                }
            };
            let violation = Violation::of(field, unplayable.to_string(), expected, &Value::Null);
            return RpcError::invalid_params(vec![violation]);
        }
        UnfitWorkflow::NoSchemas(none) => {
            let expected = "the name of a phase of the document";
            let actual = match none {
                NoSchemas::UnknownPhase(name) => Value::from(name.as_str()),
                NoSchemas::TooLarge => Value::Null,
            };
            let violation = Violation::of("phase", none.to_string(), expected, &actual);
            return RpcError::invalid_params(vec![violation]);
        }
        UnfitWorkflow::NotKept(changed @ Refusal::Changed(newest)) => {
            let expected =
                "the newest version, as `workflows.list` shows it, or 0 if none is saved";
            let violation = Violation::of(
                "expected_version",
                changed.to_string(),
                expected,
                &Value::Null,
            );
            return RpcError::new(ErrorKind::WorkflowChanged, vec![violation])
                .with("version", json!(newest));
        }
        UnfitWorkflow::NotKept(refusal @ (Refusal::Names | Refusal::Versions | Refusal::Bytes)) => {
            let expected = "another name, or fewer and smaller workflows of this owner";
            let violation = Violation::of("document", refusal.to_string(), expected, &Value::Null);
            return RpcError::invalid_params(vec![violation]);
        }
    };
    let violations = faults.iter().map(|fault| {
        let mut path = vec![PathSegment::from("document")];
        if !fault.path.is_empty() {
            path.push(fault.path.as_str().into());
        }
        let expected = fault.suggestion.as_deref().unwrap_or(SOUND);
        Violation::new(&path, fault.reason.as_str(), expected, &Value::Null)
    });
    let kind = match faults.iter().all(|fault| fault.error == WIRING) {
        true => ErrorKind::InputWiring,
        false => ErrorKind::InvalidParams,
    };
    let shown: Vec<Value> = faults.iter().take(VIOLATIONS_MAX).map(fault_json).collect();
    let told = RpcError::new(kind, violations.collect()).with("faults", shown);
    match faults.first() {
        Some(Fault {
            error,
            phase_name,
            invalid_refs,
            suggestion,
            reason,
            ..
        }) if kind == ErrorKind::InputWiring => told
            .with("error", *error)
            .with("phase_name", phase_name.as_deref())
            .with("invalid_refs", json!(invalid_refs))
            .with("suggestion", suggestion.as_deref())
            .with("message", reason.as_str()),
        Some(_) | None => told,
    }
}

/// A JSON pointer into a result as the path of a violation.
fn place_of(pointer: &str) -> Vec<PathSegment> {
    let steps = pointer.split('/').skip(1).map(|step| match step.parse() {
        Ok(index) => PathSegment::Index(index),
        Err(_) => PathSegment::Key(step.replace("~1", "/").replace("~0", "~")),
    });
    std::iter::once(OUTPUT.into()).chain(steps).collect()
}
