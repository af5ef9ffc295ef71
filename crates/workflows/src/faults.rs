//! The faults of a document, collected without stopping at the first.

use serde_json::Value;
use std::cell::{Cell, RefCell};
use taskledger_domain::contract::{Compatible, Mismatch, Type, compatible_within};
use taskledger_domain::suggestion::suggestion;

use crate::limits;
use crate::node::{At, short};
use crate::path::Path;

/// One thing that is wrong, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// `WorkflowValidationError`, or `InputWiringError` for what is wrong with `inputs` of a phase.
    pub error: &'static str,
    /// Where: `workflow.analysis.inputs.x`; empty for the document as a whole.
    pub path: String,
    /// Line in the text, from 1; absent for a document that was given as JSON value.
    pub line: Option<u32>,
    /// Column in characters, from 1; absent with `line`.
    pub column: Option<u32>,
    /// What is wrong, and what would be accepted.
    pub reason: String,
    /// How to mend it, if that can be guessed.
    pub suggestion: Option<String>,
    /// The phase that it belongs to.
    pub phase_name: Option<String>,
    /// For `InputWiringError`: the references that are wrong, as written, in order.
    pub invalid_refs: Vec<String>,
}

/// `Fault::error` for anything but wiring.
pub const VALIDATION: &str = "WorkflowValidationError";
/// `Fault::error` for `inputs` of a phase. spec: RFC-0024 4.4
pub const WIRING: &str = "InputWiringError";

impl Fault {
    pub(crate) fn new(path: &Path, at: Option<At>, reason: impl Into<String>) -> Self {
        Self {
            error: VALIDATION,
            path: path.clone().into_text(),
            line: at.map(|at| at.line),
            column: at.map(|at| at.column),
            reason: reason.into(),
            suggestion: None,
            phase_name: None,
            invalid_refs: Vec::new(),
        }
    }

    pub(crate) fn suggest(mut self, suggestion: Option<impl Into<String>>) -> Self {
        self.suggestion = suggestion.map(Into::into);
        self
    }

    pub(crate) fn wiring(mut self, invalid_refs: Vec<String>) -> Self {
        self.error = WIRING;
        self.invalid_refs = invalid_refs;
        self
    }
}

/// At most [`limits::FAULTS_MAX`] faults, and how many more there were.
#[derive(Debug, Default)]
struct List {
    faults: Vec<Fault>,
    more: usize,
}

impl List {
    fn push(&mut self, fault: Fault) {
        if self.faults.len() < limits::FAULTS_MAX {
            self.faults.push(fault);
        } else {
            self.more += 1;
        }
    }

    /// In the order of the document; faults of one place, and those without place, as they were found.
    fn finish(mut self) -> Vec<Fault> {
        self.faults.sort_by_key(|fault| (fault.line, fault.column));
        if self.more > 0 {
            let reason = format!("{} more are not listed", self.more);
            self.faults.push(Fault::new(&Path::default(), None, reason));
        }
        self.faults
    }
}

/// Collects faults. Shared by the readers of a document's parts, hence the interior mutability.
#[derive(Debug)]
pub(crate) struct Faults {
    strict: bool,
    errors: RefCell<List>,
    warnings: RefCell<List>,
    comparisons_left: Cell<usize>,
    type_steps_left: Cell<u64>,
    value_steps_left: Cell<u64>,
}

impl Faults {
    pub(crate) fn new(strict: bool) -> Self {
        Self {
            strict,
            errors: RefCell::default(),
            warnings: RefCell::default(),
            comparisons_left: Cell::new(limits::COMPARISONS_MAX),
            type_steps_left: Cell::new(limits::TYPE_STEPS_MAX),
            value_steps_left: Cell::new(limits::VALUE_STEPS_MAX),
        }
    }

    pub(crate) fn error(&self, fault: Fault) {
        self.errors.borrow_mut().push(fault);
    }

    /// As [`Faults::error`]; a fault that would not be listed is counted only, for those that are costly to make.
    pub(crate) fn error_with(&self, make: impl FnOnce() -> Fault) {
        let mut errors = self.errors.borrow_mut();
        if errors.faults.len() < limits::FAULTS_MAX {
            errors.faults.push(make());
        } else {
            errors.more += 1;
        }
    }

    /// An error of a strict reading, else a warning.
    pub(crate) fn lax(&self, fault: Fault) {
        if self.strict {
            self.error(fault);
        } else {
            self.warn(fault);
        }
    }

    /// A warning of any reading.
    pub(crate) fn warn(&self, fault: Fault) {
        self.warnings.borrow_mut().push(fault);
    }

    pub(crate) fn has_errors(&self) -> bool {
        !self.errors.borrow().faults.is_empty()
    }

    /// The name that was probably meant. All suggestions of a report together cost at most
    /// [`limits::COMPARISONS_MAX`]; after that there are none, nor for errors that are not listed.
    pub(crate) fn meant<'n>(
        &self,
        given: &str,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> Option<&'n str> {
        if self.errors.borrow().faults.len() >= limits::FAULTS_MAX {
            return None;
        }
        let letters: usize = names.clone().map(|name| name.len() + 1).sum();
        let cost = (given.len() + 1).saturating_mul(letters);
        let left = self.comparisons_left.get().checked_sub(cost)?;
        self.comparisons_left.set(left);
        suggestion(given, names)
    }

    /// How two types relate; `None` once all comparisons of a report have cost [`limits::TYPE_STEPS_MAX`].
    pub(crate) fn compatible(&self, producer: &Type, consumer: &Type) -> Option<Compatible> {
        let mut left = self.type_steps_left.get();
        let answer = compatible_within(producer, consumer, &mut left);
        self.type_steps_left.set(left);
        (left > 0).then_some(answer)
    }

    /// What is wrong with a value of the document. All checks of a report together cost at most
    /// [`limits::VALUE_STEPS_MAX`]; after that each value is said to be too costly to check.
    pub(crate) fn mismatch(&self, of: &Type, value: &Value) -> Option<Mismatch> {
        let mut left = self.value_steps_left.get();
        let found = of.mismatches_within(value, &mut left);
        self.value_steps_left.set(left);
        found.into_iter().next()
    }

    /// A type in a message. Long ones cost steps of [`Faults::compatible`].
    pub(crate) fn shown_type(&self, of: &Type) -> String {
        let text = of.to_string();
        let left = self.type_steps_left.get();
        self.type_steps_left
            .set(left.saturating_sub(text.len() as u64));
        short(&text)
    }

    /// [`Faults::meant`] as a sentence.
    pub(crate) fn did_you_mean<'n>(
        &self,
        given: &str,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> Option<String> {
        let name = self.meant(given, names)?;
        Some(format!("did you mean `{name}`?"))
    }

    /// Errors and warnings.
    pub(crate) fn finish(self) -> (Vec<Fault>, Vec<Fault>) {
        let errors = self.errors.into_inner().finish();
        (errors, self.warnings.into_inner().finish())
    }
}
