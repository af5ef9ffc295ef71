//! Labels, by which callers describe tasks for people and for filters. The server gives them no meaning.
//!
//! Owns: their syntax and bounds, and [`Selector`], which chooses tasks by them.

use crate::limits;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a key may be, for errors.
pub const KEY_EXPECTED: &str = "a key of 1 to 63 letters, digits, `-`, `_` and `.`, with at most one `/` after a prefix; each part begins and ends with a letter or a digit";
/// What a key may be, as a regular expression; its length is bounded beside it.
pub const KEY_PATTERN: &str =
    "^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$";
/// What a value may be, for errors.
pub const VALUE_EXPECTED: &str = "a text of at most 255 characters without control characters";
/// What a value may be, as a regular expression.
pub const VALUE_PATTERN: &str = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$";

/// The labels of a task: keys with values, each key once, at most [`limits::LABELS_MAX`]. Cloning is cheap.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Labels(
    /// `None`: no labels.
    Option<Arc<BTreeMap<String, String>>>,
);

/// A fault in labels, or in a selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelFault {
    /// The key that it is about; `None`: all of them.
    pub key: Option<String>,
    /// What is wrong.
    pub reason: String,
    /// What would be accepted.
    pub expected: &'static str,
    /// What was given.
    pub actual: Value,
}

const OBJECT_EXPECTED: &str = "an object of at most 32 keys with texts as values";
const SELECTOR_EXPECTED: &str =
    "an object of at most 32 keys, each with the text that its value must be, or null for any";
const TERM_EXPECTED: &str = "`key=value`, or `key` for any value";

impl Labels {
    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// In the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.0.iter().flat_map(|map| map.iter());
        all.map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.as_ref()?.get(key).map(String::as_str)
    }

    /// Bytes of all keys and values. Cost: O(labels).
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.iter()
            .map(|(key, value)| key.len() + value.len())
            .sum()
    }

    /// What each label is found by: `key`, and `key=value`, which no key can be.
    pub fn terms(&self) -> impl Iterator<Item = String> {
        self.iter()
            .flat_map(|(key, value)| [key.to_owned(), format!("{key}={value}")])
    }

    /// As JSON text; `None` when there are none.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let map = self.0.as_deref()?;
        Some(serde_json::to_string(map).expect("texts can always be written as JSON"))
    }

    /// Reads the member `labels` of a task; null is no labels.
    ///
    /// # Errors
    /// All that is wrong.
    pub fn parse(value: &Value) -> Result<Self, Vec<LabelFault>> {
        if value.is_null() {
            return Ok(Self::default());
        }
        let map = object(value, OBJECT_EXPECTED)?;
        let (mut labels, mut faults) = (BTreeMap::new(), Vec::new());
        for (key, value) in map {
            let checked = key_of(key).and_then(|()| value_of(key, value));
            match checked {
                Ok(value) => _ = labels.insert(key.clone(), value.to_owned()),
                Err(fault) => faults.push(fault),
            }
        }
        if faults.is_empty() {
            Ok(Self::from(labels))
        } else {
            Err(faults)
        }
    }
}

impl From<BTreeMap<String, String>> for Labels {
    fn from(map: BTreeMap<String, String>) -> Self {
        Self((!map.is_empty()).then(|| Arc::new(map)))
    }
}

impl Serialize for Labels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(Self::from)
    }
}

/// Chooses tasks: each of these keys must be there, with this value if one is named.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Selector(BTreeMap<String, Option<String>>);

impl Selector {
    /// Whether it chooses all tasks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a task with these labels is chosen. Cost: O(keys of the selector).
    #[must_use]
    pub fn matches(&self, labels: &Labels) -> bool {
        self.0.iter().all(|(key, wanted)| {
            let found = labels.get(key);
            found.is_some_and(|found| wanted.as_ref().is_none_or(|wanted| wanted == found))
        })
    }

    /// What it asks for, in the words of [`Labels::terms`], those with a value first.
    #[must_use]
    pub fn terms(&self) -> Vec<String> {
        let with = self.0.iter().filter_map(|(key, value)| {
            let value = value.as_ref()?;
            Some(format!("{key}={value}"))
        });
        let without = self.0.iter().filter(|(_, value)| value.is_none());
        with.chain(without.map(|(key, _)| key.clone())).collect()
    }

    /// As JSON: each key with its value, or null.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::to_string(&self.0).expect("texts can always be written as JSON")
    }

    /// Reads `{key: value}`; null as a value stands for any.
    ///
    /// # Errors
    /// All that is wrong.
    pub fn parse(value: &Value) -> Result<Self, Vec<LabelFault>> {
        let map = object(value, SELECTOR_EXPECTED)?;
        let (mut selector, mut faults) = (BTreeMap::new(), Vec::new());
        for (key, value) in map {
            let checked = key_of(key).and_then(|()| match value {
                Value::Null => Ok(None),
                Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_)
                | Value::Object(_) => value_of(key, value).map(|text| Some(text.to_owned())),
            });
            match checked {
                Ok(value) => _ = selector.insert(key.clone(), value),
                Err(fault) => faults.push(fault),
            }
        }
        if faults.is_empty() {
            Ok(Self(selector))
        } else {
            Err(faults)
        }
    }

    /// Adds a term as texts have it: `key=value`, or `key` for any value.
    ///
    /// # Errors
    /// It is none, there are too many, or the key is named twice with different values.
    pub fn add(&mut self, term: &str) -> Result<(), LabelFault> {
        let (key, value) = match term.split_once('=') {
            Some((key, value)) => (key, Some(Value::from(value))),
            None => (term, None),
        };
        let fault = |reason: &str| LabelFault {
            key: Some(key.to_owned()),
            reason: reason.to_owned(),
            expected: TERM_EXPECTED,
            actual: term.into(),
        };
        key_of(key)?;
        let value = match &value {
            Some(value) => Some(value_of(key, value)?.to_owned()),
            None => None,
        };
        if self.0.get(key).is_some_and(|before| *before != value) {
            return Err(fault("Given twice with different values"));
        }
        if self.0.len() >= limits::LABELS_MAX && !self.0.contains_key(key) {
            return Err(fault("Too many labels"));
        }
        self.0.insert(key.to_owned(), value);
        Ok(())
    }
}

fn object<'v>(
    value: &'v Value,
    expected: &'static str,
) -> Result<&'v Map<String, Value>, Vec<LabelFault>> {
    let fault = |reason: String, actual: Value| {
        vec![LabelFault {
            key: None,
            reason,
            expected,
            actual,
        }]
    };
    let Some(map) = value.as_object() else {
        return Err(fault("Wrong type".to_owned(), value.clone()));
    };
    if map.len() > limits::LABELS_MAX {
        let reason = format!(
            "Too many: {}, the limit is {}",
            map.len(),
            limits::LABELS_MAX
        );
        return Err(fault(reason, map.len().into()));
    }
    Ok(map)
}

fn key_of(key: &str) -> Result<(), LabelFault> {
    let fault = |reason: String| {
        Err(LabelFault {
            key: Some(key.to_owned()),
            reason,
            expected: KEY_EXPECTED,
            actual: key.into(),
        })
    };
    let chars = key.chars().count();
    if chars > limits::LABEL_KEY_CHARS_MAX {
        let max = limits::LABEL_KEY_CHARS_MAX;
        return fault(format!("Too long: {chars} characters, the limit is {max}"));
    }
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        let ends = [bytes.first(), bytes.last()];
        bytes.iter().all(inner)
            && ends
                .iter()
                .all(|b| b.is_some_and(u8::is_ascii_alphanumeric))
    };
    let is_key = match key.split_once('/') {
        Some((prefix, name)) => is_part(prefix) && is_part(name),
        None => is_part(key),
    };
    if is_key {
        Ok(())
    } else {
        fault("Not a key of a label".to_owned())
    }
}

fn value_of<'v>(key: &str, value: &'v Value) -> Result<&'v str, LabelFault> {
    let fault = |reason: String| {
        Err(LabelFault {
            key: Some(key.to_owned()),
            reason,
            expected: VALUE_EXPECTED,
            actual: value.clone(),
        })
    };
    let Some(text) = value.as_str() else {
        return fault("Wrong type".to_owned());
    };
    let (chars, max) = (text.chars().count(), limits::LABEL_VALUE_CHARS_MAX);
    if chars > max {
        return fault(format!("Too long: {chars} characters, the limit is {max}"));
    }
    if text.chars().any(char::is_control) {
        return fault("Has control characters".to_owned());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reasons(value: Value) -> Vec<(Option<String>, String)> {
        let faults = Labels::parse(&value).expect_err("they are wrong");
        faults.into_iter().map(|it| (it.key, it.reason)).collect()
    }

    #[test]
    fn labels_are_read_and_found_by_key_and_value() {
        let long = "é".repeat(limits::LABEL_VALUE_CHARS_MAX);
        let given = json!({"team": "data", "example.org/Tier": "", "a": long, "x_1.y-z": "= / *"});
        let labels = Labels::parse(&given).unwrap();
        assert_eq!(serde_json::to_value(&labels).unwrap(), given);
        assert_eq!(serde_json::from_value::<Labels>(given).unwrap(), labels);
        assert_eq!(labels.get("team"), Some("data"));
        let terms: Vec<_> = labels.terms().collect();
        assert!(terms.contains(&"team=data".to_owned()) && terms.contains(&"team".to_owned()));
        assert!(Labels::parse(&json!({})).unwrap().is_empty());
        assert!(Labels::parse(&Value::Null).unwrap().is_empty());
    }

    #[test]
    fn every_fault_names_its_key() {
        let long = "k".repeat(limits::LABEL_KEY_CHARS_MAX + 1);
        let value = "v".repeat(limits::LABEL_VALUE_CHARS_MAX + 1);
        for (bad, key, reason) in [
            (json!({"": "v"}), "", "Not a key of a label"),
            (json!({"-a": "v"}), "-a", "Not a key of a label"),
            (json!({"a.": "v"}), "a.", "Not a key of a label"),
            (json!({"a b": "v"}), "a b", "Not a key of a label"),
            (json!({"a=b": "v"}), "a=b", "Not a key of a label"),
            (json!({"a/b/c": "v"}), "a/b/c", "Not a key of a label"),
            (json!({"/a": "v"}), "/a", "Not a key of a label"),
            (json!({"é": "v"}), "é", "Not a key of a label"),
            (
                json!({&long: "v"}),
                long.as_str(),
                "Too long: 64 characters, the limit is 63",
            ),
            (json!({"a": 1}), "a", "Wrong type"),
            (json!({"a": null}), "a", "Wrong type"),
            (json!({"a": "x\ny"}), "a", "Has control characters"),
            (
                json!({"a": value}),
                "a",
                "Too long: 256 characters, the limit is 255",
            ),
        ] {
            assert_eq!(reasons(bad), [(Some(key.to_owned()), reason.to_owned())]);
        }
        assert_eq!(reasons(json!({"a": 1, "-": "v"})).len(), 2);
        assert_eq!(reasons(json!([])), [(None, "Wrong type".to_owned())]);
        let many: Map<String, Value> = (0..33).map(|i| (format!("k{i}"), "v".into())).collect();
        assert_eq!(
            reasons(many.into()),
            [(None, "Too many: 33, the limit is 32".to_owned())]
        );
    }

    #[test]
    fn a_selector_wants_every_key() {
        let labels = Labels::parse(&json!({"team": "data", "stage": "test"})).unwrap();
        let wants = |selector: Value| Selector::parse(&selector).unwrap().matches(&labels);
        assert!(wants(json!({})));
        assert!(wants(json!({"team": "data"})));
        assert!(wants(json!({"team": null, "stage": "test"})));
        assert!(!wants(json!({"team": "data", "stage": "live"})));
        assert!(!wants(json!({"owner": null})));
        assert!(Selector::parse(&json!({"team": 1})).is_err());
        let terms = Selector::parse(&json!({"a": null, "b": "c"}))
            .unwrap()
            .terms();
        assert_eq!(terms, ["b=c", "a"]);
    }

    #[test]
    fn a_selector_is_read_from_texts() {
        let read = |terms: &[&str]| {
            let mut selector = Selector::default();
            terms
                .iter()
                .try_for_each(|term| selector.add(term))
                .map(|()| selector)
        };
        let same = json!({"a": "b=c", "d": null, "e": ""});
        assert_eq!(
            read(&["a=b=c", "d", "e="]),
            Ok(Selector::parse(&same).unwrap())
        );
        assert_eq!(
            read(&["a=b", "a=b"]).map(|it| it.terms()),
            Ok(vec!["a=b".to_owned()])
        );
        for bad in [
            &["=b"][..],
            &["a=b", "a=c"],
            &["a", "a=c"],
            &["-"],
            &["a=\u{7}"],
        ] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
