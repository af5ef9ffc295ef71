//! Symbols and ids: which id stands behind which symbol, and whether an answer fits its pattern.

use crate::differential::oracle::{ANY_NUMBER, ANY_TEXT};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How reasons begin that are about trees, parents, dependencies and statuses: the oracle knows the codes of such
/// refusals, and not where their faults stand. They are told beside faults of values, which come first.
const OF_LATER_FAMILIES: [&str; 10] = [
    "An attempt of the flow ",
    "An active run ",
    "Circular ",
    "Dependency task not found",
    "Flow has a root already",
    "Multiple root tasks found",
    "Parent ",
    "Task ",
    "Does not match the tree",
    "Tree is too deep",
];

/// Progress is kept in millionths.
const NUMBERS_DIFFER_BY_MAX: f64 = 1.5e-6;

/// Ids by symbol, learned from answers in the order in which they come.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    ids: BTreeMap<String, String>,
    symbols: BTreeMap<String, String>,
}

impl Names {
    /// The id of a symbol; a symbol that no answer has named gets an id that the server has not
    /// made.
    pub(crate) fn id(&mut self, symbol: &str) -> String {
        if let Some(id) = self.ids.get(symbol) {
            return id.clone();
        }
        let id = invented(symbol);
        self.bind(symbol, &id);
        id
    }

    /// Whether the symbol stands for an id.
    pub(crate) fn knows(&self, symbol: &str) -> bool {
        self.ids.contains_key(symbol)
    }

    /// The symbol of an id, or the id.
    pub(crate) fn symbol(&self, id: &str) -> String {
        let known = self.symbols.get(id);
        known.map_or_else(|| id.to_owned(), |symbol| format!("@{symbol}"))
    }

    fn bind(&mut self, symbol: &str, id: &str) {
        self.ids.insert(symbol.to_owned(), id.to_owned());
        self.symbols.insert(id.to_owned(), symbol.to_owned());
    }

    /// `value` with ids for symbols, as it is sent.
    pub(crate) fn write(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => match text.strip_prefix('@') {
                Some(symbol) => match (symbol.strip_prefix('^'), symbol.split_once(':')) {
                    (Some(symbol), _) => self.id(symbol).to_uppercase().into(),
                    (None, Some((symbol, place))) => format!("{}{place}", self.id(symbol)).into(),
                    (None, None) => self.id(symbol).into(),
                },
                None => value.clone(),
            },
            Value::Array(items) => items.iter().map(|v| self.write(v)).collect(),
            Value::Object(map) => {
                let members = map.iter().map(|(k, v)| (k.clone(), self.write(v)));
                Value::Object(members.collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// `value` with symbols for ids, to be read by people.
    pub(crate) fn read(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.symbol(text).into(),
            Value::Array(items) => items.iter().map(|v| self.read(v)).collect(),
            Value::Object(map) => {
                let members = map.iter().map(|(k, v)| (self.symbol(k), self.read(v)));
                Value::Object(members.collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// Adds to `faults` where `actual` is not what the pattern `expected` says. A symbol that is
    /// new takes the id that stands in its place.
    pub(crate) fn fit(
        &mut self,
        expected: &Value,
        actual: &Value,
        at: &str,
        faults: &mut Vec<String>,
    ) {
        let fits = match (expected, actual) {
            (Value::String(pattern), Value::String(text)) => {
                if pattern == ANY_TEXT {
                    !text.is_empty()
                } else if let Some(symbol) = pattern.strip_prefix("@^") {
                    self.id(symbol).to_uppercase() == *text
                } else if let Some((symbol, place)) = reference(pattern) {
                    format!("{}{place}", self.id(symbol)) == *text
                } else if let Some(symbol) = pattern.strip_prefix('@') {
                    self.fit_id(symbol, text)
                } else {
                    pattern == text
                }
            }
            (Value::String(pattern), Value::Number(_)) => pattern == ANY_NUMBER,
            (Value::Number(a), Value::Number(b)) => {
                let (a, b) = (
                    a.as_f64().unwrap_or(f64::NAN),
                    b.as_f64().unwrap_or(f64::NAN),
                );
                (a - b).abs() <= NUMBERS_DIFFER_BY_MAX
            }
            (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
                for (i, (a, b)) in a.iter().zip(b).enumerate() {
                    self.fit(a, b, &format!("{at}/{i}"), faults);
                }
                true
            }
            (Value::Object(a), Value::Object(b)) => {
                self.fit_objects(a, b, at, faults);
                true
            }
            (a, b) => a == b,
        };
        if !fits {
            faults.push(format!(
                "{at}: expected {expected}, found {}",
                self.read(actual)
            ));
        }
    }

    fn fit_id(&mut self, symbol: &str, id: &str) -> bool {
        if let Some(known) = self.ids.get(symbol) {
            return known == id;
        }
        let fresh = !self.symbols.contains_key(id) && is_uuid_v4(id);
        if fresh {
            self.bind(symbol, id);
        }
        fresh
    }

    fn fit_objects(
        &mut self,
        a: &Map<String, Value>,
        b: &Map<String, Value>,
        at: &str,
        faults: &mut Vec<String>,
    ) {
        let mut seen = Vec::new();
        for (name, expected) in a {
            let key = name
                .strip_prefix('@')
                .map_or_else(|| name.clone(), |s| self.id(s));
            match b.get(&key) {
                Some(actual) => self.fit(expected, actual, &format!("{at}/{name}"), faults),
                None => faults.push(format!("{at}/{name}: expected {expected}, found nothing")),
            }
            seen.push(key);
        }
        for (name, actual) in b.iter().filter(|(k, _)| !seen.contains(k)) {
            faults.push(format!(
                "{at}/{name}: expected nothing, found {}",
                self.read(actual)
            ));
        }
    }
}

/// Symbol and place of a reference to a result.
fn reference(pattern: &str) -> Option<(&str, &str)> {
    pattern.strip_prefix('@')?.split_once(':')
}

fn is_uuid_v4(text: &str) -> bool {
    let bytes = text.as_bytes();
    let dash = |i: &usize| matches!(i, 8 | 13 | 18 | 23);
    let lower = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    bytes.len() == 36
        && (0..36).all(|i| {
            if dash(&i) {
                bytes[i] == b'-'
            } else {
                lower(bytes[i])
            }
        })
        && bytes[14] == b'4'
        && matches!(bytes[19], b'8' | b'9' | b'a' | b'b')
}

/// A UUID v4 made of the symbol's letters.
fn invented(symbol: &str) -> String {
    let hash = |salt: u64| {
        symbol
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325 ^ salt, |h: u64, b| {
                (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
            })
    };
    let text = format!("{:016x}{:016x}", hash(1), hash(2));
    let (a, b, c, d) = (&text[..8], &text[8..12], &text[13..16], &text[17..20]);
    format!("{a}-{b}-4{c}-a{d}-{}", &text[20..32])
}

#[test]
fn a_symbol_keeps_the_id_that_it_got_first() {
    let mut names = Names::default();
    let id = "0f8fad5b-d9cb-469f-a165-70867728950e";
    let mut faults = Vec::new();
    names.fit(&"@a".into(), &id.into(), "", &mut faults);
    assert!(faults.is_empty(), "{faults:?}");
    names.fit(&"@b".into(), &id.into(), "", &mut faults);
    assert_eq!(faults.len(), 1, "another symbol has this id");
    assert!(is_uuid_v4(&names.id("never seen")));
    assert_eq!(names.write(&"@^a".into()), Value::from(id.to_uppercase()));
}

/// Whether a fault that is listed belongs to a family behind faults of values.
pub(crate) fn is_of_a_later_family(fault: &Value) -> bool {
    let reason = fault["reason"].as_str().unwrap_or_default();
    OF_LATER_FAMILIES.iter().any(|it| reason.starts_with(it))
}
