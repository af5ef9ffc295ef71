//! An executor of one's own: implement [`Executor`], register it, name it in `schemas.method`.
//!
//! ```sh
//! cargo run --example custom_executor -- "dear reader"
//! ```

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::error::Error;
use std::sync::Arc;
use taskledger::clock::{Clock as _, SystemClock};
use taskledger::engine::executor::{
    BuiltInOptions, Concurrency, Description, Executor, ExecutorError, Job, ProgressReporter,
    Registry, TimeLimits, run_attempt, with_built_ins,
};
use taskledger_domain::{FlowId, RunId, TaskId};
use tokio_util::sync::CancellationToken;

/// Counts the words of a text.
struct WordCount;

#[async_trait]
impl Executor for WordCount {
    fn describe(&self) -> Description {
        Description {
            name: "word_count".into(), // what tasks say in `schemas.method`
            aliases: vec!["wc".into()],
            summary: "Counts the words of `text`.".into(),
            idempotent: true, // may run again after a crash
            // Checked before `execute` is called, so there is no need to check again.
            input_schema: Some(json!({
                "type": "object",
                "required": ["text"],
                "properties": {"text": {"type": "string"}}
            })),
            concurrency: Concurrency::Waiting, // `Cores` for work that keeps a core busy
        }
    }

    async fn execute(&self, job: Job) -> Result<Value, ExecutorError> {
        let text = job.inputs["text"].as_str().unwrap_or_default();
        job.progress.report(0.5); // optional; work that takes long also watches `job.cancel`
        match text.split_whitespace().count() {
            0 => Err(ExecutorError::new("`text` has no words")), // the task's `error`
            words => Ok(json!({"words": words})),                // the task's `result`
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Next to the built-in executors, with at most four attempts of ours at once.
    let registry = with_built_ins(Registry::builder(), BuiltInOptions::default())?
        .register(Arc::new(WordCount))?
        .concurrency("word_count", 4)
        .build()?;
    for executor in registry.iter() {
        println!("{}: {}", executor.name(), executor.description().summary);
    }

    // One attempt by hand; a server makes such jobs from tasks.
    let text = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "hello world".to_owned());
    let inputs = Map::from_iter([("text".to_owned(), Value::from(text))]);
    let executor = registry.get("wc").ok_or("not registered")?;
    if let Err(violations) = executor.check_inputs(&Value::Object(inputs.clone())) {
        return Err(format!("the inputs do not conform: {violations:?}").into());
    }
    let clock = SystemClock::default();
    let job = Job {
        flow_id: FlowId(clock.uuid()),
        run_id: RunId(clock.uuid()),
        task_id: TaskId(clock.uuid()),
        attempt: 1,
        name: "count".into(),
        inputs,
        params: Map::new(),
        schemas: Map::new(),
        dependencies: Vec::new(),
        ends_at: None,
        cancel: CancellationToken::new(),
        progress: ProgressReporter::new().0,
        traceparent: None,
    };
    println!(
        "{:?}",
        run_attempt(executor, job, TimeLimits::default()).await
    );
    Ok(())
}
