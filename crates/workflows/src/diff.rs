//! Compares two versions of a workflow, and tells which differences break those who use it: callers, who give a
//! trigger; workers, who get inputs and give outputs; readers of results.

mod io;

use serde_json::Value;
use std::collections::{HashMap, HashSet};

use crate::limits;
use crate::node::short;
use crate::path::Path;
use crate::timers;
use crate::types::Named;
use crate::workflow::{Input, Phase, Retry, SkipWhen, Source, StartAt, Validation, Workflow};

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where, in both documents or the one that has it: `workflow.report.inputs.revenue`.
    pub path: String,
    /// What happened to it.
    pub kind: ChangeKind,
    /// What was there, shortened.
    pub before: Option<String>,
    /// What is there now, shortened.
    pub after: Option<String>,
    /// Who is broken by the change, and how; `None` for a change that breaks nobody.
    pub breaking: Option<&'static str>,
}

/// The kinds of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It is another one.
    Changed,
}

impl ChangeKind {
    /// The word for it in messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
        }
    }
}

/// All differences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// Those that break somebody first, then the others, each in the order of the newer document; at most
    /// [`limits::CHANGES_MAX`].
    pub changes: Vec<Change>,
    /// How many there are in all.
    pub count: usize,
    /// How many of them are breaking.
    pub breaking: usize,
}

impl Workflow {
    /// What is different in `newer`, for those who used this version. A phase with another name is another phase.
    /// Types are compared by what they accept: a type that is only written in another way is no difference. Types
    /// that cannot be compared count as broken. Cost: O(size of both), and 1,000,000 steps of comparisons.
    #[must_use]
    pub fn diff(&self, newer: &Self) -> Diff {
        let mut comparison = Comparison::new(self, newer);
        comparison.document();
        comparison.phases();
        comparison.finish()
    }
}

/// Both versions, and what was found.
struct Comparison<'w> {
    before: &'w Workflow,
    after: &'w Workflow,
    types: (Named, Named),
    /// Places of the trigger that every run of the older version needs.
    needed: HashSet<Place<'w>>,
    type_steps_left: u64,
    /// How the values of two declarations relate, by their texts.
    related: HashMap<[String; 2], io::Values>,
    /// Both documents name the same types.
    same_types: bool,
    breaking: Vec<Change>,
    others: Vec<Change>,
    breaking_count: usize,
    count: usize,
}

impl<'w> Comparison<'w> {
    fn new(before: &'w Workflow, after: &'w Workflow) -> Self {
        let named = |workflow: &Workflow| Named::of(workflow.types.as_ref()).0;
        Self {
            before,
            after,
            types: (named(before), named(after)),
            needed: needed_of_trigger(before),
            related: HashMap::new(),
            same_types: before.types == after.types,
            type_steps_left: limits::TYPE_STEPS_MAX,
            breaking: Vec::new(),
            others: Vec::new(),
            breaking_count: 0,
            count: 0,
        }
    }

    fn finish(self) -> Diff {
        let mut changes = self.breaking;
        changes.extend(self.others);
        changes.truncate(limits::CHANGES_MAX);
        Diff {
            changes,
            count: self.count,
            breaking: self.breaking_count,
        }
    }

    /// Keeps a change, if there is one and room for it.
    fn see(
        &mut self,
        path: &Path,
        (before, after): (Option<&Value>, Option<&Value>),
        breaking: Option<&'static str>,
    ) {
        let kind = match (before, after) {
            (None, None) => return,
            (None, Some(_)) => ChangeKind::Added,
            (Some(_), None) => ChangeKind::Removed,
            (Some(_), Some(_)) => ChangeKind::Changed,
        };
        self.count += 1;
        self.breaking_count += usize::from(breaking.is_some());
        let found = match breaking {
            Some(_) => &mut self.breaking,
            None => &mut self.others,
        };
        if found.len() < limits::CHANGES_MAX {
            found.push(Change {
                path: path.clone().into_text(),
                kind,
                before: before.map(shown),
                after: after.map(shown),
                breaking,
            });
        }
    }

    /// The same for a value that is null when it is not there, if it is another one.
    fn note_if_changed(
        &mut self,
        path: &Path,
        before: &Value,
        after: &Value,
        breaking: Option<&'static str>,
    ) {
        if before != after {
            let side = |value| Some(value).filter(|value: &&Value| !value.is_null());
            self.see(path, (side(before), side(after)), breaking);
        }
    }

    /// The same for a value that breaks nobody when it is another one.
    fn note(&mut self, path: &Path, before: &Value, after: &Value) {
        self.note_if_changed(path, before, after, None);
    }

    fn document(&mut self) {
        let (before, after) = (self.before, self.after);
        let info = Path::default().key("info");
        for (key, one, other) in [
            ("name", &before.name, &after.name),
            ("version", &before.version, &after.version),
            ("description", &before.description, &after.description),
        ] {
            self.note(&info.key(key), &text(one), &text(other));
        }
        if before.validation != after.validation {
            let (name, reason) = match after.validation {
                Validation::Deep => (
                    ["shallow", "deep"],
                    "outputs that were accepted may be refused",
                ),
                Validation::Shallow => (["deep", "shallow"], "members of outputs are not checked"),
            };
            let [one, other] = name.map(Value::from);
            self.see(
                &Path::default().key("validation"),
                (Some(&one), Some(&other)),
                Some(reason),
            );
        }
    }

    fn phases(&mut self) {
        let named = |workflow: &'w Workflow| -> HashMap<&'w str, &'w Phase> {
            let phases = workflow.phases.iter();
            phases.map(|phase| (phase.name.as_str(), phase)).collect()
        };
        let (before, after) = (named(self.before), named(self.after));
        let all = Path::default().key("workflow");
        for phase in &self.after.phases {
            let path = all.key(&phase.name);
            match before.get(phase.name.as_str()) {
                Some(older) => self.phase(&path, older, phase),
                None => {
                    let mut needs = phase.inputs.iter().map(|(_, input)| self.new_need(input));
                    let need = needs.find_map(|need| need);
                    self.see(&path, (None, Some(&text(&phase.assign))), need);
                }
            }
        }
        for phase in &self.before.phases {
            if !after.contains_key(phase.name.as_str()) {
                let gone = text(&phase.assign);
                let reason = "its results are gone, and its workers get nothing more";
                self.see(&all.key(&phase.name), (Some(&gone), None), Some(reason));
            }
        }
    }

    fn phase(&mut self, path: &Path, before: &Phase, after: &Phase) {
        self.note_if_changed(
            &path.key("assign"),
            &text(&before.assign),
            &text(&after.assign),
            Some("other workers are needed"),
        );
        for (key, one, other) in [
            ("title", &before.title, &after.title),
            ("description", &before.description, &after.description),
        ] {
            self.note(&path.key(key), &text(one), &text(other));
        }
        for (key, one, other) in [
            (
                "depends_on",
                sorted(&before.depends_on),
                sorted(&after.depends_on),
            ),
            (
                "constraints",
                list(&before.constraints),
                list(&after.constraints),
            ),
            (
                "initial_state",
                map(&before.initial_state),
                map(&after.initial_state),
            ),
            ("retry", retry(before), retry(after)),
            ("delay_seconds", delay_seconds(before), delay_seconds(after)),
        ] {
            self.note(&path.key(key), &one, &other);
        }
        let asks = after.start_at.as_ref().is_some_and(StartAt::is_of_trigger);
        self.note_if_changed(
            &path.key("start_at"),
            &start_at(before),
            &start_at(after),
            asks.then_some("triggers that were accepted may be refused"),
        );
        let may = after.skip_when.as_ref().is_some_and(SkipWhen::may_hold);
        self.note_if_changed(
            &path.key("skip_when"),
            &skip_when(before),
            &skip_when(after),
            may.then_some("it may be left out of runs that had it"),
        );
        self.note_kept(path, before, after);
        self.inputs(&path.key("inputs"), before, after);
        self.outputs(&path.key("outputs"), before, after);
    }

    /// Keys that are not acted on.
    fn note_kept(&mut self, path: &Path, before: &Phase, after: &Phase) {
        let keys = after.kept.keys().chain(before.kept.keys());
        let mut seen = HashSet::new();
        for key in keys.filter(|key| seen.insert(key.as_str())) {
            let of = |phase: &Phase| phase.kept.get(key).cloned().unwrap_or_default();
            self.note(&path.key(key), &of(before), &of(after));
        }
    }

    /// What an input asks of callers that no run asked before.
    fn new_need(&self, input: &Input) -> Option<&'static str> {
        let Source::Trigger { key, pointer } = &input.source else {
            return None;
        };
        let is_new = !self.needed.contains(&(key.as_str(), pointer.as_deref()));
        if is_new && input.needs_value() {
            return Some("runs that were started without it wait for it");
        }
        let declared = self.type_of(&self.types.1, input.type_.as_ref());
        declared.map(|_| "triggers that were accepted may be refused")
    }
}

/// A place in the trigger.
type Place<'w> = (&'w str, Option<&'w str>);

/// The places of a trigger without which a phase of every run cannot begin.
fn needed_of_trigger(workflow: &Workflow) -> HashSet<Place<'_>> {
    let may_be_skipped = |phase: &&Phase| {
        let condition = phase.skip_when.as_ref();
        condition.is_some_and(SkipWhen::may_hold)
    };
    let phases = workflow.phases.iter();
    let inputs = phases
        .filter(|phase| !may_be_skipped(phase))
        .flat_map(|phase| &phase.inputs);
    let needed = inputs.filter_map(|(_, input)| match &input.source {
        Source::Trigger { key, pointer } if input.needs_value() => {
            Some((key.as_str(), pointer.as_deref()))
        }
        Source::Trigger { .. } | Source::Phase { .. } | Source::InitialState { .. } => None,
    });
    needed.collect()
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => short(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            short(&value.to_string())
        }
    }
}

fn text(text: &str) -> Value {
    match text {
        "" => Value::Null,
        text => Value::from(text),
    }
}

fn list(names: &[String]) -> Value {
    match names {
        [] => Value::Null,
        names => Value::from(names),
    }
}

/// Names whose order means nothing.
fn sorted(names: &[String]) -> Value {
    let mut names = names.to_vec();
    names.sort_unstable();
    list(&names)
}

fn map(map: &serde_json::Map<String, Value>) -> Value {
    match map.is_empty() {
        true => Value::Null,
        false => Value::from(map.clone()),
    }
}

fn skip_when(phase: &Phase) -> Value {
    let Some(condition) = &phase.skip_when else {
        return Value::Null;
    };
    match condition {
        SkipWhen::Always(always) => Value::from(*always),
        SkipWhen::Value {
            source,
            is,
            negated,
        } => {
            let (from, key, pointer) = match source {
                Source::Trigger { key, pointer } => ("$trigger", key, pointer),
                Source::InitialState { key, pointer } => ("$initial_state", key, pointer),
                Source::Phase {
                    phase,
                    key,
                    pointer,
                } => (phase.as_str(), key, pointer),
            };
            let place = pointer.as_ref().map(|pointer| format!("#{pointer}"));
            let from = format!("{from}.{key}{}", place.unwrap_or_default());
            Value::from(match (is, negated) {
                (Some(is), true) => format!("{from} != {is}"),
                (Some(is), false) => format!("{from} == {is}"),
                (None, true) => format!("not {from}"),
                (None, false) => from,
            })
        }
    }
}

fn start_at(phase: &Phase) -> Value {
    match &phase.start_at {
        None => Value::Null,
        Some(StartAt::At(at)) => Value::from(at.to_string()),
        Some(StartAt::Value { reference, .. }) => Value::from(reference.as_str()),
    }
}

fn delay_seconds(phase: &Phase) -> Value {
    phase.delay_seconds.map_or(Value::Null, timers::seconds)
}

fn retry(phase: &Phase) -> Value {
    phase.retry.as_ref().map_or(Value::Null, Retry::params)
}
