//! docs/guides/wiring.md: inputs that are taken from the results of dependencies.
//!
//! A call names a dependency as it does in `dependencies`. What is stored names it by its id, written
//! `@4a:.n`: symbol, colon, place in the result.

use super::ids::{join, symbol};
use super::{ANY_NUMBER, ANY_TEXT, Completed, Oracle, Refusal, Symbol, Task, When};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// One wired input.
struct Wire<'a> {
    key: &'a str,
    from: &'a str,
    required: bool,
    default: Option<&'a Value>,
}

impl Wire<'_> {
    /// Whether an attempt cannot do without a value from a result.
    fn is_needed(&self) -> bool {
        self.required && self.default.is_none()
    }

    fn source(&self) -> Option<Symbol> {
        symbol(name_of(self.from))
    }
}

/// The name of the dependency in a reference.
fn name_of(from: &str) -> &str {
    let stored = from.starts_with('@');
    let ends = |c: char| {
        if stored {
            c == ':'
        } else {
            c == '.' || c == '#'
        }
    };
    from.split(ends).next().unwrap_or_default()
}

/// What stands behind the name of the dependency.
fn place_of(from: &str) -> &str {
    let place = &from[name_of(from).len()..];
    place.strip_prefix(':').unwrap_or(place)
}

fn wires(schemas: &Value) -> Vec<Wire<'_>> {
    let members = schemas["wiring"].as_object();
    let wires = members.into_iter().flatten().map(|(key, value)| Wire {
        key,
        from: value
            .as_str()
            .or(value["from"].as_str())
            .unwrap_or_default(),
        required: value["required"] != false,
        default: value.get("default"),
    });
    wires.collect()
}

/// Whether inputs of a task with these `schemas` come from results.
pub(crate) fn is_wired(schemas: &Value) -> bool {
    !wires(schemas).is_empty()
}

/// Paths of the inputs that cannot be taken from where it says; `find` is the task that a name means.
pub(super) fn faults(
    inputs: &Value,
    schemas: &Value,
    dependencies: &[(Symbol, When)],
    find: &dyn Fn(&str) -> Option<Symbol>,
    path: &str,
) -> BTreeSet<String> {
    let wrong = |wire: &&Wire<'_>| {
        let source = find(name_of(wire.from));
        let on = dependencies
            .iter()
            .find(|(s, _)| Some(s) == source.as_ref());
        match on {
            None => true,
            Some((_, when)) => {
                inputs.get(wire.key).is_some() || (*when != When::Completed && wire.is_needed())
            }
        }
    };
    let wires = wires(schemas);
    let wrong = wires.iter().filter(wrong);
    wrong
        .map(|wire| join(path, &format!("schemas.wiring.{}", wire.key)))
        .collect()
}

/// The same `schemas` with other tasks in their references where `find` gives some.
pub(super) fn renamed(schemas: &Value, find: &dyn Fn(&str) -> Option<Symbol>) -> Value {
    let mut renamed = schemas.clone();
    for wire in wires(schemas) {
        let Some(source) = find(name_of(wire.from)) else {
            continue;
        };
        let from = json!(format!("@{source}:{}", place_of(wire.from)));
        let member = &mut renamed["wiring"][wire.key];
        if member.is_object() {
            member["from"] = from;
        } else {
            *member = from;
        }
    }
    renamed
}

/// The inputs without a value of a task that is given other `schemas`, as far as it was known before.
pub(super) fn still_absent(
    absent: &BTreeSet<String>,
    before: &Value,
    after: &Value,
) -> BTreeSet<String> {
    let wires_before = wires(before);
    let is_known = |wire: &&Wire<'_>| {
        let mut same = wires_before.iter().filter(|it| it.from == wire.from);
        same.any(|it| absent.contains(it.key))
    };
    let wires = wires(after);
    let needed = wires.iter().filter(|wire| wire.is_needed());
    needed
        .filter(is_known)
        .map(|wire| wire.key.to_owned())
        .collect()
}

/// The value at a place of a result.
fn value_at(result: &Value, place: &str) -> Option<Value> {
    match place.strip_prefix('.') {
        Some(rest) => {
            let (key, pointer) = rest.split_once('#').unwrap_or((rest, ""));
            result.get(key)?.pointer(pointer).cloned()
        }
        None => result.pointer(place.strip_prefix('#')?).cloned(),
    }
}

impl Oracle {
    /// The value of a wire, if the result of a dependency has it.
    fn wired_value(&self, task: &Task, wire: &Wire<'_>) -> Option<Value> {
        let source = wire.source()?;
        let known = task.dependencies.iter().any(|(s, _)| *s == source);
        let source = self.tasks.get(&source).filter(|_| known)?;
        let result = (source.status == Completed).then_some(&source.result)?;
        value_at(result, place_of(wire.from))
    }

    /// The inputs of an attempt that begins now; `None` when required values are not there.
    pub(super) fn inputs_of(&self, symbol: &str) -> Option<Value> {
        let task = self.task(symbol);
        let mut inputs = task.inputs.clone();
        for wire in wires(&task.schemas) {
            let value = self.wired_value(task, &wire).or(wire.default.cloned());
            match value {
                Some(value) => inputs[wire.key] = value,
                None if wire.required => return None,
                None => {}
            }
        }
        Some(inputs)
    }

    /// Where the values of an attempt that begins now come from; `None` when all are literal.
    pub(super) fn lineage(&self, symbol: &str) -> Option<Value> {
        let task = self.task(symbol);
        let wires = wires(&task.schemas);
        let found = wires.iter().filter_map(|wire| {
            self.wired_value(task, wire)?;
            let source = wire.source()?;
            Some(json!({
                "input": format!("/{}", wire.key), "reference": wire.from,
                "task_id": format!("@{source}"), "attempt": self.task(&source).attempt,
                "event_id": ANY_TEXT, "sequence": ANY_NUMBER,
            }))
        });
        (!wires.is_empty()).then(|| found.collect())
    }

    /// `schemas` as an executor gets them: nothing is wired any more.
    pub(super) fn schemas_of_job(&self, symbol: &str) -> Value {
        let mut schemas = self.task(symbol).schemas.clone();
        if is_wired(&schemas) {
            schemas.as_object_mut().and_then(|map| map.remove("wiring"));
        }
        schemas
    }

    /// Whether workers are kept off a task, because required values are not there.
    pub(crate) fn is_lacking(&self, symbol: &str) -> bool {
        let task = self.task(symbol);
        wires(&task.schemas)
            .iter()
            .filter(|w| w.is_needed())
            .any(|wire| {
                let known = |s: &Symbol| task.dependencies.iter().any(|(d, _)| d == s);
                task.absent.contains(wire.key) || !wire.source().is_some_and(|s| known(&s))
            })
    }

    /// Keys of inputs that results which are there have no value for.
    pub(super) fn absent_already(&self, task: &Task) -> BTreeSet<String> {
        let wires = wires(&task.schemas);
        let absent = wires.iter().filter(|w| w.is_needed()).filter(|wire| {
            let source = wire.source().and_then(|s| self.tasks.get(&s));
            let done = source.filter(|source| source.status == Completed);
            done.is_some_and(|done| value_at(&done.result, place_of(wire.from)).is_none())
        });
        absent.map(|wire| wire.key.to_owned()).collect()
    }

    /// Whether a task depends on one that waits for a person, or cannot do without its result.
    pub(super) fn waits_for_person_above(&self, symbol: &str) -> bool {
        let task = self.task(symbol);
        let wires = wires(&task.schemas);
        let needed = wires.iter().filter(|w| w.is_needed());
        let sources = needed.filter_map(Wire::source);
        let dependencies = task.dependencies.iter().map(|(s, _)| s.clone());
        let mut all = sources.chain(dependencies);
        all.any(|s| self.tasks.get(&s).is_some_and(|it| it.question.is_some()))
    }

    /// A task completes, and those that are wired to it learn what its result lacks.
    pub(super) fn complete(&mut self, symbol: &str, result: &Value) {
        let now = self.now;
        self.change(symbol, |t| {
            t.status = Completed;
            t.result = result.clone();
            t.progress = 1.0;
            t.completed = Some(now);
            t.question = None;
        });
        for (dependent, _) in self.dependents(symbol) {
            let task = self.task(&dependent);
            let wires = wires(&task.schemas);
            let of_it = |wire: &&Wire<'_>| wire.source().as_deref() == Some(symbol);
            let lacks = |wire: &&Wire<'_>| value_at(result, place_of(wire.from)).is_none();
            let lacking = wires.iter().filter(of_it).filter(|w| w.is_needed());
            let lacking = lacking.filter(lacks).map(|wire| wire.key.to_owned());
            let lacking: Vec<String> = lacking.collect();
            let task = self.tasks.get_mut(&dependent).expect("it was just found");
            task.absent.extend(lacking);
        }
    }
}

/// Refuses a call for these faults. What is said of wired inputs besides when dependencies are wrong is left
/// open.
pub(super) fn told<T>(map: &Map<String, Value>, faults: BTreeSet<String>) -> Result<T, Refusal> {
    let tasks = super::ids::written(map);
    let mut schemas = tasks.iter().filter_map(|task| task.map.get("schemas"));
    let is_open = faults.iter().any(|path| path.contains("dependencies"));
    if is_open && schemas.any(is_wired) {
        return super::refuse(-32602);
    }
    super::invalid(faults)
}
