//! What a webhook can be made with and changed to.

use super::headers::Headers;
use super::{CliError, Params};
use crate::labels::selector;
use clap::ValueEnum;
use serde_json::Value;

/// Options that `create` and `update` share.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Only these events, separated by commas; default for a new webhook: all events of tasks
    #[arg(long, alias = "types", value_delimiter = ',', value_name = "EVENT")]
    events: Vec<String>,
    /// Only this flow, named by its root task
    #[arg(long, value_name = "ID")]
    flow: Option<String>,
    /// Only flows of this user
    #[arg(long)]
    user: Option<String>,
    /// Only tasks with this label: KEY=VALUE, or KEY for any value; all must be met
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,
    /// For people
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    #[command(flatten)]
    headers: Headers,
    /// Which messages wait for earlier ones
    #[arg(long, value_enum)]
    ordering: Option<Ordering>,
    /// Seconds before each attempt, with commas, instead of the server's schedule
    #[arg(long, value_delimiter = ',', value_name = "SECONDS")]
    schedule: Vec<u32>,
}

impl Options {
    /// These parameters, with what is given here.
    pub(super) fn added_to(self, params: Params) -> Result<Params, CliError> {
        Ok(params
            .maybe("events", some(self.events))
            .maybe("flow_id", self.flow)
            .maybe("user_id", self.user)
            .maybe("labels", selector(&self.labels)?)
            .maybe("description", self.description)
            .maybe("headers", self.headers.params()?)
            .maybe("ordering", self.ordering.map(Ordering::as_str))
            .maybe("schedule", some(self.schedule)))
    }
}

/// Which messages wait for earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Ordering {
    /// Nothing waits
    None,
    /// One notice of a task at a time, in order
    Task,
    /// One notice at a time, in order
    Endpoint,
}

impl Ordering {
    const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Task => "task",
            Self::Endpoint => "endpoint",
        }
    }
}

/// A list, when something is in it.
pub(super) fn some<T: Into<Value>>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}
