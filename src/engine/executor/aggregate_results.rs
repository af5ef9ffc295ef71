//! `aggregate_results_executor`: gathers how the task's dependencies ended. The usual end of a
//! fan-out; with optional dependencies it also tells what went wrong.

use super::{Concurrency, DependencyOutcome, Description, Executor, ExecutorError, Job};
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use taskledger_domain::task::Status;

/// Returns `{by_id, by_name, counts}`.
///
/// An entry is `{id, name, status, result, error}`, `result` and `error` null when there is none.
/// `by_name` has the entry itself for a name that occurs once, and an array of entries, in the
/// order of the task's dependencies, for a name that occurs several times. `counts` has one number
/// for each terminal status, and `total`. Inputs, if any, are returned as `inputs`.
#[derive(Debug, Clone, Copy, Default)]
pub struct AggregateResultsExecutor;

#[async_trait]
impl Executor for AggregateResultsExecutor {
    fn describe(&self) -> Description {
        Description {
            name: "aggregate_results_executor".to_owned(),
            aliases: Vec::new(),
            summary: "Gathers the results and errors of the task's dependencies by id and by name."
                .to_owned(),
            idempotent: true,
            pure: true,
            input_schema: None,
            concurrency: Concurrency::Waiting,
        }
    }

    fn params(&self) -> Option<Vec<String>> {
        Some(Vec::new())
    }

    async fn execute(&self, job: Job) -> Result<Value, ExecutorError> {
        let mut by_id = Map::new();
        let mut by_name: Map<String, Value> = Map::new();
        for dependency in &job.dependencies {
            let entry = entry(dependency);
            by_name
                .entry(dependency.name.clone())
                .and_modify(|known| match known {
                    Value::Array(entries) => entries.push(entry.clone()),
                    Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::String(_)
                    | Value::Object(_) => *known = json!([known.take(), entry]),
                })
                .or_insert_with(|| entry.clone());
            by_id.insert(dependency.id.to_string(), entry);
        }
        let count = |status: Status| {
            let with = job.dependencies.iter().filter(|d| d.status == status);
            with.count()
        };
        let mut result = json!({
            "by_id": by_id,
            "by_name": by_name,
            "counts": {
                "total": job.dependencies.len(),
                "completed": count(Status::Completed),
                "failed": count(Status::Failed),
                "cancelled": count(Status::Cancelled),
            }
        });
        if !job.inputs.is_empty() {
            result["inputs"] = Value::Object(job.inputs);
        }
        Ok(result)
    }
}

fn entry(dependency: &DependencyOutcome) -> Value {
    json!({
        "id": dependency.id.to_string(),
        "name": dependency.name,
        "status": dependency.status.as_str(),
        "result": dependency.result,
        "error": dependency.error,
    })
}

#[cfg(test)]
mod tests {
    use super::AggregateResultsExecutor;
    use crate::engine::executor::test_support::job;
    use crate::engine::executor::{DependencyOutcome, Executor as _};
    use serde_json::{Value, json};
    use taskledger_domain::TaskId;
    use taskledger_domain::task::Status;

    const IDS: [&str; 3] = [
        "11111111-1111-4111-8111-111111111111",
        "22222222-2222-4222-8222-222222222222",
        "33333333-3333-4333-8333-333333333333",
    ];

    fn ended(i: usize, name: &str, status: Status) -> DependencyOutcome {
        let completed = status == Status::Completed;
        DependencyOutcome {
            id: TaskId::parse(IDS[i]).unwrap(),
            name: name.into(),
            status,
            result: completed.then(|| json!({"n": i}).as_object().unwrap().clone()),
            error: (!completed).then(|| format!("error {i}")),
        }
    }

    async fn aggregate(dependencies: Vec<DependencyOutcome>, inputs: Value) -> Value {
        let mut job = job(inputs);
        job.dependencies = dependencies;
        AggregateResultsExecutor.execute(job).await.unwrap()
    }

    #[tokio::test]
    async fn results_and_errors_are_found_by_id_and_by_name() {
        let result = aggregate(
            vec![
                ended(0, "good", Status::Completed),
                ended(1, "bad", Status::Failed),
                ended(2, "gone", Status::Cancelled),
            ],
            json!({}),
        )
        .await;
        let good = json!({"id": IDS[0], "name": "good", "status": "completed",
            "result": {"n": 0}, "error": null});
        let bad = json!({"id": IDS[1], "name": "bad", "status": "failed",
            "result": null, "error": "error 1"});
        assert_eq!(result["by_id"][IDS[0]], good);
        assert_eq!(result["by_name"]["good"], good);
        assert_eq!(result["by_id"][IDS[1]], bad);
        assert_eq!(result["by_name"]["bad"], bad);
        assert_eq!(
            result["counts"],
            json!({"total": 3, "completed": 1, "failed": 1, "cancelled": 1})
        );
        assert!(result.get("inputs").is_none());
    }

    #[tokio::test]
    async fn a_name_that_occurs_several_times_has_an_array_in_the_order_of_the_dependencies() {
        let result = aggregate(
            vec![
                ended(2, "part", Status::Completed),
                ended(0, "part", Status::Failed),
                ended(1, "part", Status::Completed),
            ],
            json!({}),
        )
        .await;
        let ids: Vec<_> = result["by_name"]["part"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, [IDS[2], IDS[0], IDS[1]]);
        assert_eq!(result["by_id"].as_object().unwrap().len(), 3);
    }

    #[tokio::test]
    async fn without_dependencies_everything_is_empty_and_inputs_come_along() {
        assert_eq!(
            aggregate(Vec::new(), json!({"title": "t"})).await,
            json!({
                "by_id": {}, "by_name": {}, "inputs": {"title": "t"},
                "counts": {"total": 0, "completed": 0, "failed": 0, "cancelled": 0}
            })
        );
    }
}
