//! What is logged, and in which form.

use clap::{Args, ValueEnum};

/// Settings of the log, which goes to standard error.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct LogConfig {
    /// Least severe level that is logged, or directives such as `info,taskledger::engine=debug`
    #[arg(
        long = "log-level",
        value_name = "LEVEL",
        env = "TASKLEDGER_LOG_LEVEL",
        default_value = "info"
    )]
    pub level: String,

    /// Form of a log entry; `auto` is `pretty` on a terminal and `json` elsewhere
    #[arg(
        long = "log-format",
        value_name = "FORMAT",
        env = "TASKLEDGER_LOG_FORMAT",
        value_enum,
        default_value_t
    )]
    pub format: LogFormat,
}

/// Form of a log entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum LogFormat {
    /// Pretty on a terminal, JSON elsewhere.
    #[default]
    Auto,
    /// One line for people.
    Pretty,
    /// One JSON object a line.
    Json,
}
