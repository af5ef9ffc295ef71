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

/// Calls of the method that is named like a use case, about each of these tasks. Not for methods whose examples name no task:
/// whether they name something else is said in the matrix, by hand.
pub(super) fn rows(case: UseCase, tasks: [&str; 2]) -> Vec<Asked> {
    let method = case.as_str();
    let naming = NAMING.get(method).map_or(&[][..], Vec::as_slice);
    let asked = naming.iter().flat_map(|(name, params)| {
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
