//! One reference of `inputs`: `<phase>.<key>`, `$trigger.<key>` or `$initial_state.<key>`, optionally with `#` and a
//! JSON pointer into the value. spec: RFC-0024 2.1, 2.3, 8
//!
//! Names of phases and keys may hold dots. The longest beginning of the reference that names a phase of `depends_on`
//! which has the output is the phase; all that follows its dot is the key.

use serde_json::{Map, Value};
use std::collections::HashSet;
use taskledger_domain::limits::REFERENCE_CHARS_MAX;

use crate::faults::Faults;
use crate::outline::Outline;
use crate::source::{Place, is_pointer, known};
use crate::workflow::{Source, Validation};

/// Why a reference is wrong.
pub(crate) struct Bad {
    pub(crate) reason: String,
    pub(crate) suggestion: Option<String>,
}

impl Bad {
    fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            suggestion: None,
        }
    }

    fn suggest(mut self, suggestion: Option<String>) -> Self {
        self.suggestion = suggestion;
        self
    }
}

const FORMS: &str = "must be `<phase>.<key>`, `$trigger.<key>` or `$initial_state.<key>`";
/// Ways in which a reference is read: a name of a phase may hold fewer dots.
const READINGS_MAX: usize = 32;
/// The phase in whose `inputs` a reference stands.
pub(crate) struct Consumer<'a> {
    pub(crate) outline: &'a Outline<'a>,
    /// Its position.
    pub(crate) phase: usize,
    /// Positions of the phases that it depends on.
    pub(crate) depends_on: &'a HashSet<usize>,
    /// Its own.
    pub(crate) initial_state: &'a Map<String, Value>,
    /// How far outputs are checked.
    pub(crate) validation: Validation,
    pub(crate) faults: &'a Faults,
}

impl Consumer<'_> {
    /// What a reference names. Cost: O(length), [`READINGS_MAX`] times at worst, and a suggestion.
    pub(crate) fn source(&self, text: &str) -> Result<Source, Bad> {
        if text.chars().count() > REFERENCE_CHARS_MAX {
            return Err(Bad::new(format!(
                "has more than {REFERENCE_CHARS_MAX} characters"
            )));
        }
        if text.starts_with('$') {
            return self.fixed(text);
        }
        let dots = text.match_indices('.').map(|(at, _)| at);
        let dots = dots.filter(|at| *at > 0).take(READINGS_MAX);
        let readings = dots.filter_map(|at| Some((&text[..at], Place::parse(&text[at + 1..])?)));
        let readings: Vec<_> = readings.collect();
        let Some((shortest, _)) = readings.first() else {
            return Err(malformed(text));
        };
        let mut wrong = None;
        for (name, place) in readings.iter().rev() {
            let Some(index) = self.outline.index(name) else {
                continue;
            };
            if self.depends_on.contains(&index) && self.has_output(index, place) {
                let (key, pointer) = place.owned();
                let phase = self.outline.name(index).to_owned();
                return Ok(Source::Phase {
                    phase,
                    key,
                    pointer,
                });
            }
            wrong = wrong.or(Some((index, place)));
        }
        Err(match wrong {
            Some((index, place)) if self.depends_on.contains(&index) => {
                self.undeclared(index, place)
            }
            Some((index, _)) => self.not_a_dependency(self.outline.name(index)),
            None => self.unknown_phase(shortest),
        })
    }

    /// `$trigger.<key>` and `$initial_state.<key>`.
    fn fixed(&self, text: &str) -> Result<Source, Bad> {
        let (name, rest) = text.split_once('.').unwrap_or((text, ""));
        if !matches!(name, "$trigger" | "$initial_state") {
            let meant = self
                .faults
                .meant(name, ["$trigger", "$initial_state"].into_iter());
            let suggestion = meant.map(|meant| format!("did you mean `{meant}.{rest}`?"));
            return Err(Bad::new(FORMS).suggest(suggestion));
        }
        known(text).ok_or_else(|| malformed(text))
    }

    /// N7. spec: RFC-0024 8, reference is a declared dependency
    fn not_a_dependency(&self, name: &str) -> Bad {
        if self.outline.index(name) == Some(self.phase) {
            return Bad::new("names the phase itself");
        }
        let suggestion = format!("add `{name}` to `depends_on`");
        Bad::new(format!("phase `{name}` is not in `depends_on`")).suggest(Some(suggestion))
    }

    /// N6. spec: RFC-0024 8, phase reference exists
    fn unknown_phase(&self, name: &str) -> Bad {
        let bad = Bad::new(format!("there is no phase `{name}`"));
        if let Some(titled) = self.outline.titled(name) {
            let titled = self.outline.name(titled);
            return bad.suggest(Some(format!("name the phase, not its title: `{titled}`")));
        }
        if let Some(fixed) = ["trigger", "initial_state"]
            .into_iter()
            .find(|fixed| *fixed == name)
        {
            return bad.suggest(Some(format!("did you mean `${fixed}`?")));
        }
        // In the order of the document, so that of equally near names the same one is told each time.
        let mut own: Vec<_> = self.depends_on.iter().copied().collect();
        own.sort_unstable();
        let own = own.iter().map(|index| self.outline.name(*index));
        let near = self.faults.did_you_mean(name, own);
        bad.suggest(near.or_else(|| self.faults.did_you_mean(name, self.outline.names())))
    }

    /// Whether a phase declares the output, or none at all.
    fn has_output(&self, index: usize, place: &Place<'_>) -> bool {
        let outputs = self.outline.outputs(index);
        outputs.is_none_or(|outputs| outputs.contains_key(place.key))
    }

    /// N8. spec: RFC-0024 8, output key is declared
    fn undeclared(&self, index: usize, place: &Place<'_>) -> Bad {
        let (name, key) = (self.outline.name(index), crate::node::short(place.key));
        let bad = Bad::new(format!("phase `{name}` declares no output `{key}`"));
        let outputs = self.outline.outputs(index);
        let near = outputs.and_then(|outputs| {
            let keys = outputs.keys().map(String::as_str);
            self.faults.did_you_mean(place.key, keys)
        });
        bad.suggest(near.or_else(|| Some(format!("declare `{key}` in `outputs` of `{name}`"))))
    }
}

/// N9. spec: RFC-0024 8, mapping syntax is valid
fn malformed(text: &str) -> Bad {
    let suggestion = match text.split_once('#') {
        Some((_, pointer)) if !is_pointer(pointer) => Some(
            "a JSON pointer is empty or begins with `/`; `~` is written `~0`, `/` in a name `~1`"
                .to_owned(),
        ),
        Some((phase, pointer)) if !phase.contains('.') => {
            Some(format!("name an output: `{phase}.<key>#{pointer}`"))
        }
        Some(_) | None => None,
    };
    Bad::new(FORMS).suggest(suggestion)
}
