//! One task in each status, for clauses about what a status implies.

use super::clause::Finding;
use super::probe::Probe;
use super::tasks::{Started, text_of};
use serde_json::{Value, json};

/// Milliseconds that outlast every check: such a task ends only when it is cancelled.
pub(super) const FOREVER_MS: u64 = 600_000;

/// A task in each status.
#[derive(Debug, Clone)]
pub struct Lives {
    /// Waits for one that runs.
    pub pending: Value,
    /// Runs.
    pub in_progress: Value,
    /// Has completed.
    pub completed: Value,
    /// Has failed.
    pub failed: Value,
    /// Was cancelled while it ran.
    pub cancelled: Value,
}

impl Lives {
    /// All of them.
    #[must_use]
    pub const fn all(&self) -> [&Value; 5] {
        [
            &self.pending,
            &self.in_progress,
            &self.completed,
            &self.failed,
            &self.cancelled,
        ]
    }
}

impl Probe {
    /// A task in each status, as it was. The one that ran is cancelled afterwards, so that it takes
    /// no slot from other checks.
    ///
    /// # Errors
    /// [`Finding::Failed`]: a task does not get there.
    pub async fn one_of_each_status(&self) -> Result<Lives, Finding> {
        let lives = self.living().await?;
        self.cancel(&text_of(&lives.in_progress, "id")?).await?;
        Ok(lives)
    }

    /// A task in each status. The one that runs goes on until [`Self::cancel`].
    ///
    /// # Errors
    /// [`Finding::Failed`]: a task does not get there.
    pub async fn living(&self) -> Result<Lives, Finding> {
        let started = self
            .run(&[
                self.task("completed"),
                self.slow("running", FOREVER_MS).below("completed"),
                self.slow("cancelled", FOREVER_MS).below("completed"),
                self.failing("failed").below("completed"),
                self.task("waiting").below("completed").after("running"),
            ])
            .await?;
        let status = async |alias, status| self.wait_for(started.id(alias)?, status).await;
        let completed = status("completed", "completed").await?;
        let failed = status("failed", "failed").await?;
        status("cancelled", "in_progress").await?;
        self.cancel(started.id("cancelled")?).await?;
        Ok(Lives {
            pending: status("waiting", "pending").await?,
            in_progress: status("running", "in_progress").await?,
            completed,
            failed,
            cancelled: status("cancelled", "cancelled").await?,
        })
    }

    /// A task that runs until [`Self::cancel`], alone in its flow.
    ///
    /// # Errors
    /// [`Finding::Failed`]: it does not begin.
    pub async fn running(&self, alias: &str) -> Result<Started, Finding> {
        let started = self.run(&[self.slow(alias, FOREVER_MS)]).await?;
        self.wait_for(started.id(alias)?, "in_progress").await?;
        Ok(started)
    }

    /// Cancels a task.
    ///
    /// # Errors
    /// [`Finding::Failed`]: it was refused.
    pub async fn cancel(&self, id: &str) -> Result<Value, Finding> {
        self.result("tasks.cancel", json!({"task_id": id})).await
    }
}
