//! Removes secrets from what somebody says to whom they were given: the program or receiver of an attempt, the
//! receiver of a webhook.
//!
//! A secret is looked for as it is and in the forms in which programs commonly repeat it: JSON-escaped,
//! percent-encoded, base64 at any alignment, hexadecimal, each in any case of letters, and line by line.
//! It is a net for accidents: a program that wants to give a secret away can write it in another form.

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::ops::Range;
use std::sync::Arc;

/// Bytes below which a form of a secret is not looked for: it would be found in what is no secret.
const FORM_BYTES_MIN: usize = 8;

/// Replaces secrets by `[secret NAME]`. The default knows none and changes nothing.
#[derive(Clone, Default)]
pub struct Scrubber(Option<Arc<Known>>);

struct Known {
    patterns: AhoCorasick,
    /// For each pattern what takes its place.
    marks: Vec<Arc<str>>,
    /// Bytes of the longest pattern.
    longest: usize,
}

/// Bytes to be replaced.
struct Found {
    start: usize,
    end: usize,
    pattern: usize,
}

impl fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.as_ref().map_or(0, |known| known.marks.len());
        f.debug_struct("Scrubber")
            .field("patterns", &count)
            .finish()
    }
}

impl Scrubber {
    /// Removes these secrets, by name. Cost: O(bytes of all of them), some hundred nanoseconds for each.
    ///
    /// # Panics
    /// With gigabytes of secrets, which callers do not let through.
    #[must_use]
    pub fn new<'a>(secrets: impl IntoIterator<Item = (impl fmt::Display, &'a str)>) -> Self {
        let (mut patterns, mut marks) = (Vec::new(), Vec::new());
        for (name, text) in secrets {
            let mark: Arc<str> = Arc::from(format!("[secret {name}]"));
            let forms = forms(text);
            marks.extend(forms.iter().map(|_| mark.clone()));
            patterns.extend(forms);
        }
        if patterns.is_empty() {
            return Self(None);
        }
        let longest = patterns.iter().map(String::len).max().unwrap_or_default();
        let patterns = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            // The fastest kind takes a kilobyte for each byte of a secret.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(patterns)
            .expect("the secrets of an attempt are far below what an automaton can hold");
        Self(Some(Arc::new(Known {
            patterns,
            marks,
            longest,
        })))
    }

    /// Whether it changes nothing.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.0.is_none()
    }

    /// Bytes before and behind a part of a text that must be looked at, so that a secret which lies across
    /// the border is seen.
    #[must_use]
    pub fn reach(&self) -> usize {
        self.0
            .as_ref()
            .map_or(0, |known| known.longest.saturating_sub(1))
    }

    /// A text without the secrets. Cost: O(its length).
    #[must_use]
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(known) = &self.0 else {
            return Cow::Borrowed(text);
        };
        let found = known.find(text.as_bytes());
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let bytes = known.replaced(text.as_bytes(), 0..text.len(), &found);
        // Patterns are whole characters, so what is left is too.
        Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A part of some bytes without the secrets, those across its borders included. Cost: O(bytes).
    ///
    /// # Panics
    /// When the part is not within the bytes.
    #[must_use]
    pub fn part<'b>(&self, bytes: &'b [u8], part: Range<usize>) -> Cow<'b, [u8]> {
        let Some(known) = &self.0 else {
            return Cow::Borrowed(&bytes[part]);
        };
        let found = known.find(bytes);
        Cow::Owned(known.replaced(bytes, part, &found))
    }

    /// A value whose texts, names of members and numbers are without the secrets. Cost: O(size).
    #[must_use]
    pub fn value(&self, value: Value) -> Value {
        if self.is_idle() {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.text(&text).into_owned()),
            Value::Number(number) => {
                let text = number.to_string();
                match self.text(&text) {
                    Cow::Borrowed(_) => Value::Number(number),
                    Cow::Owned(text) => Value::String(text),
                }
            }
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => {
                let members = members.into_iter();
                let members =
                    members.map(|(name, value)| (self.text(&name).into_owned(), self.value(value)));
                Value::Object(members.collect::<Map<_, _>>())
            }
            value @ (Value::Null | Value::Bool(_)) => value,
        }
    }
}

impl Known {
    /// Where secrets are: in order, none within or across another.
    fn find(&self, bytes: &[u8]) -> Vec<Found> {
        let mut found: Vec<Found> = Vec::new();
        for one in self.patterns.find_overlapping_iter(bytes) {
            let mut next = Found {
                start: one.start(),
                end: one.end(),
                pattern: one.pattern().as_usize(),
            };
            // Ends only rise, so what it lies across is at the end of the list.
            while let Some(last) = found.pop_if(|last| last.end > next.start) {
                if last.start < next.start {
                    (next.start, next.pattern) = (last.start, last.pattern);
                }
            }
            found.push(next);
        }
        found
    }

    fn replaced(&self, bytes: &[u8], part: Range<usize>, found: &[Found]) -> Vec<u8> {
        let mut kept = Vec::with_capacity(part.len());
        let mut at = part.start;
        for one in found {
            if one.end <= at || one.start >= part.end {
                continue;
            }
            kept.extend_from_slice(&bytes[at..one.start.max(at)]);
            kept.extend_from_slice(self.marks[one.pattern].as_bytes());
            at = one.end.min(part.end);
        }
        kept.extend_from_slice(&bytes[at..part.end]);
        kept
    }
}

/// What a secret may look like.
fn forms(text: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    for text in [text, text.trim()] {
        forms.insert(text.to_owned());
        let json = Value::from(text).to_string();
        let json = &json[1..json.len() - 1];
        let escaped: String = json.chars().map(ascii).collect();
        forms.extend([json.replace('/', "\\/"), escaped, json.to_owned()]);
        forms.extend([
            percent(text, b"-._~", "%20"),
            percent(text, b"-._!~*'()", "%20"),
            percent(text, b"-._*", "+"),
        ]);
        forms.extend((0..3).flat_map(|shift| base64(text, shift)));
        forms.insert(text.bytes().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        }));
    }
    forms.extend(text.lines().map(|line| line.trim().to_owned()));
    forms.retain(|form| form.len() >= FORM_BYTES_MIN);
    forms
}

/// A character as JSON shows it to those who take ASCII only.
fn ascii(character: char) -> String {
    if character.is_ascii() {
        return character.to_string();
    }
    let mut units = [0; 2];
    let units = character.encode_utf16(&mut units).iter();
    units.map(|unit| format!("\\u{unit:04x}")).collect()
}

fn percent(text: &str, kept: &[u8], blank: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || kept.contains(&byte) {
            encoded.push(char::from(byte));
        } else if byte == b' ' {
            encoded.push_str(blank);
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// The characters of base64 that follow from the text alone, when as many bytes modulo three stand before
/// it.
fn base64(text: &str, shift: usize) -> [String; 2] {
    const BITS: usize = 6;
    let bytes = [&[0; 3][..shift], text.as_bytes()].concat();
    let whole = (8 * shift).div_ceil(BITS)..8 * bytes.len() / BITS;
    [
        STANDARD_NO_PAD.encode(&bytes)[whole.clone()].to_owned(),
        URL_SAFE_NO_PAD.encode(&bytes)[whole].to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    const TEXT: &str = "s3cr\"et/with ünï+code";

    fn scrubber(secrets: &[(&str, &str)]) -> Scrubber {
        Scrubber::new(secrets.iter().copied())
    }

    #[test]
    fn a_secret_is_removed_in_every_form() {
        let scrubber = scrubber(&[("a", TEXT)]);
        let json = json!(TEXT).to_string();
        for (said, left) in [
            (format!("<{TEXT}>"), "<[secret a]>"),
            (format!("<{}>", TEXT.to_ascii_uppercase()), "<[secret a]>"),
            (json, "\"[secret a]\""),
            (
                "x=s3cr%22et%2Fwith%20%C3%BCn%C3%AF%2Bcode".to_owned(),
                "x=[secret a]",
            ),
            (
                "x=s3cr%22et%2fwith+%c3%bcn%c3%af%2bcode&y".to_owned(),
                "x=[secret a]&y",
            ),
            ("s3cr\\\"et\\/with ünï+code".to_owned(), "[secret a]"),
            (
                "s3cr\\\"et/with \\u00fcn\\u00EF+code".to_owned(),
                "[secret a]",
            ),
        ] {
            assert_eq!(scrubber.text(&said), left, "{said}");
        }
        assert_eq!(scrubber.text("nothing of it"), "nothing of it");
        let hex: String = TEXT.bytes().map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(scrubber.text(&hex), "[secret a]");
    }

    #[test]
    fn base64_is_recognised_wherever_the_secret_stands_in_it() {
        let scrubber = scrubber(&[("a", TEXT)]);
        for before in ["", "u", "us", "user:"] {
            let encoded = STANDARD.encode(format!("{before}{TEXT}:behind"));
            let left = scrubber.text(&encoded).into_owned();
            assert!(left.contains("[secret a]"), "{before}: {left}");
            // At most one character on each side holds some bits of it.
            let (head, tail) = left.split_once("[secret a]").expect("seen above");
            assert!(
                head.len() <= (8 * before.len()).div_ceil(6),
                "{before}: {left}"
            );
            assert!(tail.len() <= 12, "{before}: {left}");
        }
    }

    #[test]
    fn secrets_that_overlap_are_removed_together() {
        let scrubber = scrubber(&[
            ("a", "aaaaaaaa"),
            ("long", "12345678-abcdefgh"),
            ("short", "12345678"),
        ]);
        assert_eq!(scrubber.text("xaaaaaaaaaaay"), "x[secret a]y");
        assert_eq!(scrubber.text("12345678-abcdefgh"), "[secret long]");
        assert_eq!(scrubber.text("12345678-abc"), "[secret short]-abc");
    }

    #[test]
    fn the_lines_of_a_secret_are_secret_too() {
        let scrubber = scrubber(&[("key", "-----BEGIN-----\nMIIEowIBAAK\nshort\n")]);
        assert_eq!(
            scrubber.text("> MIIEowIBAAK\n> short"),
            "> [secret key]\n> short"
        );
    }

    #[test]
    fn a_secret_across_the_border_of_a_part_is_not_cut_in_two() {
        let scrubber = scrubber(&[("a", "12345678")]);
        let bytes = b"..12345678..12345678..";
        let said = |part| String::from_utf8(scrubber.part(bytes, part).into_owned()).expect("text");
        assert_eq!(said(0..5), "..[secret a]");
        assert_eq!(said(5..11), "[secret a].");
        assert_eq!(said(4..15), "[secret a]..[secret a]");
        assert_eq!(said(10..12), "..");
        assert!(scrubber.reach() >= 7);
    }

    #[test]
    fn values_lose_secrets_in_names_and_numbers_too() {
        let scrubber = scrubber(&[("pin", "12345678")]);
        let value = json!({"a12345678": [12_345_678, {"b": "x12345678x"}], "n": 1.5, "t": true});
        let left = json!({"a[secret pin]": ["[secret pin]", {"b": "x[secret pin]x"}], "n": 1.5, "t": true});
        assert_eq!(scrubber.value(value), left);
    }

    #[test]
    fn without_secrets_nothing_changes() {
        let scrubber = Scrubber::default();
        assert!(scrubber.is_idle());
        assert_eq!(scrubber.reach(), 0);
        assert_eq!(scrubber.part(b"abc", 1..3).as_ref(), b"bc");
    }
}
