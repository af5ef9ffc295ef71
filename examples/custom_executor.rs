//! An executor of one's own: implement [`Executor`], register it, name it in `schemas.method`. The
//! program is taskledger with one executor more: `serve`, `run` and all other commands work.
//!
//! ```sh
//! echo '[{"name": "count", "schemas": {"method": "word_count"}, "inputs": {"text": "dear reader"}}]' |
//!   cargo run --example custom_executor -- run - --data-dir target/custom-executor
//! cargo run --example custom_executor -- serve
//! ```

use async_trait::async_trait;
use clap::Parser;
use serde_json::{Value, json};
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use taskledger::cli::Cli;
use taskledger::engine::executor::{
    Concurrency, Description, Executor, ExecutorError, Job, Registry,
};

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
            pure: true,       // needs neither time nor anything outside
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
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    // Next to the built-in executors, with at most four attempts of ours at once.
    let executors = Registry::builder()
        .register(Arc::new(WordCount))?
        .concurrency("word_count", 4);
    Ok(Cli::parse().run_with(executors).await?)
}
