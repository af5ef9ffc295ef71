//! How agents reach the EventBus, and how long their tasks wait.

use super::seconds;
use super::server::listen;
use crate::transport::http;
use clap::Args;
use std::time::Duration;

/// Seconds that a task may wait for an agent, at most: 30 days.
const TTL_SECONDS_MAX: u64 = 30 * 24 * 3600;
/// Bytes of a message that an operator may ask for: below the least, published tasks would not fit; above the most, few
/// messages would take all the room for requests.
const MESSAGE_BYTES: std::ops::RangeInclusive<i64> = 65_536..=67_108_864;

/// Settings of the agent broker.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct BrokerConfig {
    /// Address of a further listener with the agent broker (gRPC) only, such as 127.0.0.1:50051; none unless given
    #[arg(
        id = "broker_listen",
        long = "broker-listen",
        value_name = "HOST:PORT",
        env = "TASKLEDGER_BROKER_LISTEN",
        value_parser = listen
    )]
    pub listen: Option<String>,

    /// Address of a listener for monitoring the agent broker, without credentials: GET /health, /ready and /metrics
    /// with the metric names of AgentHub; none unless given
    #[arg(
        id = "broker_metrics_listen",
        long = "broker-metrics-listen",
        value_name = "HOST:PORT",
        env = "TASKLEDGER_BROKER_METRICS_LISTEN",
        value_parser = listen
    )]
    pub metrics_listen: Option<String>,

    /// Bytes of a message of the agent broker
    #[arg(
        id = "broker_message_bytes",
        long = "broker-message-bytes",
        value_name = "BYTES",
        env = "TASKLEDGER_BROKER_MESSAGE_BYTES",
        default_value_t = http::MESSAGE_BYTES_DEFAULT,
        value_parser = clap::value_parser!(u32).range(MESSAGE_BYTES)
    )]
    pub message_bytes: u32,

    /// Seconds that a task without a deadline waits for an agent before it fails. Default: no limit
    #[arg(
        id = "broker_ttl",
        long = "broker-ttl",
        value_name = "SECONDS",
        env = "TASKLEDGER_BROKER_TTL",
        value_parser = |text: &str| seconds(text, TTL_SECONDS_MAX)
    )]
    pub ttl: Option<Duration>,
}

impl BrokerConfig {
    /// The part that concerns the listener of calls.
    #[must_use]
    pub fn options(&self) -> http::BrokerOptions {
        http::BrokerOptions {
            listen: self.listen.clone(),
            message_bytes_max: self.message_bytes as usize,
            ttl: self.ttl,
        }
    }
}
