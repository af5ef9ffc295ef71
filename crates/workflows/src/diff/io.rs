//! Differences in the inputs and outputs of phases.

use super::Comparison;
use crate::path::Path;
use crate::types::{Named, is_optional};
use crate::workflow::{Input, Phase, Source};
use serde_json::{Map, Value};
use std::collections::HashMap;
use taskledger_domain::contract::{Compatible, Type, compatible_within};

/// How the values of a place have changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    /// They are the same.
    Same,
    /// Each that was possible is possible, and others are.
    More,
    /// Each that is possible was possible.
    Fewer,
    /// Neither can be told.
    Others,
}

impl Comparison<'_> {
    pub(super) fn inputs(&mut self, path: &Path, before: &Phase, after: &Phase) {
        let older: HashMap<&str, &Input> = by_key(before);
        let newer: HashMap<&str, &Input> = by_key(after);
        for (key, input) in &after.inputs {
            let path = path.key(key);
            match older.get(key.as_str()) {
                Some(older) => self.input(&path, older, input),
                None => {
                    let need = self.new_need(input);
                    let reference = Value::from(input.reference.as_str());
                    self.see(&path, (None, Some(&reference)), need);
                }
            }
        }
        for (key, input) in &before.inputs {
            if !newer.contains_key(key.as_str()) {
                let gone = Value::from(input.reference.as_str());
                let reason = "workers do not get it any more";
                self.see(&path.key(key), (Some(&gone), None), Some(reason));
            }
        }
    }

    fn input(&mut self, path: &Path, before: &Input, after: &Input) {
        let references = [before, after].map(|it| Value::from(it.reference.as_str()));
        let need = self.new_need(after);
        self.note_if_changed(&path.key("from"), &references[0], &references[1], need);
        let defaults = [before, after].map(|it| it.default.clone().unwrap_or_default());
        self.note(&path.key("default"), &defaults[0], &defaults[1]);
        let is_sure = |it: &Input| it.required || it.default.is_some();
        if before.required != after.required {
            let reason = if is_sure(before) && !is_sure(after) {
                Some("workers may not get it")
            } else if after.needs_value() {
                Some("runs in which it is absent wait for it")
            } else {
                None
            };
            self.see(
                &path.key("required"),
                (Some(&before.required.into()), Some(&after.required.into())),
                reason,
            );
        }
        let declared = [before, after].map(|it| it.type_.clone().unwrap_or_else(|| "any".into()));
        let of_trigger = matches!(after.source, Source::Trigger { .. });
        let reason = match self.values([&declared[0], &declared[1]]) {
            Values::Same => return,
            Values::Fewer if of_trigger => "triggers that were accepted may be refused",
            Values::Fewer => "results that were accepted may keep it from beginning",
            Values::More => "workers may get values of other types",
            Values::Others => "workers may get values of other types, and others are refused",
        };
        self.see(
            &path.key("type"),
            (Some(&declared[0]), Some(&declared[1])),
            Some(reason),
        );
    }

    pub(super) fn outputs(&mut self, path: &Path, before: &Phase, after: &Phase) {
        let (none, none_too) = (Map::new(), Map::new());
        let older = before.outputs.as_ref().unwrap_or(&none);
        let newer = after.outputs.as_ref().unwrap_or(&none_too);
        for (key, declared) in newer {
            let path = path.key(key);
            let Some(older) = older.get(key) else {
                let breaks = !is_optional(declared);
                let reason = breaks.then_some("workers must give it");
                self.see(&path, (None, Some(declared)), reason);
                continue;
            };
            match (is_optional(older), is_optional(declared)) {
                (false, true) => self.required(&path, false, "readers may not find it"),
                (true, false) => self.required(&path, true, "workers must give it"),
                (true, true) | (false, false) => {}
            }
            let reason = match self.values([older, declared]) {
                Values::Same => continue,
                Values::More => "readers may find values of other types",
                Values::Fewer => "outputs that were accepted may be refused",
                Values::Others => {
                    "readers may find values of other types, and outputs that were accepted may be refused"
                }
            };
            self.see(&path, (Some(older), Some(declared)), Some(reason));
        }
        for (key, declared) in older {
            if !newer.contains_key(key) {
                // Undeclared outputs are not kept back from readers, but nobody has to give them.
                let reason = "readers may not find it";
                self.see(&path.key(key), (Some(declared), None), Some(reason));
            }
        }
    }

    fn required(&mut self, path: &Path, is_now: bool, reason: &'static str) {
        self.see(
            &path.key("required"),
            (Some(&(!is_now).into()), Some(&is_now.into())),
            Some(reason),
        );
    }

    /// A declared type; `None` for one that accepts anything.
    pub(super) fn type_of(&self, named: &Named, declared: Option<&Value>) -> Option<Type> {
        // A document without faults has none here.
        let of = named.type_of(declared?).ok().flatten()?;
        Some(of).filter(|of| !of.is_any())
    }

    fn values(&mut self, declared: [&Value; 2]) -> Values {
        if self.same_types && declared[0] == declared[1] {
            return Values::Same;
        }
        let texts = declared.map(Value::to_string);
        if let Some(known) = self.related.get(&texts) {
            return *known;
        }
        let before = self.type_of(&self.types.0, Some(declared[0]));
        let after = self.type_of(&self.types.1, Some(declared[1]));
        let found = match (before, after) {
            (None, None) => Values::Same,
            (None, Some(_)) => Values::Fewer,
            (Some(_), None) => Values::More,
            (Some(before), Some(after)) => self.relation(&before, &after),
        };
        self.related.insert(texts, found);
        found
    }

    fn relation(&mut self, before: &Type, after: &Type) -> Values {
        let left = &mut self.type_steps_left;
        let kept = compatible_within(before, after, left) == Compatible::Definite;
        let known = compatible_within(after, before, left) == Compatible::Definite;
        match (kept, known) {
            (true, true) => return Values::Same,
            (true, false) => return Values::More,
            (false, true) => return Values::Fewer,
            (false, false) => {}
        }
        if *left == 0 {
            return Values::Others;
        }
        // Of JSON Schemas no comparison says anything: equal ones accept the same.
        let schemas = [before, after].map(|of| of.json_schema().to_string());
        *left = left.saturating_sub((schemas[0].len() + schemas[1].len()) as u64);
        match schemas[0] == schemas[1] {
            true => Values::Same,
            false => Values::Others,
        }
    }
}

fn by_key(phase: &Phase) -> HashMap<&str, &Input> {
    let inputs = phase.inputs.iter();
    inputs.map(|(key, input)| (key.as_str(), input)).collect()
}
