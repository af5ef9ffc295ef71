//! Sets up logging for the process. Everything else only writes `tracing` events.

use crate::config::{LogConfig, LogFormat};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

/// Sends log entries to standard error from now on. A second call changes nothing.
///
/// # Errors
/// The level cannot be read: the operator corrects it.
pub fn init(config: &LogConfig) -> Result<(), ParseError> {
    // What the database remarks on our own statements ("exists already, skipping") is no news. Said
    // first, so that the operator's own words win.
    let filter =
        EnvFilter::builder().parse(format!("sqlx::postgres::notice=warn,{}", config.level))?;
    let json = match config.format {
        LogFormat::Json => true,
        LogFormat::Pretty => false,
        LogFormat::Auto => !std::io::stderr().is_terminal(),
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // Fails only when the log is already set up, as between tests of one process.
    let _ = if json {
        builder.json().flatten_event(true).try_init()
    } else {
        builder.try_init()
    };
    Ok(())
}
