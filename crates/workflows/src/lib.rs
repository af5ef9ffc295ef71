//! Workflow documents of RFC-0024: text or JSON in, a [`Workflow`] or every fault of the document out.
//!
//! Owns: reading YAML 1.2 and JSON within limits, the keys of a document, references between phases, the tasks
//! that a run consists of, and the differences of two versions. May not touch: files, a clock, the log, the state of a
//! run. [`read`] builds a tree of nodes with their places (`yaml`), checks it key by key (`document`, `phase`,
//! `inputs`, `graph`), and reports faults in the order of the document. Nothing stops at the first fault.

mod diff;
mod document;
mod executors;
mod faults;
mod fit;
mod graph;
mod hash;
mod initial_state;
mod inputs;
mod json;
pub mod limits;
mod members;
mod node;
mod outline;
mod path;
mod phase;
mod play;
mod reference;
mod retry;
mod schemas;
mod skip;
mod sound;
mod source;
mod tasks;
mod timers;
mod trigger;
mod types;
mod workflow;
mod yaml;

pub use diff::{Change, ChangeKind, Diff};
pub use faults::{Fault, VALIDATION, WIRING};
pub use play::{Played, Unplayable};
pub use schemas::{NoSchemas, PhaseSchemas};
pub use tasks::{ROOT, RunOf, UnfitTrigger, alias};
pub use trigger::LackingValue;
pub use workflow::{Backoff, Input, Phase, Retry, SkipWhen, Source, StartAt, Validation, Workflow};

use faults::Faults;
use node::Node;
use serde_json::Value;
use std::rc::Rc;

/// The findings of reading a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Why the document cannot be used, in its order; at most [`limits::FAULTS_MAX`], and one that counts the rest.
    pub errors: Vec<Fault>,
    /// What is probably a mistake; bounded as `errors`.
    pub warnings: Vec<Fault>,
    /// The workflow, if there are no errors.
    pub workflow: Option<Workflow>,
}

/// Reads a document in YAML 1.2, of which JSON is a part. `strict` makes errors of most warnings: unknown keys,
/// another `openintent` than 1.0, duplicate titles and dependencies, titles in place of names, optional outputs that
/// are wired to required inputs, outputs that may be of another type than the input declares.
/// Cost: O(bytes), at most [`limits::DOCUMENT_BYTES_MAX`].
#[must_use]
pub fn read(text: &str, strict: bool) -> Report {
    report(strict, |faults| yaml::read(text, faults))
}

/// Reads a document that is given as JSON value. Its faults have paths, but no lines, and its phases are in the order
/// of `serde_json`, by name; the hash is that of the same document in YAML. Cost: O(size), at most the limits.
#[must_use]
pub fn read_json(value: &Value, strict: bool) -> Report {
    report(strict, |faults| json::read(value, faults))
}

/// What a text in YAML 1.2 says, whatever it is about: the parser and the limits of documents. A key that is
/// written twice is an error.
/// Cost: O(bytes), at most [`limits::DOCUMENT_BYTES_MAX`].
///
/// # Errors
/// What is wrong with the text.
pub fn value(text: &str) -> Result<Value, Vec<Fault>> {
    let faults = Faults::new(true);
    let root = yaml::read(text, &faults);
    let root = root.filter(|_| !faults.has_errors());
    root.map(|root| root.to_value())
        .ok_or_else(|| faults.finish().0)
}

fn report(strict: bool, tree: impl FnOnce(&Faults) -> Option<Rc<Node>>) -> Report {
    let faults = Faults::new(strict);
    let root = tree(&faults);
    let workflow = root.as_ref().and_then(|root| document::read(root, &faults));
    let workflow = workflow.filter(|_| !faults.has_errors());
    if let (Some(workflow), Some(root)) = (&workflow, &root) {
        sound::check(workflow, root, &faults);
    }
    let workflow = workflow.filter(|_| !faults.has_errors());
    let (errors, warnings) = faults.finish();
    Report {
        errors,
        warnings,
        workflow,
    }
}
