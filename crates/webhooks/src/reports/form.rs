//! The settings of a receiver of reports: its name, authentication, media type and format.

use std::sync::Arc;

/// The settings of a callback that gets reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    /// The caller's name for it, unique within the run; `None`: it gets a fresh one.
    pub name: Option<Arc<str>>,
    /// How the server authenticates itself there, as it is shown: the credentials are in a header.
    pub scheme: Option<Arc<str>>,
    /// The media type of what is sent.
    pub content_type: Arc<str>,
}

/// The format in which reports are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// What has changed.
    Change,
    /// How the run stands, with what has changed.
    Whole,
}
