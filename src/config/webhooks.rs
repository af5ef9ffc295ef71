//! Webhooks, and the secrets that they sign with.

use clap::Args;
use std::path::PathBuf;

/// Settings of webhooks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct WebhookConfig {
    /// File with the keys under which secrets are kept: 32 random bytes in base64 on each line, the first one seals, all open; readable by its owner only. Without it, a data folder gets a file of its own, and a database keeps no secrets
    #[arg(
        long = "secrets-key-file",
        value_name = "FILE",
        env = "TASKLEDGER_SECRETS_KEY_FILE"
    )]
    pub secrets_key_file: Option<PathBuf>,
}
