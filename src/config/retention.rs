//! Which finished flows leave the log, and where they go.

use crate::retention::{self, Pace, Policy};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use taskledger_domain::flow::Rest;

/// Settings of archiving beside a running server.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct RetentionConfig {
    /// Archive finished flows whose last event is older, such as `30d`: every hour they are copied to
    /// --retention-archive and removed from the log
    #[arg(
        long = "retention-age",
        value_name = "AGE",
        env = "TASKLEDGER_RETENTION_AGE",
        value_parser = retention::age,
        requires = "retention_archive"
    )]
    pub age: Option<Duration>,

    /// Folder of the archive: one file for each batch of flows
    #[arg(
        id = "retention_archive",
        long = "retention-archive",
        value_name = "DIR",
        env = "TASKLEDGER_RETENTION_ARCHIVE",
        requires = "age"
    )]
    pub archive: Option<PathBuf>,

    /// Also archive flows with pending tasks in which nothing runs: never executed, or blocked
    #[arg(
        long = "retention-pending",
        env = "TASKLEDGER_RETENTION_PENDING",
        requires = "age"
    )]
    pub pending: bool,
}

impl RetentionConfig {
    /// What is archived; `None` when nothing is.
    #[must_use]
    pub fn policy(&self) -> Option<Policy> {
        Some(Policy {
            age: self.age?,
            rest: rest(self.pending),
            archive: self.archive.clone()?,
            pace: Pace::Gentle,
        })
    }
}

/// How much at rest flows must be.
#[must_use]
pub const fn rest(pending: bool) -> Rest {
    if pending { Rest::Idle } else { Rest::Finished }
}
