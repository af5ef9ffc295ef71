//! Reading the members of a map of the document: typed, with a fault where the type is another.

use crate::faults::{Fault, Faults};
use crate::limits;
use crate::node::{At, Entry, Node, short};
use crate::path::Path;

/// A map of the document. A member without value (`key:`) counts as absent.
#[derive(Clone)]
pub(crate) struct Members<'a> {
    pub(crate) faults: &'a Faults,
    pub(crate) path: Path,
    /// Where faults about absent members are told.
    pub(crate) at: Option<At>,
    /// The phase that faults belong to.
    pub(crate) phase: Option<&'a str>,
    pub(crate) entries: &'a [Entry],
}

impl<'a> Members<'a> {
    pub(crate) fn get(&self, key: &str) -> Option<&'a Entry> {
        let found = self.entries.iter().find(|entry| entry.key == key);
        found.filter(|entry| !entry.value.is_null())
    }

    /// A fault below this map.
    pub(crate) fn fault(&self, path: &Path, at: Option<At>, reason: impl Into<String>) -> Fault {
        let mut fault = Fault::new(path, at, reason);
        fault.phase_name = self.phase.map(str::to_owned);
        fault
    }

    pub(crate) fn error(&self, path: &Path, at: Option<At>, reason: impl Into<String>) {
        self.faults.error(self.fault(path, at, reason));
    }

    /// Reports that a member must be something else.
    pub(crate) fn wrong(&self, key: &str, node: &Node, expected: &str, suggestion: Option<String>) {
        let reason = format!("`{key}` must be {expected}, found {}", node.shown());
        let fault = self.fault(&self.path.key(key), node.at, reason);
        self.faults.error(fault.suggest(suggestion));
    }

    /// Reports that a member is absent.
    pub(crate) fn missing(&self, key: &str, expected: &str) {
        let written = self.entries.iter().find(|entry| entry.key == key);
        let at = written.map_or(self.at, |entry| entry.at);
        let reason = format!("`{key}` is missing: {expected}");
        let fault = self.fault(&self.path.key(key), at, reason);
        let others = || self.entries.iter().map(|entry| entry.key.as_str());
        let near = self
            .faults
            .meant(key, others().filter(|other| *other != key));
        let suggestion = near.map(|near| format!("rename `{near}` to `{key}`"));
        self.faults.error(fault.suggest(suggestion));
    }

    pub(crate) fn text(&self, key: &str) -> Option<&'a str> {
        let node = &self.get(key)?.value;
        let text = node.text();
        if text.is_none() {
            let quote = node.scalar().map(|value| format!("quote it: \"{value}\""));
            self.wrong(key, node, "a string", quote);
        }
        text
    }

    /// A string of 1 to `chars_max` characters.
    pub(crate) fn name(&self, key: &str, chars_max: usize) -> Option<&'a str> {
        let text = self.text(key)?;
        let chars = text.chars().count();
        if (1..=chars_max).contains(&chars) {
            return Some(text);
        }
        let node = &self.get(key)?.value;
        let expected = format!("a string of 1 to {chars_max} characters");
        let reason = format!("`{key}` must be {expected}, found {chars}");
        self.error(&self.path.key(key), node.at, reason);
        None
    }

    /// The members of a map, as [`Members`]. `expected` says what the map is for.
    pub(crate) fn map(&self, key: &str, expected: &str) -> Option<Self> {
        let entry = self.get(key)?;
        let Some(entries) = entry.value.entries() else {
            self.wrong(key, &entry.value, expected, None);
            return None;
        };
        Some(Self {
            path: self.path.key(key),
            at: entry.at,
            entries,
            ..self.clone()
        })
    }

    /// A list of strings, with their places.
    pub(crate) fn texts(&self, key: &str, expected: &str) -> Vec<(usize, &'a str, Option<At>)> {
        let Some(entry) = self.get(key) else {
            return Vec::new();
        };
        let Some(items) = entry.value.items() else {
            let text = entry.value.text();
            let suggestion = text.map(|text| format!("write a list: `[{}]`", short(text)));
            self.wrong(key, &entry.value, expected, suggestion);
            return Vec::new();
        };
        let mut texts = Vec::new();
        for (i, item) in items.iter().enumerate() {
            if let Some(text) = item.text() {
                texts.push((i, text, item.at));
                continue;
            }
            let quote = item.scalar().filter(|value| !value.is_null());
            let quote = quote.map(|value| format!("quote it: \"{value}\""));
            let reason = format!(
                "an item of `{key}` must be a string, found {}",
                item.shown()
            );
            let fault = self.fault(&self.path.key(key).index(i), item.at, reason);
            self.faults.error(fault.suggest(quote));
        }
        texts
    }

    /// Reports keys that are in none of the lists: an error of a strict reading, else a warning. Gives all entries
    /// whose keys are not in `acted_on`, which is what is kept.
    pub(crate) fn kept(&self, acted_on: &[&str], kept: &[&str]) -> impl Iterator<Item = &'a Entry> {
        let known = || acted_on.iter().chain(kept).copied();
        for entry in self.entries {
            if known().any(|known| known == entry.key) {
                continue;
            }
            let reason = format!("unknown key `{}`, which has no effect", short(&entry.key));
            let fault = self.fault(&self.path.key(&entry.key), entry.at, reason);
            let meant = self.faults.did_you_mean(&entry.key, known());
            self.faults.lax(fault.suggest(meant));
        }
        let is_acted_on = move |entry: &&Entry| !acted_on.contains(&entry.key.as_str());
        let entries = self.entries.iter().filter(is_acted_on);
        entries.collect::<Vec<_>>().into_iter()
    }
}

/// Notes what has no effect, up to [`limits::NOT_ACTED_ON_MAX`].
pub(crate) fn note(not_acted_on: &mut Vec<String>, path: impl FnOnce() -> Path) {
    if not_acted_on.len() < limits::NOT_ACTED_ON_MAX {
        not_acted_on.push(path().into_text());
    }
}
