//! Who may call.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Whether callers must authenticate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum AuthMode {
    /// If there is a token or an issuer, or other machines can reach the server, when it starts.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never: everybody may do everything.
    Off,
}

/// Settings of authentication.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
pub struct AuthConfig {
    /// Whether callers need a token. `auto`: if there is a token or an OIDC issuer, the server listens beyond
    /// this machine, or another node of the database asks for one
    #[arg(
        long = "auth",
        value_name = "MODE",
        env = "TASKLEDGER_AUTH",
        value_enum,
        default_value_t
    )]
    pub mode: AuthMode,

    /// File with a token that has every scope and is stored nowhere else; `taskledger tokens generate` prints one.
    /// A second line may hold the previous token during a change. Only the owner may be able to read the file
    #[arg(
        long = "admin-token-file",
        value_name = "FILE",
        env = "TASKLEDGER_ADMIN_TOKEN_FILE"
    )]
    pub admin_token_file: Option<PathBuf>,
}
