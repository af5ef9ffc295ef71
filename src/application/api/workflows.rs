//! Workflow documents of RFC-0024.

use serde_json::{Map, Value};
use taskledger_domain::{RunId, TaskId, Violation};
pub use taskledger_workflows::{Fault, Report, VALIDATION, WIRING, Workflow};

/// A workflow document as a caller gives it.
#[derive(Debug, Clone, PartialEq)]
pub enum Document {
    /// YAML 1.2, or JSON.
    Text(String),
    /// JSON that was a part of the call.
    Json(Value),
}

/// Creates the tasks of one run of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateWorkflow {
    /// The document.
    pub document: Document,
    /// Most warnings are errors.
    pub strict: bool,
    /// What `$trigger` names.
    pub trigger: Map<String, Value>,
    /// Whose run it is; absent for the caller's.
    pub user_id: Option<String>,
    /// Whether it begins at once.
    pub execute: bool,
}

/// The tasks of one run of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct CreatedWorkflow {
    /// The run as a task: the parent of all phases.
    pub root: TaskId,
    /// The task of each phase, in the order of the document.
    pub phases: Vec<(String, TaskId)>,
    /// The run, if it has begun.
    pub run: Option<RunId>,
    /// What is probably a mistake.
    pub warnings: Vec<Fault>,
    /// Paths of what has no effect.
    pub not_acted_on: Vec<String>,
}

/// Why a document gives no tasks.
#[derive(Debug, Clone, PartialEq)]
pub enum UnfitWorkflow {
    /// It has errors; never empty.
    Document(Vec<Fault>),
    /// The trigger has a value of another type than an input declares, or is too large: why.
    Trigger(String),
    /// What is wrong with single tasks, such as their size.
    Tasks(Vec<Violation>),
}
