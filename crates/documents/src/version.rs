//! The types of a saved document and its versions.

use std::sync::Arc;
use taskledger_domain::Timestamp;

/// The form in which a document was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As a text in YAML or JSON.
    Text,
    /// As a JSON object, whose text is kept.
    Json,
}

impl Form {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// A document that is to be saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewVersion {
    /// The name that it is kept by.
    pub name: Arc<str>,
    /// The version that its author gave it.
    pub info_version: Arc<str>,
    /// Hash of its contents, whatever its form.
    pub hash: Arc<str>,
    /// How it was given.
    pub form: Form,
    /// The document as text.
    pub text: Arc<str>,
    /// Who saves it.
    pub by: Arc<str>,
    /// When it is saved.
    pub at: Timestamp,
}

/// One saved version, without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The name under which the document is kept.
    pub name: Arc<str>,
    /// Its number, from 1; deletions count.
    pub version: u32,
    /// The version that its author gave it.
    pub info_version: Arc<str>,
    /// Hash of its contents.
    pub hash: Arc<str>,
    /// Bytes of the document's text.
    pub bytes: u64,
    /// When it was saved.
    pub saved_at: Timestamp,
    /// Who saved it.
    pub saved_by: Arc<str>,
}

/// A saved version with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Name, number and facts of the version.
    pub version: Version,
    /// How it was given.
    pub form: Form,
    /// The document as text.
    pub text: Arc<str>,
}

/// The kinds of events in the history of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A version was saved.
    Saved,
    /// All versions until then were deleted.
    Deleted,
}

impl EventKind {
    /// As it is stored and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Saved => "saved",
            Self::Deleted => "deleted",
        }
    }
}

/// One event of a name. Of a deletion, texts are empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// Number, author and time of it.
    pub version: Version,
    /// Whether the document is kept.
    pub is_kept: bool,
}
