//! Jobs and executors for the tests of this folder.

use super::registry::{Registered, Registry, RegistryBuilder};
use super::{
    Concurrency, Description, Executor, ExecutorError, Job, Notes, Output, Past, ProgressReporter,
};
use crate::engine::secrets::SecretTexts;
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::future::Future;
use std::sync::Arc;
use taskledger_domain::{FlowId, RunId, TaskId};
use tokio_util::sync::CancellationToken;

/// A job with these inputs, attempt 1, of a task of this process: programs are found by their task, and tests run
/// beside each other.
pub(super) fn job(inputs: Value) -> Job {
    let id = format!("9ff6a1a5-7d8a-4c61-8a3c-{:012x}", std::process::id());
    let id = id.as_str();
    Job {
        flow_id: FlowId::parse(id).unwrap(),
        run_id: RunId::parse(id).unwrap(),
        task_id: TaskId::parse(id).unwrap(),
        attempt: 1,
        name: "a task".into(),
        inputs: inputs.as_object().unwrap().clone(),
        params: Map::new(),
        schemas: Map::new(),
        dependencies: Vec::new(),
        ends_at: None,
        cancel: CancellationToken::new(),
        over: CancellationToken::new(),
        past: Past::default(),
        notes: Notes::default(),
        output: Output::default(),
        progress: ProgressReporter::new().0,
        traceparent: None,
        secrets: SecretTexts::default(),
    }
}

/// `executor`, registered alone.
pub(super) fn registered(executor: impl Executor) -> Registered {
    let executor: Arc<dyn Executor> = Arc::new(executor);
    let name = executor.describe().name;
    Registry::builder()
        .register(executor)
        .and_then(RegistryBuilder::build)
        .unwrap()
        .get(&name)
        .unwrap()
        .clone()
}

/// Whether the executor's own schema takes `inputs`.
pub(super) fn takes(executor: impl Executor, inputs: &Value) -> bool {
    registered(executor).check_inputs(inputs).is_ok()
}

/// An executor `acting` that does `act`.
pub(super) fn acting<F, A>(act: F) -> impl Executor
where
    F: Fn(Job) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Value, ExecutorError>> + Send + 'static,
{
    Acting(act)
}

struct Acting<F>(F);

#[async_trait]
impl<F, A> Executor for Acting<F>
where
    F: Fn(Job) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Value, ExecutorError>> + Send + 'static,
{
    fn describe(&self) -> Description {
        Description {
            name: "acting".into(),
            aliases: Vec::new(),
            summary: "for tests".into(),
            idempotent: true,
            pure: false,
            input_schema: Some(json!({"type": "object"})),
            concurrency: Concurrency::Waiting,
        }
    }

    async fn execute(&self, job: Job) -> Result<Value, ExecutorError> {
        (self.0)(job).await
    }
}
