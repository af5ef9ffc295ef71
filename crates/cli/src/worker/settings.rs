//! What a worker is told on the command line.

use std::ffi::OsString;

/// What the worker asks for and how it works.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Settings {
    /// A method whose tasks this worker does; may be repeated
    #[arg(long = "method", value_name = "NAME", required = true, value_parser = method)]
    pub(super) methods: Vec<String>,
    /// Programs at once, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) concurrency: u32,
    /// Name of this worker; default: the user or service of the token
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub(super) worker: Option<String>,
    /// Lease of a task in seconds, 5 to 3600; the worker renews it after a third of that time, or of
    /// `cancel_grace_seconds` if that is shorter
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(5..=3600))]
    pub(super) lease_seconds: u64,
    /// Report lines `progress 0.5 message` on the program's stderr as progress
    #[arg(long)]
    pub(super) progress: bool,
    /// Seconds that programs may continue after a signal to stop, 0 to 86400
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub(super) grace_seconds: u64,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub(super) program: Vec<OsString>,
}

/// A method or a worker: 1 to 255 characters.
fn name(text: &str) -> Result<String, String> {
    match text.chars().count() {
        1..=255 => Ok(text.to_owned()),
        count => Err(format!("{count} characters, expected 1 to 255")),
    }
}

/// A method, by its whole name.
fn method(text: &str) -> Result<String, String> {
    match text.contains('*') {
        false => name(text),
        true => Err(
            "`*` is not a wildcard here: expected the whole name of a method; --method may be repeated, and `taskledger \
             workers methods` shows those that are known"
                .to_owned(),
        ),
    }
}
