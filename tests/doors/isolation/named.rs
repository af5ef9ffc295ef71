//! Rows that follow from what a method says of itself: its example, with the task that it names replaced.

use super::asked::Asked;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use taskledger::application::api::UseCase;
use taskledger::transport::jsonrpc::methods;

/// How the document describes the id of a task.
const TASK_ID: &str = "#/components/schemas/TaskId";

/// A parameter that names a task, and parameters with which a call may be made.
type Naming = Vec<(&'static str, Value)>;

/// By method, what its examples say of parameters that name tasks.
static NAMING: LazyLock<BTreeMap<&'static str, Naming>> = LazyLock::new(|| {
    let methods = methods::table().into_iter();
    let of_method = methods.map(|method| {
        let questions = method.params.questions.iter();
        let named = questions.filter(|question| question.schema.to_string().contains(TASK_ID));
        let examples = named.filter_map(|question| {
            let mut examples = method.about.examples.iter();
            let example = examples.find(|it| it.params.get(question.name).is_some())?;
            Some((question.name, example.params.clone()))
        });
        (method.name, examples.collect())
    });
    of_method.collect()
});

fn naming(method: &str) -> &'static [(&'static str, Value)] {
    NAMING.get(method).map_or(&[], Vec::as_slice)
}

/// Whether an example of the method that is named like a use case names a task.
pub(super) fn has_rows(case: UseCase) -> bool {
    !naming(case.as_str()).is_empty()
}

/// Calls of the methods of a group that have this parameter, by their examples with another value of it.
pub(super) fn with(
    group: &str,
    parameter: &'static str,
    value: &Value,
) -> Vec<(&'static str, Value)> {
    let methods = methods::table().into_iter();
    let of_group = methods.filter(|method| method.name.starts_with(group));
    let naming = of_group.filter_map(|method| {
        let mut questions = method.params.questions.iter();
        questions.find(|question| question.name == parameter)?;
        let examples = method.about.examples.iter();
        let mut params = examples.map(|example| example.params.clone());
        let mut params = params.next().expect("every method has an example");
        params[parameter] = value.clone();
        Some((method.name, params))
    });
    naming.collect()
}

/// Calls of the method that is named like a use case, about each of these tasks. Not for methods whose examples name no
/// task: whether they name something else is said in the matrix, by hand.
pub(super) fn rows(case: UseCase, tasks: [&str; 2]) -> Vec<Asked> {
    let method = case.as_str();
    let asked = naming(method).iter().flat_map(|(name, params)| {
        tasks.map(|task| {
            let mut params: Map<String, Value> = params.as_object().cloned().unwrap_or_default();
            params.insert((*name).to_owned(), Value::from(task));
            Asked::Call(method, Value::Object(params))
        })
    });
    let asked: Vec<_> = asked.collect();
    assert!(
        !asked.is_empty(),
        "{case:?} has no row, and no example of `{method}` names a task"
    );
    asked
}
