//! Reads parameters out of a JSON object and collects everything that is wrong with them; the same
//! questions, asked of nobody, describe the parameters.
//!
//! ```text
//! impl Parameters for Params {
//!     fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
//!         let name = reader.required("name", reader::text(255), "what to call it");
//!         let count = reader.with_default("count", reader::integer(1..=10), 1, "how many");
//!         reader.finish(|| Some(Self { name: name?, count }))
//!     }
//! }
//! ```
//!
//! A member that is `null` counts as absent, as in the protocol's examples. A member that nobody
//! asked for is refused with the names that exist.

mod kind;
mod labels;

pub use kind::{
    BOOLEAN, Choice, Fault, Integer, Kind, PRIORITY, Refusal, STATUS, Seconds, TASK_ID, TIMESTAMP,
    Text, Written, choice, integer, or_null, seconds, text,
};
pub use labels::{Labels, OwnLabels};

use serde_json::{Map, Value};
use std::cell::RefCell;
use taskledger_domain::Violation;
use taskledger_domain::limits::VIOLATIONS_MAX;
use taskledger_domain::suggestion::suggestion;

/// One parameter, as the code that reads it declares it.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The parameter's name in `params`.
    pub name: &'static str,
    /// Whether a call without it is refused.
    pub required: bool,
    /// What it means, as one sentence.
    pub description: &'static str,
    /// The JSON Schema (draft-07) of its values; those of one that may be left out take `null` too.
    pub schema: Value,
    /// What its absence means, if that is a value.
    pub default: Option<Value>,
}

impl Question {
    /// A parameter that may be left out.
    #[must_use]
    pub fn optional(name: &'static str, schema: Value, description: &'static str) -> Self {
        Self {
            name,
            required: false,
            description,
            schema: or_null(schema),
            default: None,
        }
    }
}

/// The parameters of a method, and the code that reads them.
#[derive(Debug, Clone)]
pub struct Declared {
    /// The parameters in the order in which positional ones are taken.
    pub questions: Vec<Question>,
    /// Every violation of the parameters of a call.
    pub faults: fn(&Map<String, Value>) -> Vec<Violation>,
}

/// The parameters of a method.
pub trait Parameters: Sized {
    /// Asks for each parameter, in the order in which positional ones are taken, and ends with
    /// [`Reader::finish`]. Every question must be asked on every path: asked of nobody, they are
    /// the description of the method.
    ///
    /// # Errors
    /// Every violation.
    fn ask(reader: Reader<'_>) -> Result<Self, Vec<Violation>>;

    /// Reads the parameters of a call.
    ///
    /// # Errors
    /// Every violation.
    fn read(map: &Map<String, Value>) -> Result<Self, Vec<Violation>> {
        Self::ask(Reader::new(map))
    }

    /// The parameters for the table of methods.
    #[must_use]
    fn declared() -> Declared {
        Declared {
            questions: Self::questions(),
            faults: |map| Self::read(map).err().unwrap_or_default(),
        }
    }

    /// The parameters in the order in which positional ones are taken.
    #[must_use]
    fn questions() -> Vec<Question> {
        let (nobody, questions) = (Map::new(), RefCell::new(Vec::new()));
        let reader = Reader {
            described: Some(&questions),
            ..Reader::new(&nobody)
        };
        let answered = Self::ask(reader);
        assert!(answered.is_err(), "a reader that describes reads nothing");
        questions.into_inner()
    }
}

/// Takes members out of an object, one question at a time.
#[derive(Debug)]
pub struct Reader<'a> {
    map: &'a Map<String, Value>,
    asked: Vec<&'static str>,
    violations: Vec<Violation>,
    /// Where the questions go when they are not to be answered.
    described: Option<&'a RefCell<Vec<Question>>>,
    /// Values of unknown members are not repeated.
    hides_unknown: bool,
}

impl<'a> Reader<'a> {
    /// A reader of the parameters of a call.
    #[must_use]
    pub fn new(map: &'a Map<String, Value>) -> Self {
        Self {
            map,
            asked: Vec::new(),
            violations: Vec::new(),
            described: None,
            hides_unknown: false,
        }
    }

    /// Unknown members are named without their values, one of which may be a secret under a misspelt name.
    pub const fn hide_unknown(&mut self) {
        self.hides_unknown = true;
    }

    /// A member that must be there. `None`: it is not, or is wrong; [`Self::finish`] will say so.
    pub fn required<K: Kind>(
        &mut self,
        name: &'static str,
        kind: K,
        description: &'static str,
    ) -> Option<K::Out> {
        let value = self.question(name, || Question {
            name,
            required: true,
            description,
            schema: kind.schema(),
            default: None,
        })?;
        if value.is_null() {
            // The parser of the kind says best what would be accepted.
            let expected = kind.parse(&Value::Null).err();
            let expected = expected.map_or("a value".into(), Refusal::expected);
            self.report(name, Fault::new("missing", expected), &Value::Null);
            return None;
        }
        self.parsed(name, value, &kind)
    }

    /// A member that may be left out. `None`: it is absent or `null`, or wrong, which
    /// [`Self::finish`] will report.
    pub fn optional<K: Kind>(
        &mut self,
        name: &'static str,
        kind: K,
        description: &'static str,
    ) -> Option<K::Out> {
        let value = self.question(name, || {
            Question::optional(name, kind.schema(), description)
        })?;
        if value.is_null() {
            return None;
        }
        self.parsed(name, value, &kind)
    }

    /// A member whose absence means `default`, as `null` does. Also `default` when it is wrong, which
    /// [`Self::finish`] will report.
    pub fn with_default<K: Written>(
        &mut self,
        name: &'static str,
        kind: K,
        default: K::Out,
        description: &'static str,
    ) -> K::Out {
        let value = self.question(name, || Question {
            default: Some(kind.write(&default)),
            ..Question::optional(name, kind.schema(), description)
        });
        value
            .filter(|value| !value.is_null())
            .and_then(|value| self.parsed(name, value, &kind))
            .unwrap_or(default)
    }

    /// Leaves all members to another reader, which `questions` describes.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn hand_over<T>(
        self,
        questions: impl FnOnce() -> Vec<Question>,
        read: impl FnOnce(&'a Map<String, Value>) -> Result<T, Vec<Violation>>,
    ) -> Result<T, Vec<Violation>> {
        match self.described {
            None => read(self.map),
            Some(described) => {
                described.borrow_mut().extend(questions());
                Err(Vec::new())
            }
        }
    }

    /// Whether the call has the member, and it is not `null`.
    #[must_use]
    pub fn given(&self, name: &str) -> bool {
        !self.value(name).is_null()
    }

    /// The member as it stands, `null` when it is absent, for a violation that names it.
    #[must_use]
    pub fn value(&self, name: &str) -> &'a Value {
        self.map.get(name).unwrap_or(&Value::Null)
    }

    /// Adds a violation of the member `name`.
    pub fn report(&mut self, name: &str, fault: Fault, actual: &Value) {
        Violation::report(&mut self.violations, || {
            Violation::of(name, fault.reason, fault.expected, actual)
        });
    }

    /// The value that `build` makes of what was read, if nothing was wrong. `build` may use `?` on
    /// what [`Self::required`] returned.
    ///
    /// # Errors
    /// Every violation found, unknown members included, in the order of the questions; at most [`VIOLATIONS_MAX`] of
    /// members, because a caller may send a million of them.
    pub fn finish<T>(mut self, build: impl FnOnce() -> Option<T>) -> Result<T, Vec<Violation>> {
        if self.described.is_some() {
            return Err(Vec::new());
        }
        let map = self.map;
        for (name, value) in map {
            if self.violations.len() >= VIOLATIONS_MAX {
                break;
            }
            if self.asked.contains(&name.as_str()) {
                continue;
            }
            let expected = match suggestion(name, self.asked.iter().copied()) {
                Some(near) => format!("a known parameter; did you mean `{near}`?"),
                None if self.asked.is_empty() => "no parameters".to_owned(),
                None => format!("one of {}", self.asked.join(", ")),
            };
            let shown = if self.hides_unknown {
                &Value::Null
            } else {
                value
            };
            self.report(name, Fault::new("unknown parameter", expected), shown);
        }
        if !self.violations.is_empty() {
            return Err(self.violations);
        }
        Ok(build().expect("a required member that is missing or wrong was reported"))
    }

    /// The member, `null` when it is absent. `None`: the question was only noted.
    fn question(
        &mut self,
        name: &'static str,
        describe: impl FnOnce() -> Question,
    ) -> Option<&'a Value> {
        if let Some(described) = self.described {
            described.borrow_mut().push(describe());
            return None;
        }
        self.asked.push(name);
        Some(self.value(name))
    }

    fn parsed<K: Kind>(&mut self, name: &'static str, value: &Value, kind: &K) -> Option<K::Out> {
        match kind.parse(value) {
            Ok(parsed) => return Some(parsed),
            Err(Refusal::Here(fault)) => self.report(name, fault, value),
            Err(Refusal::Inside(violations)) => self.violations.extend(violations),
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use taskledger_domain::TaskId;

    #[derive(Debug, PartialEq)]
    struct Params {
        id: TaskId,
        flag: Option<bool>,
        count: u64,
        name: String,
    }

    impl Parameters for Params {
        fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
            let id = reader.required("id", TASK_ID, "the task");
            let flag = reader.optional("flag", BOOLEAN, "whether");
            let count = reader.with_default("count", integer(1..=10), 4, "how many");
            let name = reader.required("name", text(3), "what to call it");
            reader.finish(|| {
                Some(Self {
                    id: id?,
                    flag,
                    count,
                    name: name?,
                })
            })
        }
    }

    fn read(value: Value) -> Result<Params, Vec<Violation>> {
        Params::read(value.as_object().unwrap())
    }

    #[test]
    fn every_fault_is_reported_at_once_and_in_order() {
        let violations = read(json!({"id": "x", "flag": 1, "count": 11, "nmae": "n"})).unwrap_err();
        let found: Vec<_> = violations
            .iter()
            .map(|v| (v.field.as_str(), v.reason.as_str(), v.expected.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                ("id", "Invalid UUID format", "a UUID v4"),
                ("flag", "not a boolean", "true or false"),
                ("count", "out of range", "an integer from 1 to 10"),
                ("name", "missing", "a string of 1 to 3 characters"),
                (
                    "nmae",
                    "unknown parameter",
                    "a known parameter; did you mean `name`?"
                ),
            ]
        );
    }

    #[test]
    fn null_counts_as_absent() {
        let id = "0f8fad5b-d9cb-469f-a165-70867728950e";
        let given = read(json!({"id": id, "flag": null, "count": null, "name": "n"})).unwrap();
        assert_eq!((given.flag, given.count), (None, 4));
    }

    #[test]
    fn the_questions_are_the_description() {
        let questions: Vec<_> = Params::questions()
            .into_iter()
            .map(|q| (q.name, q.required, q.description, q.schema, q.default))
            .collect();
        assert_eq!(
            questions,
            [
                ("id", true, "the task", TASK_ID.schema(), None),
                (
                    "flag",
                    false,
                    "whether",
                    json!({"type": ["boolean", "null"]}),
                    None
                ),
                (
                    "count",
                    false,
                    "how many",
                    json!({"type": ["integer", "null"], "minimum": 1, "maximum": 10}),
                    Some(json!(4))
                ),
                (
                    "name",
                    true,
                    "what to call it",
                    json!({"type": "string", "minLength": 1, "maxLength": 3}),
                    None
                ),
            ]
        );
    }
}
