//! The notes that one attempt leaves for the next attempt of its task.

use async_trait::async_trait;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use taskledger_domain::SuspensionId;

/// The notes and answers that earlier attempts have left.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Past {
    /// The first of the attempts that are one to the outside: those before this one were interrupted, by a stop of the
    /// server or a move of the flow, and this one goes on.
    pub since: u32,
    /// Notes of those, the newest first.
    pub notes: Vec<String>,
    /// Whether there may be older notes, which were not looked for.
    pub is_cut_off: bool,
    /// The question to which this attempt, or the first of those, was given the answer.
    pub answered: Option<Answered>,
}

/// A question that was answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// Identifies the wait.
    pub suspension: SuspensionId,
    /// As it was asked.
    pub question: Map<String, Value>,
    /// What was answered.
    pub answer: Value,
}

/// Keeps notes.
#[async_trait]
pub trait Keeper: Send + Sync {
    /// Returns when the note is durable, or of no interest any more.
    async fn keep(&self, note: String);
}

/// Where an attempt keeps notes: they are seen in the history of the task, and given to its next attempt if this one is
/// interrupted.
#[derive(Clone, Default)]
pub struct Notes(Option<Arc<dyn Keeper>>);

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notes")
    }
}

impl Notes {
    /// Those of this keeper.
    #[must_use]
    pub fn of(keeper: Arc<dyn Keeper>) -> Self {
        Self(Some(keeper))
    }

    /// Keeps a note of at most `limits::MESSAGE_CHARS_MAX` characters, without secrets: it is an event of the log.
    /// Cost: a commit.
    pub async fn keep(&self, note: impl Into<String>) {
        if let Some(keeper) = &self.0 {
            keeper.keep(note.into()).await;
        }
    }
}
