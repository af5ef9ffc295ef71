//! Requests and replies about workflow documents (RFC-0024), saved documents, and their runs.

use super::Warning;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
pub use taskledger_documents::{Event, EventKind, Form, Refusal, VERSIONS_MAX, Version};
use taskledger_domain::flow::{Counts, Waits};
use taskledger_domain::task::{Labels, Progress, Status};
use taskledger_domain::{Payload, RunId, TaskId, Violation};
pub use taskledger_workflows::{
    Change, ChangeKind, Diff, Fault, LackingValue, NoSchemas, PhaseSchemas, Played, Report, RunOf,
    UnfitTrigger, Unplayable, VALIDATION, WIRING, Workflow,
};

/// A workflow document as a caller gives it.
#[derive(Debug, Clone, PartialEq)]
pub enum Document {
    /// YAML 1.2, or JSON.
    Text(String),
    /// JSON that was a part of the call.
    Json(Payload),
}

/// Creates the tasks of one run of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateWorkflow {
    /// The workflow document, as the caller gave it.
    pub document: Document,
    /// Most warnings are errors.
    pub strict: bool,
    /// What `$trigger` names.
    pub trigger: Payload,
    /// The user that will own the run; absent: the caller.
    pub user_id: Option<String>,
    /// Whether it begins at once.
    pub execute: bool,
    /// Labels of the root of the run.
    pub labels: Labels,
}

/// The tasks of one run of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct CreatedWorkflow {
    /// The run as a task: the parent of all phases.
    pub root: TaskId,
    /// The task of each phase, in the order of the document; `None` for one that is skipped.
    pub phases: Vec<(String, Option<PhaseTask>)>,
    /// The run, if it has begun.
    pub run: Option<RunId>,
    /// What is probably a mistake.
    pub warnings: Vec<Fault>,
    /// The same of the run that has begun.
    pub run_warnings: Vec<Warning>,
    /// Paths of what has no effect.
    pub not_acted_on: Vec<String>,
}

/// The task of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseTask {
    /// The id of the task that the phase has become.
    pub id: TaskId,
    /// How it stands: an executor of the server may have begun or ended it already. `None`: it was deleted meanwhile.
    pub status: Option<Status>,
}

/// A document, given or kept.
#[derive(Debug, Clone, PartialEq)]
pub enum Which {
    /// The document itself.
    Given(Document),
    /// A version that is kept; absent for the newest.
    Kept(Kept, Option<u32>),
}

/// Plays a run of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct DryRun {
    /// The workflow document, as the caller gave it.
    pub document: Document,
    /// Most warnings are errors.
    pub strict: bool,
    /// What `$trigger` names.
    pub trigger: Payload,
    /// What the phases give: `{phase: output | [outputs]}`.
    pub outputs: Payload,
}

/// A document that is kept, by whom and by which name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The owner; absent: the caller, or nobody without authentication; empty: nobody.
    pub owner: Option<Arc<str>>,
    /// The name under which the document is kept.
    pub name: Arc<str>,
}

/// A version that is kept, with its document.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptDocument {
    /// What it is.
    pub version: Version,
    /// The document, as it was given.
    pub document: Document,
}

/// Keeps a document by its name.
#[derive(Debug, Clone, PartialEq)]
pub struct SaveWorkflow {
    /// The workflow document to keep.
    pub document: Document,
    /// Most warnings are errors.
    pub strict: bool,
    /// The owner that the document gets, as in [`Kept`].
    pub owner: Option<Arc<str>>,
    /// Only if this is the newest version now; 0: only if none is kept.
    pub expected_version: Option<u32>,
}

/// The result of saving a document.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedWorkflow {
    /// The version that is the newest now.
    pub version: Version,
    /// Whether it is new; a document that is equal to the newest version is kept already.
    pub is_new: bool,
    /// What is different from the version before it, if there is one.
    pub diff: Option<Diff>,
    /// What is probably a mistake.
    pub warnings: Vec<Fault>,
    /// Paths of what has no effect.
    pub not_acted_on: Vec<String>,
}

/// Creates the tasks of one run of a document that is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct RunWorkflow {
    /// Name and owner of the document.
    pub kept: Kept,
    /// Which version; absent for the newest.
    pub version: Option<u32>,
    /// What `$trigger` names.
    pub trigger: Payload,
    /// The user that will own the run; absent: the caller.
    pub user_id: Option<String>,
    /// Whether it begins at once.
    pub execute: bool,
    /// Labels of the root of the run.
    pub labels: Labels,
}

/// Two versions, of which the second may be a document that is not kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// The version that was there before.
    pub from: u32,
    /// The version after; absent for a document of the call.
    pub to: Option<u32>,
    /// What is different.
    pub diff: Diff,
}

/// The second side of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub enum Newer {
    /// A version; absent for the newest.
    Version(Option<u32>),
    /// A document that is not kept.
    Document(Document),
}

/// The progress of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunProgress {
    /// The task that was named.
    pub task: TaskId,
    /// How it stands.
    pub status: Status,
    /// How far it is.
    pub progress: Progress,
    /// Everything below it, by status.
    pub counts: Counts,
    /// Tasks that wait for a person.
    pub suspended: Vec<SuspendedPhase>,
    /// How many of them are not listed.
    pub more_suspended: usize,
    /// Tasks whose turn it is and that no worker may claim.
    pub lacking: Vec<LackingPhase>,
    /// How many of them are not listed.
    pub more_lacking: usize,
    /// Tasks that the latest run has left pending, groups left out; absent while it goes on, or without one.
    pub skipped: Option<u32>,
    /// The document, if the task is a run of one.
    pub run_of: Option<RunOf>,
}

/// A task that waits for a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SuspendedPhase {
    /// The task that waits for a person.
    pub task: TaskId,
    /// Its name, while it is known.
    pub name: Option<Arc<str>>,
    /// Since when, and until when at the latest.
    pub waits: Waits,
}

/// A task whose inputs cannot be resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LackingPhase {
    /// The task that cannot run yet.
    pub task: TaskId,
    /// Its name, while it is known.
    pub name: Option<Arc<str>>,
    /// References without a value, with names of tasks.
    pub refs: Vec<String>,
}

/// Why a document gives no tasks.
#[derive(Debug, Clone, PartialEq)]
pub enum UnfitWorkflow {
    /// No document is kept by this name, or not this version: the member that names it.
    Absent(&'static str),
    /// Nothing can be played.
    Unplayable(Unplayable),
    /// What is kept stays as it is.
    NotKept(Refusal),
    /// It gives no JSON Schemas.
    NoSchemas(NoSchemas),
    /// It has errors; never empty.
    Document(Vec<Fault>),
    /// The trigger lacks a value, has one of another type than an input declares, or is too large.
    Trigger(UnfitTrigger),
    /// What is wrong with single tasks, such as their size.
    Tasks(Vec<Violation>),
}
