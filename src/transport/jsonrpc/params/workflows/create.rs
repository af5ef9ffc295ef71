//! `workflows.create`.

use super::super::super::reader::{BOOLEAN, Parameters, Reader, text};
use super::kinds::{ObjectKind, document};
use crate::application::api::workflows::Document;
use serde_json::{Map, Value};
use taskledger_domain::Violation;
use taskledger_domain::limits::KEY_CHARS_MAX;

/// What to create.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// The document.
    pub document: Document,
    /// Most warnings are errors.
    pub strict: bool,
    /// What `$trigger` names.
    pub trigger: Map<String, Value>,
    /// Whose run it is.
    pub user_id: Option<String>,
    /// Whether it begins at once.
    pub execute: bool,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let document = document(&mut reader);
        let strict = reader.with_default(
            "strict",
            BOOLEAN,
            false,
            "Whether unknown keys and what is probably a mistake are errors.",
        );
        let trigger = reader.optional(
            "trigger",
            ObjectKind,
            "What the run is started with: `$trigger.key` in the document names members of it.",
        );
        let user_id = reader.optional(
            "user_id",
            text(KEY_CHARS_MAX),
            "Whose run it is; without it the caller's.",
        );
        let execute = reader.with_default(
            "execute",
            BOOLEAN,
            false,
            "Whether the run begins at once; else `tasks.execute` with `root_task_id` begins it.",
        );
        reader.finish(|| {
            Some(Self {
                document: document?,
                strict,
                trigger: trigger.unwrap_or_default(),
                user_id,
                execute,
            })
        })
    }
}
