//! What an operator can set: flags, then `TASKLEDGER_*` variables, then defaults.
//!
//! Owns: the names, the defaults and their checks. Parsing is clap's; past it every value is typed
//! and within its bounds. May not touch: anything that runs.

mod a2a;
mod audited;
mod auth;
mod broker;
mod egress;
mod engine;
mod limits;
mod logging;
mod oidc;
mod retention;
mod server;
mod storage;
mod tls;
mod webhooks;

pub use a2a::A2aConfig;
pub use auth::{AuthConfig, AuthMode};
pub use broker::BrokerConfig;
pub use egress::{EgressConfig, ProxyUrl};
pub use engine::{EngineConfig, ExecutorLimit, FairShareWeight};
pub use limits::LimitsConfig;
pub use logging::{LogConfig, LogFormat};
pub use oidc::{OidcConfig, OidcError};
pub use retention::{RetentionConfig, rest};
pub use server::ServerConfig;
pub use storage::{DatabaseConfig, DatabaseUrl, StorageConfig};
pub use tls::TlsConfig;
pub use webhooks::WebhookConfig;

/// Seconds from text within bounds, for clap.
fn seconds(text: &str, max: u64) -> Result<std::time::Duration, String> {
    seconds_in(text, 1, max)
}

fn seconds_in(text: &str, min: u64, max: u64) -> Result<std::time::Duration, String> {
    match text.parse::<u64>() {
        Ok(seconds) if (min..=max).contains(&seconds) => {
            Ok(std::time::Duration::from_secs(seconds))
        }
        _ => Err(format!("expected whole seconds from {min} to {max}")),
    }
}
