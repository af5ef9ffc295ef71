//! JSON texts as they arrive: what a parser of values would lose of them.
//!
//! Values hold integers of 64 bits. `serde_json` reads a larger one as the nearest double, so that another number would
//! be stored. Readers of JSON ask [`large_integers`] first and refuse what it finds.

use crate::limits::cut;
use crate::violation::{PathSegment, Violation};
use serde::de::DeserializeOwned;
use std::fmt;

macro_rules! reserved_name {
    () => {
        "$serde_json::private::RawValue"
    };
}
pub(crate) use reserved_name;

/// The name with which `serde_json` marks a raw value. An object that has it first is read as the JSON in its text, and
/// one that has it later cannot be read again, so it is refused everywhere.
pub const RESERVED_NAME: &str = reserved_name!();
/// Why a member of the reserved name is refused.
pub const RESERVED: &str = "the name `$serde_json::private::RawValue` is reserved";
/// What is accepted in its place.
pub const RESERVED_EXPECTED: &str = "another name";

/// Why a larger integer is refused.
pub const TOO_LARGE: &str = "the integer does not fit into 64 bits";
/// What is accepted in its place.
pub const TOO_LARGE_EXPECTED: &str =
    "an integer from -9223372036854775808 to 18446744073709551615, or a string";
/// Why a number is refused that is beyond all doubles.
pub const OUT_OF_RANGE: &str = "the number is out of range";
/// What is accepted in its place.
pub const OUT_OF_RANGE_EXPECTED: &str =
    "a number from -1.7976931348623157e308 to 1.7976931348623157e308, or a string";
/// Digits from which an integer may not fit.
const DIGITS_MIN: usize = 19;
/// Levels of nesting that are followed: the parser takes no more.
pub const DEPTH_MAX: usize = 128;
/// Bytes of a name in a path.
const NAME_BYTES_MAX: usize = Violation::NAME_BYTES_MAX;
/// Characters of a place that is shown.
const PLACE_CHARS_MAX: usize = 256;
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// An integer that does not fit into 64 bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LargeInteger {
    /// Its place in the text.
    pub path: Vec<PathSegment>,
    /// The integer as it is written, with its sign.
    pub digits: String,
}

/// A place in JSON as people write it, as in `inputs.ids[2]`; empty for the whole.
#[must_use]
pub fn place(path: &[PathSegment]) -> String {
    let mut place = String::new();
    for segment in path {
        match segment {
            PathSegment::Key(key) if place.is_empty() => place.push_str(key),
            PathSegment::Key(key) => place.extend([".", key]),
            PathSegment::Index(i) => place.push_str(&format!("[{i}]")),
        }
    }
    place.chars().take(PLACE_CHARS_MAX).collect()
}

impl fmt::Display for LargeInteger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = place(&self.path);
        if !place.is_empty() {
            write!(f, "`{place}`: ")?;
        }
        write!(f, "{TOO_LARGE}, expected {TOO_LARGE_EXPECTED}")
    }
}

/// Why a JSON text was not read.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// It is not JSON, or not of the wanted shape.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// It has an integer that would become another number.
    #[error("{0}")]
    Large(LargeInteger),
    /// A member has the name [`RESERVED_NAME`].
    #[error("{RESERVED}, expected {RESERVED_EXPECTED}")]
    Reserved,
}

/// Reads a JSON text as it is meant: a byte order mark is left out, and an integer beyond 64 bits is refused.
///
/// # Errors
/// [`Unread`].
pub fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T, Unread> {
    let text = without_byte_order_mark(text);
    if has_reserved_name(text) {
        return Err(Unread::Reserved);
    }
    let value = serde_json::from_slice(text)?;
    let large = large_integers(text, 1).pop();
    large.map_or(Ok(value), |large| Err(Unread::Large(large)))
}

/// A JSON text without the byte order mark that readers may ignore (RFC 8259, 8.1).
#[must_use]
pub fn without_byte_order_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// The first integers of a JSON text that do not fit into 64 bits, `max` at most. For texts that a parser has accepted:
/// others give some or none, and nothing is found deeper than [`DEPTH_MAX`]. Cost: O(bytes); for a text without long
/// numbers a nineteenth of them is looked at. Memory: O(`max` * depth).
#[must_use]
pub fn large_integers(json: &[u8], max: usize) -> Vec<LargeInteger> {
    match may_have_some(json) {
        true => Scan::default().over(json, max, is_large_integer),
        false => Vec::new(),
    }
}

/// The place of the first number that is beyond all doubles, which no parser of values takes although it is JSON.
/// Cost: O(bytes).
#[must_use]
pub fn out_of_range(json: &[u8]) -> Option<Vec<PathSegment>> {
    let is_infinite = |token: Token<'_>| match token {
        Token::Number(number) => number.parse().is_ok_and(f64::is_infinite),
        Token::Name(_) => false,
    };
    let found = Scan::default().over(json, 1, is_infinite).pop();
    found.map(|number| number.path)
}

/// The place of the first member of the name [`RESERVED_NAME`], if it is no deeper than [`DEPTH_MAX`].
/// Cost: O(bytes).
#[must_use]
pub fn place_of_reserved_name(json: &[u8]) -> Option<Vec<PathSegment>> {
    let is_reserved = |token: Token<'_>| match token {
        Token::Number(_) => false,
        Token::Name(name) => is_reserved(name),
    };
    let found = Scan::default().over(json, 1, is_reserved).pop();
    found.map(|name| name.path)
}

fn is_large_integer(token: Token<'_>) -> bool {
    let Token::Number(number) = token else {
        return false;
    };
    let is_integer = number.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    is_integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err()
}

/// Whether a string with its quotes is the reserved name.
fn is_reserved(string: &[u8]) -> bool {
    // Each character of the name may be written with six.
    let may_be = (RESERVED_NAME.len()..=6 * RESERVED_NAME.len() + 2).contains(&string.len());
    may_be && serde_json::from_slice::<String>(string).is_ok_and(|it| it == RESERVED_NAME)
}

/// Whether a member of an object in a JSON text has the name [`RESERVED_NAME`], in whichever way it is written. To be
/// asked before the text is parsed. Cost: O(bytes); little for a text that has neither the name nor escapes.
#[must_use]
pub fn has_reserved_name(json: &[u8]) -> bool {
    // A name with an escape in it may be any.
    let may_be = memchr::memmem::find(json, b"private::RawValue").is_some()
        || memchr::memmem::find(json, b"\\u00").is_some();
    may_be && Scan::has_name(json)
}

/// Whether there are as many digits in a row as a large integer has.
fn may_have_some(json: &[u8]) -> bool {
    let mut begin = 0;
    while let Some(window) = json.get(begin..begin + DIGITS_MIN) {
        match window.iter().rposition(|byte| !byte.is_ascii_digit()) {
            Some(at) => begin += at + 1,
            None => return true,
        }
    }
    false
}

/// An array or object that the scan is within.
enum Within<'j> {
    Array(usize),
    /// The name of the member, with quotes; `None` before it.
    Object(Option<&'j [u8]>),
}

/// What a scan looks at.
enum Token<'j> {
    Number(&'j str),
    /// The name of a member, with quotes.
    Name(&'j [u8]),
}

#[derive(Default)]
struct Scan<'j> {
    within: Vec<Within<'j>>,
    found: Vec<LargeInteger>,
}

impl<'j> Scan<'j> {
    /// The first `max` tokens that are sought.
    fn over(
        mut self,
        json: &'j [u8],
        max: usize,
        is_sought: impl Fn(Token<'_>) -> bool,
    ) -> Vec<LargeInteger> {
        let mut at = 0;
        while at < json.len() && self.found.len() < max && self.within.len() <= DEPTH_MAX {
            let begin = at;
            at += 1;
            match json[begin] {
                b'[' => self.within.push(Within::Array(0)),
                b'{' => self.within.push(Within::Object(None)),
                b']' | b'}' => drop(self.within.pop()),
                b',' => match self.within.last_mut() {
                    Some(Within::Array(i)) => *i += 1,
                    Some(Within::Object(name)) => *name = None,
                    None => {}
                },
                b'"' => {
                    at = end_of_string(json, at);
                    let string = &json[begin..at];
                    if let Some(Within::Object(name @ None)) = self.within.last_mut() {
                        *name = Some(string);
                        if is_sought(Token::Name(string)) {
                            self.add("");
                        }
                    }
                }
                b'-' | b'0'..=b'9' => {
                    let is_of_number =
                        |b: &u8| matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                    at += json[at..].iter().take_while(|b| is_of_number(b)).count();
                    let number = std::str::from_utf8(&json[begin..at]).unwrap_or_default();
                    if is_sought(Token::Number(number)) {
                        self.add(number);
                    }
                }
                _ => {}
            }
        }
        self.found
    }

    /// Whether a string of the text that a colon follows is the reserved name.
    fn has_name(json: &[u8]) -> bool {
        let mut at = 0;
        while let Some(found) = json.get(at..).and_then(|rest| memchr::memchr(b'"', rest)) {
            let begin = at + found;
            at = end_of_string(json, begin + 1);
            let string = &json[begin..at];
            let is_followed = || {
                let behind = json[at..].iter().find(|byte| !byte.is_ascii_whitespace());
                behind == Some(&b':')
            };
            if is_reserved(string) && is_followed() {
                return true;
            }
        }
        false
    }

    fn add(&mut self, number: &str) {
        let path = self.within.iter().map(|within| match within {
            Within::Array(i) => PathSegment::Index(*i),
            Within::Object(name) => PathSegment::Key(name.map(decoded).unwrap_or_default()),
        });
        self.found.push(LargeInteger {
            path: path.collect(),
            digits: number.to_owned(),
        });
    }
}

/// The place behind the quote that ends a string.
fn end_of_string(json: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = json.get(at) {
        at += if byte == b'\\' { 2 } else { 1 };
        if byte == b'"' {
            break;
        }
    }
    at.min(json.len())
}

/// A name that is written in quotes, cut at [`NAME_BYTES_MAX`].
fn decoded(name: &[u8]) -> String {
    let whole = (name.len() <= NAME_BYTES_MAX).then(|| serde_json::from_slice(name).ok());
    whole.flatten().unwrap_or_else(|| {
        let name = name.get(1..).unwrap_or_default();
        let begin = &name[..name.len().min(NAME_BYTES_MAX)];
        cut(&String::from_utf8_lossy(begin), NAME_BYTES_MAX).to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn places(text: &str) -> Vec<String> {
        let found = large_integers(text.as_bytes(), 100);
        found.iter().map(|it| place(&it.path)).collect()
    }

    #[test]
    fn integers_beyond_64_bits_are_found_with_their_place() {
        let large = "123456789012345678901234567890";
        let text = format!(
            r#"{{"a": [1, {{"b\n": -{large}}}, "{large}", "\"{large}"], "c": 18446744073709551616, "d": {{}}, "e": [[], {large}]}}"#
        );
        assert_eq!(places(&text), ["a[1].b\n", "c", "e[1]"]);
        assert_eq!(large_integers(text.as_bytes(), 1).len(), 1);
        assert_eq!(
            large_integers(text.as_bytes(), 1)[0].digits,
            format!("-{large}")
        );
        assert_eq!(places(large), [""]);
    }

    #[test]
    fn a_number_beyond_all_doubles_is_found_with_its_place() {
        let found = |text: &str| out_of_range(text.as_bytes()).map(|path| place(&path));
        let expected = Some("a[1].b".to_owned());
        assert_eq!(found(r#"{"a": [1e308, {"b": -1E400}]}"#), expected);
        assert_eq!(found(&"9".repeat(400)), Some(String::new()));
        assert_eq!(found(r#"[1e-400, "1e400", 1e30"#), None);
    }

    #[test]
    fn what_fits_and_what_is_no_integer_is_not_found() {
        for text in [
            "[18446744073709551615, -9223372036854775808, 9223372036854775807]",
            "[1.2345678901234567890123, 1234567890123456789012e5, 1E400]",
            r#"{"12345678901234567890123": "x"}"#,
            "[",
            "",
            "\"1234567890123456789012\\",
        ] {
            assert_eq!(places(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn what_is_kept_of_long_names_and_of_depth_is_bounded() {
        let large = "1".repeat(30);
        let name = "n".repeat(1_000_000);
        let text = format!(r#"{{"{name}": [{}]}}"#, vec![&*large; 100].join(","));
        let found = large_integers(text.as_bytes(), 100);
        assert_eq!(found.len(), 100);
        let kept = |it: &LargeInteger| format!("{:?}", it.path).len();
        assert!(found.iter().map(kept).sum::<usize>() < 100 * 400);
        let deep = format!("{}{large}", "[".repeat(100_000));
        assert_eq!(large_integers(deep.as_bytes(), 100), []);
    }

    #[test]
    fn a_text_is_read_or_refused_with_the_reason() {
        let read = |text: &str| read::<Value>(text.as_bytes()).map_err(|it| it.to_string());
        assert_eq!(read("\u{feff}[1]"), Ok(json!([1])));
        let large = read(r#"{"a": [18446744073709551616]}"#).unwrap_err();
        assert!(
            large.starts_with("`a[0]`: the integer does not fit"),
            "{large}"
        );
        assert!(read("{").unwrap_err().contains("line 1"));
    }

    #[test]
    fn the_reserved_name_is_found_however_it_is_written() {
        let escaped = r"\u0024serde_json::private::RawValu\u0065";
        for (text, is_found) in [
            (format!(r#"{{"{RESERVED_NAME}": "1"}}"#), true),
            (format!(r#"[{{"a": 1, "{escaped}" : "1"}}]"#), true),
            (format!(r#"{{"a": "{RESERVED_NAME}"}}"#), false),
            (format!(r#"{{"a\"{RESERVED_NAME}": "1"}}"#), false),
            (r#"{"$serde_json::private::Number": "1"}"#.to_owned(), false),
        ] {
            assert_eq!(has_reserved_name(text.as_bytes()), is_found, "{text}");
            let path = place_of_reserved_name(text.as_bytes());
            assert_eq!(path.is_some(), is_found, "{text}");
            if is_found {
                let unread = read::<Value>(text.as_bytes());
                assert!(matches!(unread, Err(Unread::Reserved)), "{text}");
            }
        }
        let map = json!({"a": {"b": 1, RESERVED_NAME: "x"}});
        let path = place_of_reserved_name(map.to_string().as_bytes()).unwrap();
        assert_eq!(path, ["a".into(), RESERVED_NAME.into()]);
        let unfit = crate::Payload::checked(map.as_object().unwrap());
        assert_eq!(unfit, Err(crate::payload::Unfit::ReservedName));
        let text = json!({"a": format!("\"{RESERVED_NAME}\":")});
        assert!(crate::Payload::checked(text.as_object().unwrap()).is_ok());
    }

    #[test]
    fn a_byte_order_mark_is_left_out_once() {
        assert_eq!(without_byte_order_mark("\u{feff}{}".as_bytes()), b"{}");
        assert_eq!(without_byte_order_mark(b"{}"), b"{}");
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            ".{0,30}".prop_map(Value::from),
            "[0-9]{0,30}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::hash_map(".{0,4}", inner, 0..6)
                    .prop_map(|it| Value::Object(it.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_large_integer_is_found_where_a_marker_is(value in values(), digits in "[1-9][0-9]{20,40}") {
            let clean = value.to_string();
            prop_assert!(places(&clean).is_empty());
            // The same value with the integer as its last member.
            let text = format!(r#"[{clean}, {{"x": {digits}}}]"#);
            let found = large_integers(text.as_bytes(), 2);
            let expected = LargeInteger {
                path: vec![1.into(), "x".into()],
                digits,
            };
            prop_assert_eq!(found, vec![expected]);
        }

        #[test]
        fn bytes_of_any_kind_are_read_to_their_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = large_integers(&bytes, 3);
        }
    }

    #[test]
    fn the_values_that_are_refused_are_those_that_a_parser_changes() {
        for (text, is_large) in [
            ("9223372036854775808", false),
            ("-9223372036854775809", true),
        ] {
            let parsed: Value = serde_json::from_str(text).unwrap();
            assert_eq!(parsed.is_f64(), is_large, "{text}");
            assert_eq!(!places(text).is_empty(), is_large, "{text}");
        }
        assert_ne!(json!(1e29).to_string(), "1".repeat(30));
    }
}
