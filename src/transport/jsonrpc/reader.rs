//! Reads parameters out of a JSON object and collects everything that is wrong with them.
//!
//! ```
//! # use taskledger::transport::jsonrpc::reader::{self, Reader};
//! # use serde_json::{Map, json};
//! # let params: Map<_, _> = serde_json::from_value(json!({"name": "n", "count": 3})).unwrap();
//! let mut reader = Reader::new(&params);
//! let name = reader.required("name", reader::text(255));
//! let count = reader.optional("count", reader::integer(1..=10));
//! let read = reader.finish(|| Some((name?, count.unwrap_or(1))));
//! assert_eq!(read, Ok(("n".to_owned(), 3)));
//! ```
//!
//! A member that is `null` counts as absent, as in the protocol's examples. A member that nobody
//! asked for is refused with the names that exist.

use serde_json::{Map, Value};
use std::borrow::Cow;
use std::ops::RangeInclusive;
use taskledger_domain::task::{Priority, Status};
use taskledger_domain::{PathSegment, TaskId, Timestamp, Violation};

/// What is wrong with one value, before it is known where the value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub reason: Cow<'static, str>,
    /// What would be accepted.
    pub expected: Cow<'static, str>,
}

impl Fault {
    /// A fault.
    pub fn new(
        reason: impl Into<Cow<'static, str>>,
        expected: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            reason: reason.into(),
            expected: expected.into(),
        }
    }
}

/// Takes members out of an object, one question at a time.
#[derive(Debug)]
pub struct Reader<'a> {
    map: &'a Map<String, Value>,
    path: Vec<PathSegment>,
    asked: Vec<&'static str>,
    violations: Vec<Violation>,
}

impl<'a> Reader<'a> {
    /// A reader of the parameters of a call.
    #[must_use]
    pub fn new(map: &'a Map<String, Value>) -> Self {
        Self::at(map, &[])
    }

    /// A reader of an object that stands at `path` below the parameters.
    #[must_use]
    pub fn at(map: &'a Map<String, Value>, path: &[PathSegment]) -> Self {
        Self {
            map,
            path: path.to_vec(),
            asked: Vec::new(),
            violations: Vec::new(),
        }
    }

    /// A member that must be there. `None`: it is not, or is wrong; [`Self::finish`] will say so.
    pub fn required<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&'a Value) -> Result<T, Fault>,
    ) -> Option<T> {
        self.asked.push(name);
        match self.map.get(name) {
            None | Some(Value::Null) => {
                // The parser of the type says best what would be accepted.
                let expected = parse(&Value::Null)
                    .err()
                    .map_or(Cow::Borrowed("a value"), |fault| fault.expected);
                self.report(name, Fault::new("missing", expected), &Value::Null);
                None
            }
            Some(value) => self.parsed(name, value, parse),
        }
    }

    /// A member that may be left out. `None`: it is absent or `null`, or wrong, which
    /// [`Self::finish`] will report.
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&'a Value) -> Result<T, Fault>,
    ) -> Option<T> {
        self.asked.push(name);
        match self.map.get(name) {
            None | Some(Value::Null) => None,
            Some(value) => self.parsed(name, value, parse),
        }
    }

    /// The member as it stands, also when it is `null`; whoever takes it checks it.
    pub fn raw(&mut self, name: &'static str) -> Option<&'a Value> {
        self.asked.push(name);
        self.map.get(name)
    }

    /// Adds violations that were found outside.
    pub fn add(&mut self, violations: impl IntoIterator<Item = Violation>) {
        self.violations.extend(violations);
    }

    /// Adds a violation of the member `name`.
    pub fn report(&mut self, name: &str, fault: Fault, actual: &Value) {
        let mut path = self.path.clone();
        path.push(name.into());
        self.violations
            .push(Violation::new(&path, fault.reason, fault.expected, actual));
    }

    /// The value that `build` makes of what was read, if nothing was wrong. `build` may use `?` on
    /// what [`Self::required`] returned.
    ///
    /// # Errors
    /// Every violation found, unknown members included, in the order of the questions.
    pub fn finish<T>(mut self, build: impl FnOnce() -> Option<T>) -> Result<T, Vec<Violation>> {
        let unknown: Vec<&String> = self
            .map
            .keys()
            .filter(|name| !self.asked.contains(&name.as_str()))
            .collect();
        for name in unknown {
            let expected = match suggestion(name, self.asked.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if self.asked.is_empty() => "no parameters".to_owned(),
                None => format!("one of {}", self.asked.join(", ")),
            };
            self.report(
                name,
                Fault::new("unknown parameter", expected),
                &self.map[name],
            );
        }
        if !self.violations.is_empty() {
            return Err(self.violations);
        }
        Ok(build().expect("a required member that is missing or wrong was reported"))
    }

    fn parsed<T>(
        &mut self,
        name: &'static str,
        value: &'a Value,
        parse: impl FnOnce(&'a Value) -> Result<T, Fault>,
    ) -> Option<T> {
        match parse(value) {
            Ok(parsed) => Some(parsed),
            Err(fault) => {
                self.report(name, fault, value);
                None
            }
        }
    }
}

/// A stored task's id.
///
/// # Errors
/// `Invalid UUID format`, the protocol's own words, for any other string.
pub fn task_id(value: &Value) -> Result<TaskId, Fault> {
    const EXPECTED: &str = "a UUID v4";
    let text = value.as_str().ok_or(Fault::new("not a string", EXPECTED))?;
    TaskId::parse(text).map_err(|_| Fault::new("Invalid UUID format", EXPECTED))
}

/// `true` or `false`.
///
/// # Errors
/// Anything else, also 0, 1 and strings.
pub fn boolean(value: &Value) -> Result<bool, Fault> {
    value
        .as_bool()
        .ok_or(Fault::new("not a boolean", "true or false"))
}

/// A string of 1 to `chars_max` Unicode scalar values.
pub fn text(chars_max: usize) -> impl Fn(&Value) -> Result<String, Fault> {
    move |value| {
        let expected = || format!("a string of 1 to {chars_max} characters");
        let text = value
            .as_str()
            .ok_or_else(|| Fault::new("not a string", expected()))?;
        // Bytes first: counting characters costs a pass.
        if text.is_empty() {
            Err(Fault::new("empty", expected()))
        } else if text.len() > chars_max && text.chars().count() > chars_max {
            Err(Fault::new("too long", expected()))
        } else {
            Ok(text.to_owned())
        }
    }
}

/// A whole number in `range`; `3.0` is one, as in JSON Schema.
pub fn integer(range: RangeInclusive<u64>) -> impl Fn(&Value) -> Result<u64, Fault> {
    /// 2^53: whole numbers above it are not exact as JSON floats.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    move |value| {
        let expected = || match (*range.start(), *range.end()) {
            (start, u64::MAX) => format!("an integer of {start} or more"),
            (start, end) => format!("an integer from {start} to {end}"),
        };
        let number = value
            .as_number()
            .ok_or_else(|| Fault::new("not an integer", expected()))?;
        let whole = number.as_u64().or_else(|| {
            number
                .as_f64()
                .filter(|n| n.fract() == 0.0 && (0.0..=EXACT_MAX).contains(n))
                .map(|n| n as u64)
        });
        match whole {
            Some(n) if range.contains(&n) => Ok(n),
            Some(_) => Err(Fault::new("out of range", expected())),
            None if number.as_f64().is_some_and(|n| n.fract() != 0.0) => {
                Err(Fault::new("not an integer", expected()))
            }
            None => Err(Fault::new("out of range", expected())),
        }
    }
}

/// An object.
///
/// # Errors
/// Anything else.
pub fn object(value: &Value) -> Result<&Map<String, Value>, Fault> {
    value
        .as_object()
        .ok_or(Fault::new("not an object", "an object"))
}

/// An array.
///
/// # Errors
/// Anything else.
pub fn array(value: &Value) -> Result<&Vec<Value>, Fault> {
    value
        .as_array()
        .ok_or(Fault::new("not an array", "an array"))
}

/// One of the protocol's statuses.
///
/// # Errors
/// Any other string, and anything else.
pub fn status(value: &Value) -> Result<Status, Fault> {
    value.as_str().and_then(Status::parse).ok_or_else(|| {
        let names = Status::ALL.map(Status::as_str).join(", ");
        Fault::new("not a status", format!("one of {names}"))
    })
}

/// 0 to 3.
///
/// # Errors
/// Any other number, and anything else.
pub fn priority(value: &Value) -> Result<Priority, Fault> {
    let number = integer(0..=3)(value)?;
    u8::try_from(number)
        .ok()
        .and_then(Priority::new)
        .ok_or(Fault::new("out of range", "an integer from 0 to 3"))
}

/// A point in time in RFC 3339.
///
/// # Errors
/// Any other string, and anything else.
pub fn timestamp(value: &Value) -> Result<Timestamp, Fault> {
    value
        .as_str()
        .and_then(|text| Timestamp::parse(text).ok())
        .ok_or(Fault::new(
            "not a point in time",
            "RFC 3339, for example 2026-01-31T12:00:00Z",
        ))
}

/// The name among `names` that `given` was probably meant to be: at most two letters away, and
/// at most half of them wrong. Cost: O(names x letters²); texts over 64 bytes have none.
pub(crate) fn suggestion<'n>(given: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    const BYTES_MAX: usize = 64;
    if given.len() > BYTES_MAX {
        return None;
    }
    names
        .map(|name| (distance(given, name), name))
        .filter(|(distance, name)| *distance <= 2 && distance * 2 <= name.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Insertions, deletions and replacements between two texts, ignoring ASCII case.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<u8> = b.bytes().map(|c| c.to_ascii_lowercase()).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.bytes().map(|c| c.to_ascii_lowercase()).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn every_fault_is_reported_at_once_and_in_order() {
        let params = map(json!({"id": "x", "flag": 1, "count": 11, "nmae": "n"}));
        let mut reader = Reader::new(&params);
        let id = reader.required("id", task_id);
        let flag = reader.optional("flag", boolean);
        let count = reader.optional("count", integer(1..=10));
        let name = reader.required("name", text(3));
        let violations = reader
            .finish(|| Some((id?, flag, count, name?)))
            .unwrap_err();
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
                ("nmae", "unknown parameter", "did you mean `name`?"),
            ]
        );
    }

    #[test]
    fn null_counts_as_absent() {
        let params = map(json!({"flag": null}));
        let mut reader = Reader::new(&params);
        assert_eq!(reader.optional("flag", boolean), None);
        assert_eq!(reader.finish(|| Some(())), Ok(()));
    }

    #[test]
    fn a_path_leads_to_the_value() {
        let params = map(json!({"x": 1}));
        let mut reader = Reader::at(&params, &["tasks".into(), 3.into()]);
        let x = reader.required("x", boolean);
        let violations = reader.finish(|| x).unwrap_err();
        assert_eq!(json!(violations[0].path), json!(["tasks", 3, "x"]));
    }

    #[test]
    fn whole_numbers_may_be_written_as_floats() {
        let parse = integer(0..=1000);
        assert_eq!(parse(&json!(5)), Ok(5));
        assert_eq!(parse(&json!(5.0)), Ok(5));
        assert_eq!(parse(&json!(5.5)).unwrap_err().reason, "not an integer");
        assert_eq!(parse(&json!(-1)).unwrap_err().reason, "out of range");
        assert_eq!(parse(&json!(1e300)).unwrap_err().reason, "out of range");
        assert_eq!(parse(&json!("5")).unwrap_err().reason, "not an integer");
        assert_eq!(parse(&json!(1001)).unwrap_err().reason, "out of range");
    }

    #[test]
    fn characters_are_counted_and_not_bytes() {
        assert_eq!(text(2)(&json!("éé")), Ok("éé".to_owned()));
        assert_eq!(text(2)(&json!("ééé")).unwrap_err().reason, "too long");
        assert_eq!(text(2)(&json!("")).unwrap_err().reason, "empty");
    }

    #[test]
    fn near_misses_are_suggested_and_far_ones_are_not() {
        let names = ["task_id", "cascade", "id"];
        assert_eq!(suggestion("taskid", names.into_iter()), Some("task_id"));
        assert_eq!(suggestion("Task_Id", names.into_iter()), Some("task_id"));
        assert_eq!(suggestion("zz", names.into_iter()), None);
        assert_eq!(suggestion(&"a".repeat(100), names.into_iter()), None);
    }
}
