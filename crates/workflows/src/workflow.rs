//! The parsed form of a document without faults.

use serde_json::{Map, Value};
use taskledger_domain::Timestamp;

/// A workflow: phases, what each takes and gives, and what is kept of the document.
#[derive(Debug, Clone, PartialEq)]
pub struct Workflow {
    /// `info.name`, 1 to 255 characters.
    pub name: String,
    /// `info.version`; `1.0.0` without one.
    pub version: String,
    /// `info.description`; empty without one.
    pub description: String,
    /// `types`, as written.
    pub types: Option<Map<String, Value>>,
    /// In the order of the document; at least one.
    pub phases: Vec<Phase>,
    /// `validation`: how far values are checked; deep without one.
    pub validation: Validation,
    /// Keys of the document that are not acted on, with their values.
    pub kept: Map<String, Value>,
    /// Paths of what has no effect here, in the order of the document; at most
    /// [`crate::limits::NOT_ACTED_ON_MAX`].
    pub not_acted_on: Vec<String>,
    /// SHA-256 of the whole document as JSON with sorted keys, in lower-case hexadecimal digits.
    pub hash: String,
}

/// How far values are checked against named types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Validation {
    /// Values inside of values too.
    #[default]
    Deep,
    /// Only whether the members of a shape are there.
    Shallow,
}

/// One phase, which becomes one task of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// Its key in `workflow`, 1 to 255 characters.
    pub name: String,
    /// `title`; made of the name without one.
    pub title: String,
    /// `description`; empty without one.
    pub description: String,
    /// Who works on it: the method of the task.
    pub assign: String,
    /// Names of phases, each once, none its own.
    pub depends_on: Vec<String>,
    /// By local key, in the order of the document.
    pub inputs: Vec<(String, Input)>,
    /// Declared outputs; `None` without any. A list of names has become a map to `any`.
    pub outputs: Option<Map<String, Value>>,
    /// `initial_state`; empty without one.
    pub initial_state: Map<String, Value>,
    /// `constraints`, in the order of the document; empty without any.
    pub constraints: Vec<String>,
    /// `retry`, if the phase has one.
    pub retry: Option<Retry>,
    /// `start_at`, if the phase has one.
    pub start_at: Option<StartAt>,
    /// `delay_seconds`, if the phase has one.
    pub delay_seconds: Option<f64>,
    /// `skip_when`, if it is understood.
    pub skip_when: Option<SkipWhen>,
    /// Keys of the phase that are not acted on, with their values.
    pub kept: Map<String, Value>,
}

/// The source of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The output of a phase that this one depends on.
    Phase {
        /// Name of the phase that is referred to.
        phase: String,
        /// Key of its output.
        key: String,
        /// JSON pointer into the value.
        pointer: Option<String>,
    },
    /// What the run was started with.
    Trigger {
        /// Key of the trigger.
        key: String,
        /// JSON pointer into the value.
        pointer: Option<String>,
    },
    /// `initial_state` of the phase itself.
    InitialState {
        /// Key of the state.
        key: String,
        /// JSON pointer into the value.
        pointer: Option<String>,
    },
}

/// The time before which a phase does not begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartAt {
    /// The same in every run.
    At(Timestamp),
    /// A value that is known when the run is created; when there is none, or null, nothing is held back.
    Value {
        /// The reference, as written.
        reference: String,
        /// The trigger or the initial state.
        source: Source,
    },
}

/// The condition on which a phase is left out of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum SkipWhen {
    /// In every run, or in none.
    Always(bool),
    /// When a value that is known when the run is created is, or is not, as it says.
    Value {
        /// The trigger or the initial state.
        source: Source,
        /// What it equals; absent: it is there, and neither null nor false.
        is: Option<Value>,
        /// Whether it must not be so.
        negated: bool,
    },
}

/// One input of a phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// The reference, as written.
    pub reference: String,
    /// What the reference names.
    pub source: Source,
    /// Whether the phase cannot do without; true unless the document says otherwise.
    pub required: bool,
    /// The value if the reference has none; `Some(Null)` is a default.
    pub default: Option<Value>,
    /// The type that the consumer declares.
    pub type_: Option<Value>,
}

impl Input {
    /// Whether the phase cannot begin while the reference has no value.
    #[must_use]
    pub const fn needs_value(&self) -> bool {
        self.required && self.default.is_none()
    }
}

/// The retry policy of a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// Attempts in all, from 1; 3 unless the document says otherwise.
    pub max_attempts: u32,
    /// How delays grow; exponential unless the document says otherwise.
    pub backoff: Backoff,
    /// Milliseconds before the second attempt.
    pub initial_delay_ms: Option<u64>,
    /// Milliseconds that no delay exceeds.
    pub max_delay_ms: Option<u64>,
    /// Errors that are worth another attempt. Not acted on.
    pub retryable_errors: Vec<String>,
    /// Who takes over. Not acted on.
    pub fallback_agent: Option<String>,
}

/// How the delays between attempts grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backoff {
    /// Not at all.
    Constant,
    /// By the first delay each time.
    Linear,
    /// Twofold each time.
    Exponential,
}
