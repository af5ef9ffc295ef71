//! `echo_executor`: the smallest executor, for trying things out and for joining branches.

use super::{Concurrency, Description, Executor, ExecutorError, Job};
use async_trait::async_trait;
use serde_json::Value;

/// Returns its inputs as its result, at once.
#[derive(Debug, Clone, Copy, Default)]
pub struct EchoExecutor;

#[async_trait]
impl Executor for EchoExecutor {
    fn describe(&self) -> Description {
        Description {
            name: "echo_executor".to_owned(),
            aliases: Vec::new(),
            summary: "Returns its inputs as its result.".to_owned(),
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
        Ok(Value::Object(job.inputs))
    }
}

#[cfg(test)]
mod tests {
    use super::EchoExecutor;
    use crate::engine::executor::Executor as _;
    use crate::engine::executor::test_support::job;
    use serde_json::json;

    #[tokio::test]
    async fn the_result_is_the_inputs() {
        for inputs in [json!({}), json!({"a": [1, null, {"b": "ä"}]})] {
            assert_eq!(EchoExecutor.execute(job(inputs.clone())).await, Ok(inputs));
        }
    }
}
