//! Texts for why a schedule is not made, changed or run.

use super::super::error::{ErrorKind, RpcError};
use super::contract::{unfit_trigger, unfit_workflow};
use crate::application::api::schedules::{Refusal, UnfitSchedule};
use crate::application::api::workflows::UnfitWorkflow;
use serde_json::{Value, json};
use taskledger_domain::{PathSegment, Violation};

/// -32602, -31014 or -31015, or what is said of the workflow.
pub(in crate::transport::jsonrpc) fn unfit_schedule(unfit: &UnfitSchedule) -> RpcError {
    let of = |field: &'static str, reason: String, expected: &str| {
        vec![Violation::of(field, reason, expected, &Value::Null)]
    };
    match unfit {
        UnfitSchedule::Absent => {
            let reason = "there is no schedule of this name".to_owned();
            let violations = of("name", reason, "a name of `schedules.list`");
            RpcError::new(ErrorKind::ScheduleNotFound, violations)
        }
        UnfitSchedule::NotKept(changed @ Refusal::Changed(version)) => {
            let expected = "its version, as `schedules.get` shows it";
            let violations = of("expected_version", changed.to_string(), expected);
            RpcError::new(ErrorKind::ScheduleChanged, violations).with("version", json!(version))
        }
        UnfitSchedule::NotKept(exists @ Refusal::Exists(version)) => {
            let expected = "another name, or `schedules.update`";
            let violations = of("name", exists.to_string(), expected);
            RpcError::new(ErrorKind::ScheduleChanged, violations).with("version", json!(version))
        }
        UnfitSchedule::NotKept(refusal @ Refusal::TooMany) => {
            let expected = "fewer schedules of this owner";
            RpcError::invalid_params(of("name", refusal.to_string(), expected))
        }
        UnfitSchedule::Invalid(invalid) => {
            let actual = Value::from(invalid.actual.as_str());
            let violation = Violation::of(
                invalid.field,
                invalid.reason.clone(),
                invalid.expected.as_str(),
                &actual,
            );
            RpcError::invalid_params(vec![violation])
        }
        UnfitSchedule::Tasks(violations) => RpcError::invalid_params(violations.clone()),
        UnfitSchedule::Workflow(UnfitWorkflow::Absent(member)) => {
            let (member, reason, expected) = match *member {
                "name" => (
                    "name",
                    "there is no saved workflow of this name",
                    "a name of `workflows.list`",
                ),
                _ => (
                    "version",
                    "there is no such version",
                    "a version of `workflows.versions`",
                ),
            };
            let path = [PathSegment::from("workflow"), PathSegment::from(member)];
            let violation = Violation::new(&path, reason, expected, &Value::Null);
            RpcError::new(ErrorKind::WorkflowNotFound, vec![violation])
        }
        UnfitSchedule::Workflow(UnfitWorkflow::Trigger(unfit)) => {
            let path = [PathSegment::from("workflow"), PathSegment::from("inputs")];
            let expected = "values of the types that the inputs of the workflow declare";
            unfit_trigger(unfit, &path, expected)
        }
        UnfitSchedule::Workflow(unfit) => unfit_workflow(unfit),
    }
}
