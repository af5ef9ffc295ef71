//! How much one caller may ask.

use clap::Args;
use std::num::NonZeroU32;

/// Settings of rates and quotas.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct LimitsConfig {
    /// Units a second that each caller may spend; a read costs 1, a change 5, each further task of a call 1; 0 for
    /// no limit. Default: 2000 for callers with credentials, no limit for others
    #[arg(
        long = "rate-per-second",
        value_name = "N",
        env = "TASKLEDGER_RATE_PER_SECOND"
    )]
    pub rate_per_second: Option<u32>,

    /// Units that a caller may spend at once; also the highest cost of one call. Default: 20000
    #[arg(long = "rate-burst", value_name = "N", env = "TASKLEDGER_RATE_BURST")]
    pub rate_burst: Option<NonZeroU32>,

    /// Flows of one user whose root has not ended; 0 for no limit
    #[arg(
        long = "quota-open-flows",
        value_name = "N",
        env = "TASKLEDGER_QUOTA_OPEN_FLOWS",
        default_value_t = 10_000
    )]
    pub quota_open_flows: u32,

    /// Pending tasks of one user; 0 for no limit
    #[arg(
        long = "quota-waiting-tasks",
        value_name = "N",
        env = "TASKLEDGER_QUOTA_WAITING_TASKS",
        default_value_t = 100_000
    )]
    pub quota_waiting_tasks: u32,

    /// Webhooks of one user; 0 for no limit
    #[arg(
        long = "quota-webhooks",
        value_name = "N",
        env = "TASKLEDGER_QUOTA_WEBHOOKS",
        default_value_t = 20
    )]
    pub quota_webhooks: u32,

    /// Streams of one user at once, on one node; 0 for no limit
    #[arg(
        long = "quota-streams",
        value_name = "N",
        env = "TASKLEDGER_QUOTA_STREAMS",
        default_value_t = 100
    )]
    pub quota_streams: u32,

    /// Callbacks of one user for runs in progress; 0 for no limit
    #[arg(
        long = "quota-callbacks",
        value_name = "N",
        env = "TASKLEDGER_QUOTA_CALLBACKS",
        default_value_t = 1_000
    )]
    pub quota_callbacks: u32,

    /// Claims of one user that wait for a task at once, on one node; 0 for no limit
    #[arg(
        long = "quota-waiting-claims",
        value_name = "N",
        env = "TASKLEDGER_QUOTA_WAITING_CLAIMS",
        default_value_t = 2_000
    )]
    pub quota_waiting_claims: u32,
}
