//! Stops what an attempt has left running outside the server when it asked a question that nobody will answer any more.

use super::{Dispatcher, job, limits};
use crate::application::ports::Started;
use crate::engine::executor::ProgressReporter;
use futures_util::FutureExt as _;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::Version;
use taskledger_domain::flow::Event;
use tokio_util::sync::CancellationToken;

/// How long it may take once it has begun, tries again included.
const GIVING_UP_TIMEOUT: Duration = Duration::from_secs(60);
/// Attempts for which this happens at once; others wait.
pub(super) const GIVING_UP_AT_ONCE_MAX: usize = 32;

impl Dispatcher {
    /// Has the executor of an attempt stop what it has left, when its turn comes.
    pub(super) async fn gives_up(self: Arc<Self>, attempt: Started, asked_at: Version) {
        let task = attempt.launch.task;
        let given_up = async {
            let _turn = self.giving_up.acquire().await;
            let given_up = AssertUnwindSafe(self.given_up(&attempt, asked_at)).catch_unwind();
            tokio::time::timeout(GIVING_UP_TIMEOUT, given_up).await
        };
        tokio::select! {
            () = self.stop.cancelled() => {}
            ended = given_up => {
                if !matches!(ended, Ok(Ok(()))) {
                    tracing::warn!(task.id = %task, "what a task has left outside could not be stopped");
                }
            }
        }
    }

    /// Has the executor of an attempt stop what it has left, if it leaves something.
    async fn given_up(&self, attempt: &Started, asked_at: Version) {
        let executors = self.directory.newest();
        let registered = executors.get(&attempt.launch.method);
        let Some(executor) = registered.map(|it| it.executor().clone()) else {
            return;
        };
        if !executor.leaves_something() {
            return;
        }
        let never = CancellationToken::new();
        let store = self.source.store();
        let asked = store.read_versions(attempt.flow, &[asked_at]).await;
        let question = asked.ok().and_then(|events| {
            let event = &events.first()?.event;
            if let Event::TaskSuspended(e) = &**event {
                return Some(e.question.to_map());
            }
            None
        });
        let Some(question) = question else {
            tracing::warn!(task.id = %attempt.launch.task, "what a task has asked cannot be read");
            return;
        };
        let material = match self.source.material(attempt).await {
            Ok(material) => material,
            Err(error) => {
                let task = attempt.launch.task;
                tracing::warn!(task.id = %task, %error, "what a task was given cannot be read");
                return;
            }
        };
        let inputs = material.specification.inputs.to_map();
        let named = executor.secrets(&inputs);
        let Ok(secrets) = self.secrets(attempt, &named, &never).await else {
            return;
        };
        let now = self.clock.now();
        let limits = limits(attempt, &material, now);
        let (reporter, _) = ProgressReporter::new();
        let mut job = job(attempt, material, inputs, limits, now, never, reporter);
        job.secrets = secrets;
        executor.give_up(job, question).await;
    }
}
