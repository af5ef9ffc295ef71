//! Where the data is and what may run.

use super::{EgressConfig, StorageConfig, WebhookConfig};
use clap::Args;
use std::str::FromStr;

/// Attempts of one executor at once that an operator may ask for.
const EXECUTOR_LIMIT_MAX: usize = 65_536;

/// Settings of everything behind the doors; for `serve`, and for `run` without a server.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct EngineConfig {
    /// Where the data is.
    #[command(flatten)]
    pub storage: StorageConfig,

    /// Attempts of one executor at once, for example `sleep_executor=1000`; may be repeated
    #[arg(
        long = "executor-limit",
        value_name = "NAME=N",
        env = "TASKLEDGER_EXECUTOR_LIMIT",
        value_delimiter = ','
    )]
    pub executor_limits: Vec<ExecutorLimit>,

    /// A program that `command_executor` may start; may be repeated. Without any, it is off
    #[arg(
        long = "allow-command",
        value_name = "PROGRAM",
        env = "TASKLEDGER_ALLOW_COMMAND",
        value_delimiter = ','
    )]
    pub allowed_commands: Vec<String>,

    /// Which receivers may be called.
    #[command(flatten)]
    pub egress: EgressConfig,

    /// Where notices are sent.
    #[command(flatten)]
    pub webhooks: WebhookConfig,
}

/// How many attempts of an executor may run at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorLimit {
    /// The executor.
    pub name: String,
    /// 1 to 65,536.
    pub limit: usize,
}

impl FromStr for ExecutorLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("expected NAME=N with N from 1 to {EXECUTOR_LIMIT_MAX}");
        let (name, limit) = text.split_once('=').ok_or_else(expected)?;
        let limit = limit.parse().map_err(|_| expected())?;
        if name.is_empty() || !(1..=EXECUTOR_LIMIT_MAX).contains(&limit) {
            return Err(expected());
        }
        Ok(Self {
            name: name.to_owned(),
            limit,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::ExecutorLimit;

    #[test]
    fn a_limit_names_an_executor_and_a_number() {
        assert_eq!(
            "sleep_executor=1000".parse(),
            Ok(ExecutorLimit {
                name: "sleep_executor".to_owned(),
                limit: 1000
            })
        );
        for bad in ["", "x", "x=", "x=0", "=3", "x=-1", "x=65537", "x=1=2"] {
            assert!(bad.parse::<ExecutorLimit>().is_err(), "{bad}");
        }
    }
}
