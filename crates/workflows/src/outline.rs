//! The outline of phases, which references need: names, titles, declared outputs.

use serde_json::{Map, Value};
use std::collections::HashMap;
use taskledger_domain::contract::{FormFault, Type};
use taskledger_domain::limits;

use crate::members::Members;
use crate::node::{Entry, short};
use crate::skip;
use crate::source::is_local_key;
use crate::types::{self, Named};
use crate::workflow::{SkipWhen, Validation};

/// The phases of a document by name, before any is read in full.
pub(crate) struct Outline<'a> {
    validation: Validation,
    names: Vec<&'a str>,
    by_name: HashMap<&'a str, usize>,
    titles: Vec<String>,
    /// The first phase with the title, and whether others have it too.
    by_title: HashMap<String, (usize, bool)>,
    outputs: Vec<Option<Declared>>,
    skip_when: Vec<Option<Condition>>,
}

/// `skip_when` of a phase, and whether it holds, where that does not depend on the trigger.
type Condition = (SkipWhen, Option<bool>);

/// Outputs as written, which list no more than a name is `any`, and their types by key, where there is one.
type Declared = (Map<String, Value>, HashMap<String, Type>);

impl<'a> Outline<'a> {
    /// Reads names, titles and outputs of all phases. Cost: O(size).
    pub(crate) fn read(phases: &[Members<'a>], types: &Named, validation: Validation) -> Self {
        let mut outline = Self {
            validation,
            names: Vec::with_capacity(phases.len()),
            by_name: HashMap::with_capacity(phases.len()),
            titles: Vec::with_capacity(phases.len()),
            by_title: HashMap::with_capacity(phases.len()),
            outputs: Vec::with_capacity(phases.len()),
            skip_when: Vec::with_capacity(phases.len()),
        };
        for (index, phase) in phases.iter().enumerate() {
            let name = phase.phase.expect("each phase has a name");
            check_name(name, phase);
            outline.names.push(name);
            outline.by_name.insert(name, index);
            let title = phase
                .text("title")
                .map_or_else(|| title_of(name), str::to_owned);
            outline.see_title(index, &title, phase);
            outline.titles.push(title);
            outline.outputs.push(outputs(phase, types));
            let condition = phase.get("skip_when");
            let condition = condition.and_then(|entry| skip::read(&entry.value));
            let condition = condition.map(|it| {
                let state = phase.get("initial_state");
                let fixed = it.fixed(|| state.map(|entry| entry.value.to_map()));
                (it, fixed)
            });
            outline.skip_when.push(condition);
        }
        outline
    }

    /// A title that two phases share can stand for neither.
    fn see_title(&mut self, index: usize, title: &str, phase: &Members<'_>) {
        let Some((first, is_shared)) = self.by_title.get_mut(title) else {
            self.by_title.insert(title.to_owned(), (index, false));
            return;
        };
        *is_shared = true;
        let first = self.names[*first];
        let written = phase.get("title");
        let at = written.map_or(phase.at, |entry| entry.value.at);
        let title = short(title);
        let reason = format!("phase `{first}` has the title `{title}` too");
        let fault = phase.fault(&phase.path.key("title"), at, reason);
        phase.faults.lax(fault);
    }

    pub(crate) fn validation(&self) -> Validation {
        self.validation
    }

    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The one phase with a title.
    pub(crate) fn titled(&self, title: &str) -> Option<usize> {
        let (index, is_shared) = self.by_title.get(title)?;
        (!is_shared).then_some(*index)
    }

    pub(crate) fn is_shared_title(&self, title: &str) -> bool {
        self.by_title
            .get(title)
            .is_some_and(|(_, is_shared)| *is_shared)
    }

    pub(crate) fn name(&self, index: usize) -> &'a str {
        self.names[index]
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> + Clone {
        self.names.iter().copied()
    }

    pub(crate) fn title(&self, index: usize) -> &str {
        &self.titles[index]
    }

    /// When a phase is left out; `None` for never, as far as that is understood.
    pub(crate) fn skip_when(&self, index: usize) -> Option<&SkipWhen> {
        self.skip_when[index]
            .as_ref()
            .map(|(condition, _)| condition)
    }

    /// Whether a phase is left out of all runs (`true`) or of none; `None`: that depends on the trigger.
    pub(crate) fn is_skipped(&self, index: usize) -> Option<bool> {
        self.skip_when[index]
            .as_ref()
            .map_or(Some(false), |(_, fixed)| *fixed)
    }

    /// Declared outputs; `None` for a phase without, whose results are not checked.
    pub(crate) fn outputs(&self, index: usize) -> Option<&Map<String, Value>> {
        self.outputs[index].as_ref().map(|(written, _)| written)
    }

    /// The type of an output; `None` for one without.
    pub(crate) fn type_of(&self, index: usize, key: &str) -> Option<&Type> {
        let (_, types) = self.outputs[index].as_ref()?;
        types.get(key)
    }
}

fn check_name(name: &str, phase: &Members<'_>) {
    let chars = name.chars().count();
    let max = limits::NAME_CHARS_MAX;
    let reason = if !(1..=max).contains(&chars) {
        format!("the name of a phase has 1 to {max} characters, found {chars}")
    } else if name.starts_with('$') {
        "the name of a phase must not begin with `$`".to_owned()
    } else if name.chars().any(char::is_control) {
        "the name of a phase must not hold control characters".to_owned()
    } else {
        return;
    };
    phase.error(&phase.path, phase.at, reason);
}

/// `fetch_data` -> `Fetch Data`.
fn title_of(name: &str) -> String {
    let mut title = String::with_capacity(name.len());
    let mut begins = true;
    for c in name.chars() {
        let c = if c == '_' { ' ' } else { c };
        if begins {
            title.extend(c.to_uppercase());
        } else {
            title.extend(c.to_lowercase());
        }
        begins = !c.is_alphabetic();
    }
    title
}

/// `outputs` of a phase: a map, or a list of names without types. An empty one declares nothing.
fn outputs(phase: &Members<'_>, types: &Named) -> Option<Declared> {
    let entry = phase.get("outputs")?;
    let (mut outputs, mut compiled) = (Map::new(), HashMap::new());
    if entry.value.items().is_some() {
        for (i, key, at) in phase.texts("outputs", "a map") {
            if outputs.insert(key.to_owned(), Value::from("any")).is_some() {
                let path = phase.path.key("outputs").index(i);
                phase.error(
                    &path,
                    at,
                    format!("output `{}` is declared twice", short(key)),
                );
            }
        }
    } else {
        let expected = "a map from keys to types";
        let members = phase.map("outputs", expected)?;
        for entry in members.entries {
            let (declaration, of) = declared(entry, &members, types);
            outputs.insert(entry.key.clone(), declaration);
            if let Some(of) = of {
                compiled.insert(entry.key.clone(), of);
            }
        }
    }
    let declared = Some(outputs).filter(|outputs| !outputs.is_empty());
    Some((declared?, compiled))
}

/// One declared output, checked.
fn declared(entry: &Entry, members: &Members<'_>, types: &Named) -> (Value, Option<Type>) {
    let declaration = entry.value.to_value();
    if !is_local_key(&entry.key) {
        let max = limits::KEY_CHARS_MAX;
        let reason = format!("the key of an output has 1 to {max} characters");
        members.error(&members.path.key(&entry.key), entry.at, reason);
    }
    // A key that is too long has been told.
    let key = Some(&*entry.key).filter(|key| is_local_key(key));
    let key = key.unwrap_or("key");
    let compiled = types.output_of(key, &declaration);
    if compiled.is_err()
        && let Some(known) = without_foreign_keys(&declaration)
        && let known_type @ Ok(_) = types.output_of(key, &known)
    {
        let own = Members {
            path: members.path.key(&entry.key),
            at: entry.at,
            entries: entry.value.entries().unwrap_or_default(),
            ..members.clone()
        };
        // Each is reported at its place.
        let _ = own.kept(&MODIFIER, &[]);
        return (known, checked(known_type, entry, members));
    }
    (declaration, checked(compiled, entry, members))
}

/// The members of an output that is written as a map. spec: RFC-0024 1.3
const MODIFIER: [&str; 2] = ["type", "required"];

/// The same declaration without members of other systems; `None`: it has none, or no `type`.
fn without_foreign_keys(declaration: &Value) -> Option<Value> {
    let members = declaration.as_object()?;
    let known = members
        .iter()
        .filter(|(key, _)| MODIFIER.contains(&key.as_str()));
    let known: Map<String, Value> = known.map(|(k, v)| (k.clone(), v.clone())).collect();
    (known.contains_key("type") && known.len() < members.len()).then(|| Value::from(known))
}

/// What was compiled of the declaration in `entry`; one that is no type is reported.
pub(crate) fn checked(
    compiled: Result<Option<Type>, Vec<FormFault>>,
    entry: &Entry,
    members: &Members<'_>,
) -> Option<Type> {
    match compiled {
        Ok(compiled) => compiled,
        Err(faults) => {
            types::report(members, &members.path.key(&entry.key), entry, faults, 0);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::title_of;

    #[test]
    fn a_title_is_made_of_the_name() {
        assert_eq!(title_of("fetch_hr_data"), "Fetch Hr Data");
        assert_eq!(title_of("a-b"), "A-B");
    }
}
