//! Messages and their parts.

use crate::read::{Named, Object, Wire};
use crate::write::{Members, bytes};
use serde_json::{Map, Value};

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The client.
    User,
    /// The agent, which answers the client.
    Agent,
}

impl Named for Role {
    const WHAT: &'static str = "role";
    const UNSPECIFIED: &'static str = "ROLE_UNSPECIFIED";
    const ALL: &'static [(Self, i32, &'static str)] =
        &[(Self::User, 1, "ROLE_USER"), (Self::Agent, 2, "ROLE_AGENT")];
}

/// One unit of communication.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// By whoever made it.
    pub message_id: String,
    /// The context that the message belongs to, if the sender knows it.
    pub context_id: Option<String>,
    /// The task that it is about.
    pub task_id: Option<String>,
    /// Who speaks.
    pub role: Role,
    /// What is said; one at least.
    pub parts: Vec<Part>,
    /// Free-form members, which the protocol does not interpret.
    pub metadata: Option<Map<String, Value>>,
    /// URIs of extensions that it uses.
    pub extensions: Vec<String>,
    /// Other tasks that it refers to.
    pub reference_task_ids: Vec<String>,
}

impl Wire for Message {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let message_id = from.required_text("messageId");
        let context_id = from.text("contextId");
        let task_id = from.text("taskId");
        let role = from.required_named("role");
        let parts = from.required_many("parts");
        let metadata = from.map("metadata");
        let extensions = from.texts("extensions");
        let reference_task_ids = from.texts("referenceTaskIds");
        Some(Self {
            message_id: message_id?,
            context_id,
            task_id,
            role: role?,
            parts,
            metadata,
            extensions,
            reference_task_ids,
        })
    }

    fn write(&self) -> Map<String, Value> {
        Members::new()
            .with("messageId", &*self.message_id)
            .text("contextId", self.context_id.as_deref())
            .text("taskId", self.task_id.as_deref())
            .named("role", self.role)
            .all("parts", &self.parts)
            .map("metadata", self.metadata.as_ref())
            .texts("extensions", &self.extensions)
            .texts("referenceTaskIds", &self.reference_task_ids)
            .done()
    }
}

/// A piece of a message or artifact.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// What it holds.
    pub content: Content,
    /// Free-form members, which the protocol does not interpret.
    pub metadata: Option<Map<String, Value>>,
    /// The name of a file.
    pub filename: Option<String>,
    /// The media type of the content.
    pub media_type: Option<String>,
}

/// The content of a part: exactly one of these.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A text, which may be empty.
    Text(String),
    /// Bytes of a file.
    Raw(Vec<u8>),
    /// Where a file is.
    Url(String),
    /// Any JSON value, null included.
    Data(Value),
}

/// The members of which a part has exactly one.
const CONTENTS: &str = "`text`, `raw`, `url` and `data`";

impl Part {
    /// A part with this content and nothing else.
    #[must_use]
    pub const fn of(content: Content) -> Self {
        Self {
            content,
            metadata: None,
            filename: None,
            media_type: None,
        }
    }

    /// A part whose content is plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::of(Content::Text(text.into()))
    }

    /// A JSON value.
    pub const fn data(value: Value) -> Self {
        Self::of(Content::Data(value))
    }

    /// The texts of a message, one a line; `None` if none has text.
    #[must_use]
    pub fn texts_of(parts: &[Self]) -> Option<String> {
        let texts: Vec<&str> = parts.iter().filter_map(Self::as_text).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    }

    fn as_text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            Content::Raw(_) | Content::Url(_) | Content::Data(_) => None,
        }
    }

    /// The text of an artifact: its pieces, which follow each other without a separator; `None` if no part has text.
    #[must_use]
    pub fn text_of_artifact(parts: &[Self]) -> Option<String> {
        let texts: Vec<&str> = parts.iter().filter_map(Self::as_text).collect();
        (!texts.is_empty()).then(|| texts.concat())
    }

    /// The same parts of an artifact, where pieces of a text that follow each other are one part. Parts with metadata
    /// or a file name are left as they are.
    #[must_use]
    pub fn joined(parts: &[Self]) -> Vec<Self> {
        let mut joined: Vec<Self> = Vec::with_capacity(parts.len());
        for part in parts {
            let is_plain = |it: &Self| it.metadata.is_none() && it.filename.is_none();
            if let (Content::Text(more), Some(last)) = (&part.content, joined.last_mut())
                && is_plain(part)
                && is_plain(last)
                && last.media_type == part.media_type
                && let Content::Text(text) = &mut last.content
            {
                text.push_str(more);
                continue;
            }
            joined.push(part.clone());
        }
        joined
    }

    /// The first JSON value of these.
    #[must_use]
    pub fn data_of(parts: &[Self]) -> Option<&Value> {
        parts.iter().find_map(|part| match &part.content {
            Content::Data(data) => Some(data),
            Content::Text(_) | Content::Raw(_) | Content::Url(_) => None,
        })
    }

    /// The media type: as given, else that of the kind of content; `None` for files that say nothing.
    #[must_use]
    pub fn media_type(&self) -> Option<&str> {
        match (&self.media_type, &self.content) {
            (Some(given), _) => Some(given),
            (None, Content::Text(_)) => Some("text/plain"),
            (None, Content::Data(_)) => Some("application/json"),
            (None, Content::Raw(_) | Content::Url(_)) => None,
        }
    }
}

impl Wire for Part {
    fn read(from: &mut Object<'_>) -> Option<Self> {
        let text = from.content("text").map(Content::Text);
        let raw = from.bytes("raw").map(Content::Raw);
        let url = from.content("url").map(Content::Url);
        let data = from.any("data");
        let metadata = from.map("metadata");
        let filename = from.text("filename");
        let media_type = from.text("mediaType");
        let mut given: Vec<Content> = [text, raw, url].into_iter().flatten().collect();
        match data {
            // Some clients write every member: then a null beside another content is unset.
            Some(Value::Null) if !given.is_empty() => {}
            Some(data) => given.push(Content::Data(data)),
            None => {}
        }
        let content = match (given.pop(), given.is_empty()) {
            (Some(content), true) => content,
            (Some(_), false) => {
                from.fault(
                    "",
                    format!("exactly one of {CONTENTS} is required, not several"),
                );
                return None;
            }
            (None, _) => {
                from.fault("", format!("exactly one of {CONTENTS} is required"));
                return None;
            }
        };
        Some(Self {
            content,
            metadata,
            filename,
            media_type,
        })
    }

    fn write(&self) -> Map<String, Value> {
        let members = match &self.content {
            Content::Text(text) => Members::new().with("text", &**text),
            Content::Raw(raw) => Members::new().with("raw", bytes(raw)),
            Content::Url(url) => Members::new().with("url", &**url),
            Content::Data(data) => Members::new().with("data", data.clone()),
        };
        members
            .map("metadata", self.metadata.as_ref())
            .text("filename", self.filename.as_deref())
            .text("mediaType", self.media_type.as_deref())
            .done()
    }
}
