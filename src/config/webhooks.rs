//! Webhooks, and the secrets that they sign with.

use super::seconds;
use crate::webhooks::schedule::{ENTRIES_MAX, SECONDS_MAX};
use crate::webhooks::worker;
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Settings of webhooks.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct WebhookConfig {
    /// File with the keys that encrypt secrets: 32 random bytes in base64 on each line. The first key encrypts, all
    /// decrypt. Only the owner may be able to read it. Default: a file in the data folder; with a database and no
    /// file, secrets cannot be stored
    #[arg(
        long = "secrets-key-file",
        value_name = "FILE",
        env = "TASKLEDGER_SECRETS_KEY_FILE"
    )]
    pub secrets_key_file: Option<PathBuf>,

    /// Seconds that one delivery of a webhook may take
    #[arg(
        long = "webhook-timeout",
        value_name = "SECONDS",
        env = "TASKLEDGER_WEBHOOK_TIMEOUT",
        default_value = "15",
        value_parser = |text: &str| seconds(text, 30)
    )]
    pub timeout: Duration,

    /// Seconds before each attempt to deliver, for webhooks without their own schedule
    #[arg(
        long = "webhook-schedule",
        value_name = "SECONDS",
        env = "TASKLEDGER_WEBHOOK_SCHEDULE",
        default_value = "0,5,300,1800,7200,18000,36000,36000",
        value_parser = schedule
    )]
    pub schedule: Schedule,
}

/// Seconds before each attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule(pub Arc<[u32]>);

impl Default for WebhookConfig {
    fn default() -> Self {
        let usual = worker::Options::default();
        Self {
            secrets_key_file: None,
            timeout: usual.timeout,
            schedule: Schedule(usual.schedule),
        }
    }
}

impl WebhookConfig {
    /// The part that concerns sending.
    #[must_use]
    pub fn worker(&self) -> worker::Options {
        worker::Options {
            timeout: self.timeout,
            schedule: self.schedule.0.clone(),
            ..worker::Options::default()
        }
    }
}

fn schedule(text: &str) -> Result<Schedule, String> {
    let entries: Option<Arc<[u32]>> = text
        .split(',')
        .map(|entry| entry.trim().parse().ok())
        .collect();
    let fits = |entries: &Arc<[u32]>| {
        (1..=ENTRIES_MAX).contains(&entries.len())
            && entries.iter().all(|seconds| *seconds <= SECONDS_MAX)
    };
    entries.filter(fits).map(Schedule).ok_or_else(|| {
        format!(
            "expected 1 to {ENTRIES_MAX} whole numbers up to {SECONDS_MAX}, \
             with commas between"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhooks::schedule::DEFAULT_SECONDS;
    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        webhooks: WebhookConfig,
    }

    #[test]
    fn without_options_the_schedule_is_the_usual_one() {
        let given = Program::parse_from(["taskledger"]).webhooks;
        assert_eq!(given.schedule.0.as_ref(), DEFAULT_SECONDS);
        assert_eq!(given, WebhookConfig::default());
    }

    #[test]
    fn a_schedule_is_a_short_list_of_seconds() {
        assert_eq!(schedule("0, 5,60").unwrap().0.as_ref(), [0, 5, 60]);
        for bad in ["", "x", "-1", "1;2", "999999999", &"1,".repeat(30)] {
            assert!(schedule(bad).is_err(), "{bad}");
        }
    }
}
