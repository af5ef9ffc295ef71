//! Kinds of values that only declarations of methods have.

use super::super::super::reader::{Fault, Kind, Refusal};
use serde_json::{Map, Value, json};
use taskledger_domain::limits::{DELAY_MS_MAX, RETRIES_MAX};
use taskledger_domain::suggestion::known_member;
use taskledger_domain::task::spec;
use taskledger_domain::{PathSegment, Payload, Violation};

/// The members of `params` that a method can give to its tasks.
const DEFAULTS: [&str; 5] = [
    "timeout_seconds",
    "schedule_to_start_seconds",
    "retry_count",
    "retry",
    "cancel_grace_seconds",
];

/// Members of `params` for tasks that do not say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Defaults;

impl Kind for Defaults {
    type Out = Payload;

    fn schema(&self) -> Value {
        let seconds =
            |least: f64, most: u64| json!({"type": "number", "minimum": least, "maximum": most});
        let longest_s = DELAY_MS_MAX / 1000;
        json!({
            "type": "object",
            "properties": {
                "timeout_seconds": seconds(0.001, longest_s),
                "schedule_to_start_seconds": seconds(0.001, longest_s),
                "retry_count": {"type": "integer", "minimum": 0, "maximum": RETRIES_MAX},
                "retry": {"$ref": "#/components/schemas/RetryPolicy"},
                "cancel_grace_seconds": seconds(0.0, 3600),
            },
            "not": {"required": ["retry_count", "retry"]},
            "additionalProperties": false,
        })
    }

    /// Checked as the `params` of a task are.
    fn parse(&self, value: &Value) -> Result<Payload, Refusal> {
        let members = value
            .as_object()
            .ok_or_else(|| Fault::new("not an object", "an object"))?;
        let mut faults: Vec<_> = members
            .iter()
            .filter(|(name, _)| !DEFAULTS.contains(&name.as_str()))
            .map(|(name, value)| {
                let path = ["defaults".into(), name.as_str().into()];
                let expected = known_member(name, &DEFAULTS);
                Violation::new(&path, "not a default of methods", expected, value)
            })
            .collect();
        let params = Map::from_iter([("params".to_owned(), value.clone())]);
        if let Err(found) = spec::updates(&params) {
            faults.extend(found.into_iter().map(of_defaults));
        }
        if faults.is_empty() {
            Ok(Payload::from_map(members))
        } else {
            Err(Refusal::Inside(faults))
        }
    }
}

/// A fault of `updates.params`, where a call has it.
fn of_defaults(mut fault: Violation) -> Violation {
    let below = fault.path.split_off(fault.path.len().min(2));
    fault.path = vec![PathSegment::from("defaults")];
    fault.path.extend(below);
    let last = fault.path.iter().rev().find_map(|segment| match segment {
        PathSegment::Key(name) => Some(name.clone()),
        PathSegment::Index(_) => None,
    });
    fault.field = last.unwrap_or_default();
    fault
}
