//! Compares the keys of a trigger with those that the phases of a run refer to.

use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashSet};
use taskledger_domain::limits::VIOLATIONS_MAX;
use taskledger_domain::suggestion::suggestion;

use crate::faults::Fault;
use crate::node::short;
use crate::path::Path;
use crate::skip::Plan;
use crate::workflow::{SkipWhen, Source, StartAt, Workflow};

/// A value that a trigger must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LackingValue {
    /// Key of the trigger.
    pub key: String,
    /// The reference, as written, whose pointer may lead into the value.
    pub reference: String,
    /// Name of the first phase that needs it.
    pub phase: String,
    /// Key of the input of that phase.
    pub input: String,
}

pub(crate) fn list(lacking: &[LackingValue]) -> String {
    let one = |it: &LackingValue| {
        let LackingValue {
            reference,
            phase,
            input,
            ..
        } = it;
        format!("`{reference}` (input `{input}` of phase `{phase}`)")
    };
    let all: Vec<String> = lacking.iter().map(one).collect();
    all.join(", ")
}

impl Workflow {
    /// What a run with this trigger would wait for in vain, because the trigger does not name it. A value that is null
    /// was named: claims of the phase say so (RFC-0024, section 3.1). Cost: O(inputs).
    pub(crate) fn lacking(&self, plan: &Plan, trigger: &Map<String, Value>) -> Vec<LackingValue> {
        let mut seen = HashSet::new();
        let kept = self.phases.iter().zip(&plan.is_skipped);
        let kept = kept.filter(|(_, is_skipped)| !**is_skipped);
        let inputs = kept.flat_map(|(phase, _)| phase.inputs.iter().map(move |it| (phase, it)));
        let lacking = inputs.filter_map(|(phase, (input, it))| {
            let Source::Trigger { key, pointer } = &it.source else {
                return None;
            };
            let is_given = given(trigger, key, pointer.as_deref()).is_some();
            let is_news = it.needs_value() && !is_given && seen.insert(it.reference.as_str());
            is_news.then(|| LackingValue {
                key: key.clone(),
                reference: it.reference.clone(),
                phase: phase.name.clone(),
                input: input.clone(),
            })
        });
        lacking.take(VIOLATIONS_MAX).collect()
    }

    /// Warnings of a trigger: keys that no phase refers to, but for those in `known`, and values that are null where a
    /// phase cannot do without; at most [`VIOLATIONS_MAX`] of each. Cost: O(inputs + keys), and of up to so many
    /// suggestions.
    #[must_use]
    pub fn trigger_warnings(&self, trigger: &Map<String, Value>, known: &[&str]) -> Vec<Fault> {
        let mut warnings = self.unknown_keys(trigger, known);
        let inputs = self
            .phases
            .iter()
            .flat_map(|phase| phase.inputs.iter().map(move |it| (phase, it)));
        let null = inputs.filter_map(|(phase, (input, it))| {
            let Source::Trigger { key, pointer } = &it.source else {
                return None;
            };
            let is_null = given(trigger, key, pointer.as_deref()).is_some_and(Value::is_null);
            (it.needs_value() && is_null).then(|| {
                let path = Path::default().key("trigger").key(key);
                let (name, text) = (short(&phase.name), short(&it.reference));
                let reason = format!(
                    "`{text}` is null: phase `{name}` cannot begin without a value for `{}`",
                    short(input)
                );
                Fault::new(&path, None, reason)
            })
        });
        warnings.extend(null.take(VIOLATIONS_MAX));
        warnings
    }

    fn unknown_keys(&self, trigger: &Map<String, Value>, known: &[&str]) -> Vec<Fault> {
        let mut used = BTreeSet::new();
        for phase in &self.phases {
            let inputs = phase.inputs.iter().map(|(_, input)| &input.source);
            let condition = match &phase.skip_when {
                Some(SkipWhen::Value { source, .. }) => Some(source),
                Some(SkipWhen::Always(_)) | None => None,
            };
            let start_at = match &phase.start_at {
                Some(StartAt::Value { source, .. }) => Some(source),
                Some(StartAt::At(_)) | None => None,
            };
            used.extend(
                inputs
                    .chain(condition)
                    .chain(start_at)
                    .filter_map(trigger_key),
            );
        }
        let is_unknown =
            |key: &&String| !used.contains(key.as_str()) && !known.contains(&key.as_str());
        let unknown = trigger.keys().filter(is_unknown).take(VIOLATIONS_MAX);
        let warning = |key: &String| {
            let path = Path::default().key("trigger").key(key);
            let reason = format!("no phase uses `$trigger.{}`", short(key));
            let meant = suggestion(key, used.iter().copied());
            let meant = meant.map(|meant| format!("did you mean `{meant}`?"));
            Fault::new(&path, None, reason).suggest(meant)
        };
        unknown.map(warning).collect()
    }
}

/// The value that a trigger has, null or not.
fn given<'v>(
    trigger: &'v Map<String, Value>,
    key: &str,
    pointer: Option<&str>,
) -> Option<&'v Value> {
    let value = trigger.get(key)?;
    pointer.map_or(Some(value), |pointer| value.pointer(pointer))
}

fn trigger_key(source: &Source) -> Option<&str> {
    match source {
        Source::Trigger { key, .. } => Some(key),
        Source::InitialState { .. } | Source::Phase { .. } => None,
    }
}
