//! Names of methods and users: each text is stored once, and tasks hold its number.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

/// "No task", "no run", "no method": an ordinal that is never given.
pub(crate) const NONE: u32 = u32::MAX;

/// Strings by number.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Names {
    texts: Vec<Box<str>>,
    #[serde(skip)]
    numbers: HashMap<Box<str>, u32>,
    /// Bytes of both, roughly.
    #[serde(skip)]
    bytes: usize,
}

impl Names {
    pub(crate) fn number(&mut self, text: &str) -> u32 {
        if let Some(&n) = self.numbers.get(text) {
            return n;
        }
        let n = u32::try_from(self.texts.len()).expect("fewer names than events in a stream");
        self.texts.push(text.into());
        self.numbers.insert(text.into(), n);
        self.bytes += Self::weight(text);
        n
    }

    /// The number of a text that has one.
    pub(crate) fn find(&self, text: &str) -> Option<u32> {
        self.numbers.get(text).copied()
    }

    /// What it holds, roughly.
    pub(crate) const fn weight_bytes(&self) -> usize {
        self.bytes
    }

    /// Both copies of a text and what holds them.
    const fn weight(text: &str) -> usize {
        2 * (text.len() + 32)
    }

    pub(crate) fn text(&self, number: u32) -> Option<&str> {
        self.texts.get(number as usize).map(|t| &**t)
    }

    pub(crate) fn index(&mut self) {
        self.numbers = self
            .texts
            .iter()
            .enumerate()
            .map(|(i, t)| (t.clone(), i as u32))
            .collect();
        self.bytes = self.texts.iter().map(|t| Self::weight(t)).sum();
    }

    /// Whether `number` is `NONE` or stands for a text.
    pub(crate) fn has(&self, number: u32) -> bool {
        number == NONE || (number as usize) < self.texts.len()
    }
}
