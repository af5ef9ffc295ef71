//! Labels of tasks, and labels that tasks must have, in the parameter `labels`.

use super::kind::{Kind, Refusal};
use serde_json::Value;
use taskledger_domain::Violation;
use taskledger_domain::task::labels::LabelFault;
use taskledger_domain::task::{Selector, labels, schema};
use taskledger_domain::violation::PathSegment;

/// Keys with the value that each must have, or null for any.
#[derive(Debug, Clone, Copy)]
pub struct Labels;

impl Kind for Labels {
    type Out = Selector;

    fn schema(&self) -> Value {
        schema::label_selector()
    }

    fn parse(&self, value: &Value) -> Result<Selector, Refusal> {
        Selector::parse(value).map_err(told)
    }
}

/// Keys with values.
#[derive(Debug, Clone, Copy)]
pub struct OwnLabels;

impl Kind for OwnLabels {
    type Out = labels::Labels;

    fn schema(&self) -> Value {
        let mut members = schema::MEMBERS.iter();
        let member = members.find(|member| member.name == "labels");
        member.map_or(Value::Bool(true), |member| member.schema())
    }

    fn parse(&self, value: &Value) -> Result<labels::Labels, Refusal> {
        labels::Labels::parse(value).map_err(told)
    }
}

fn told(faults: Vec<LabelFault>) -> Refusal {
    let told = faults.into_iter().map(|fault| {
        let key = fault.key.as_deref().map(PathSegment::from);
        let path: Vec<_> = std::iter::once("labels".into()).chain(key).collect();
        Violation::new(&path, fault.reason, fault.expected, &fault.actual)
    });
    Refusal::Inside(told.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_fault_is_told_at_its_key() {
        let labels = Labels
            .parse(&json!({"team": "data", "stage": null}))
            .unwrap();
        assert_eq!(labels.terms(), ["team=data", "stage"]);
        let Err(Refusal::Inside(told)) = Labels.parse(&json!({"-": "x", "a": 1})) else {
            panic!("both are wrong");
        };
        let fields: Vec<_> = told.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(fields, ["-", "a"]);
        assert_eq!(told[1].path, ["labels".into(), "a".into()]);
    }
}
