//! Who may call.

use clap::Args;
use std::path::PathBuf;

/// Settings of tokens.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
pub struct AuthConfig {
    /// File with a token that may do everything, and is stored nowhere else: `taskledger tokens generate` makes one. A second line holds the token before, while they are exchanged. Others must not be able to read the file
    #[arg(
        long = "admin-token-file",
        value_name = "FILE",
        env = "TASKLEDGER_ADMIN_TOKEN_FILE"
    )]
    pub admin_token_file: Option<PathBuf>,
}
