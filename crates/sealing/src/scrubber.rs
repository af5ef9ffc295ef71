//! Removes secrets from the output of those who were given them: the program or receiver of an attempt, the receiver of
//! a webhook.
//!
//! A secret is looked for as it is and in the forms in which programs commonly repeat it: JSON-escaped once or twice,
//! as Python shows a string, percent-encoded, with any characters as references of HTML, percent escapes or escapes of
//! JSON and JavaScript in several layers, broken by line breaks, base64 at any alignment and hexadecimal, both also
//! over several lines, each in any case of letters, and line by line. It is a net for accidents: a program that wants
//! to give a secret away can write it in another form.

mod escapes;
mod forms;

use aho_corasick::automaton::Automaton as _;
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{AhoCorasick, AhoCorasickKind, Anchored};
use forms::{encodings, forms, reductions};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Bytes between two characters of base64 or hexadecimal digits that do not end them: a line break and an indentation.
const GAP_BYTES_MAX: usize = 64;
/// How much longer than itself an encoded secret can be across the border of a part, with what separates its
/// characters: twice is a blank behind every digit.
const SPREAD: usize = 2;

/// The same for one whose characters are escaped: `\u0026`, `&quot;`.
const ESCAPED_SPREAD: usize = 6;

/// Replaces secrets by `[secret NAME]`. The default knows none and changes nothing.
#[derive(Clone, Default)]
pub struct Scrubber(Option<Arc<Known>>);

struct Known {
    patterns: AhoCorasick,
    /// Base64 and hexadecimal digits, which programs break into lines.
    encoded: NFA,
    /// Secrets without escapes and line breaks, which are looked for in texts without them.
    reduced: NFA,
    /// For each pattern what takes its place: of the first kind, then of the second, then of the third.
    marks: Vec<Arc<str>>,
    /// Bytes of the longest secret as it may stand in a text.
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
        let (mut encoded, mut marks_of_encoded) = (Vec::new(), Vec::new());
        let (mut reduced, mut marks_of_reduced) = (Vec::new(), Vec::new());
        for (name, text) in secrets {
            let mark: Arc<str> = Arc::from(format!("[secret {name}]"));
            for (form, all, marks) in [
                (forms(text), &mut patterns, &mut marks),
                (encodings(text), &mut encoded, &mut marks_of_encoded),
            ] {
                marks.extend(form.iter().map(|_| mark.clone()));
                all.extend(form);
            }
            for form in reductions(text) {
                marks_of_reduced.push(mark.clone());
                reduced.push(form);
            }
        }
        if patterns.is_empty() && encoded.is_empty() && reduced.is_empty() {
            return Self(None);
        }
        marks.extend(marks_of_encoded);
        marks.extend(marks_of_reduced);
        let longest_of = |all: &[String]| all.iter().map(String::len).max().unwrap_or_default();
        let longest_reduced = reduced.iter().map(Vec::len).max().unwrap_or_default();
        let longest = longest_of(&patterns)
            .max(SPREAD * longest_of(&encoded))
            .max(ESCAPED_SPREAD * longest_reduced);
        let reduced = NFA::builder()
            .ascii_case_insensitive(true)
            .build(reduced)
            .expect("the secrets of an attempt are far below what an automaton can hold");
        let encoded = NFA::builder()
            .ascii_case_insensitive(true)
            .build(encoded)
            .expect("the secrets of an attempt are far below what an automaton can hold");
        let patterns = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            // The fastest kind takes a kilobyte for each byte of a secret.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(patterns)
            .expect("the secrets of an attempt are far below what an automaton can hold");
        Self(Some(Arc::new(Known {
            patterns,
            encoded,
            reduced,
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
        let (mut plain, mut encoded) = (Vec::new(), Vec::new());
        for one in self.patterns.find_overlapping_iter(bytes) {
            let next = Found {
                start: one.start(),
                end: one.end(),
                pattern: one.pattern().as_usize(),
            };
            add(&mut plain, next);
        }
        self.find_encoded(bytes, &mut encoded);
        self.find_escaped(bytes, &mut encoded);
        if encoded.is_empty() {
            return plain;
        }
        plain.extend(encoded);
        // Of those that begin together the longest counts.
        plain.sort_by_key(|one| (one.start, Reverse(one.end)));
        let mut found: Vec<Found> = Vec::with_capacity(plain.len());
        for next in plain {
            match found.last_mut() {
                Some(last) if last.end > next.start => last.end = last.end.max(next.end),
                Some(_) | None => found.push(next),
            }
        }
        found
    }

    /// The same of encoded ones, whose characters may be apart. Cost: O(bytes).
    fn find_encoded(&self, bytes: &[u8], found: &mut Vec<Found>) {
        let nfa = &self.encoded;
        let Ok(start) = nfa.start_state(Anchored::No) else {
            return;
        };
        let (mut state, mut gap) = (start, 0);
        for (at, byte) in bytes.iter().enumerate() {
            if is_between(bytes, at) {
                gap += 1;
                continue;
            }
            if gap > GAP_BYTES_MAX {
                state = start;
            }
            gap = 0;
            state = nfa.next_state(Anchored::No, state, *byte);
            if !nfa.is_match(state) {
                continue;
            }
            for nth in 0..nfa.match_len(state) {
                let pattern = nfa.match_pattern(state, nth);
                let next = Found {
                    start: begin_of(bytes, at, nfa.pattern_len(pattern)),
                    end: at + 1,
                    pattern: self.patterns.patterns_len() + pattern.as_usize(),
                };
                add(found, next);
            }
        }
    }

    /// The same of those whose characters are escaped or broken by line breaks. Cost: O(bytes).
    fn find_escaped(&self, bytes: &[u8], found: &mut Vec<Found>) {
        let nfa = &self.reduced;
        let (Some(reduced), Ok(mut state)) =
            (escapes::reduce(bytes), nfa.start_state(Anchored::No))
        else {
            return;
        };
        let before = self.patterns.patterns_len() + self.encoded.patterns_len();
        for (at, byte) in reduced.bytes.iter().enumerate() {
            state = nfa.next_state(Anchored::No, state, *byte);
            if !nfa.is_match(state) {
                continue;
            }
            for nth in 0..nfa.match_len(state) {
                let pattern = nfa.match_pattern(state, nth);
                let end = at + 1;
                let origin = reduced.origin(end - nfa.pattern_len(pattern)..end);
                found.push(Found {
                    start: origin.start,
                    end: origin.end,
                    pattern: before + pattern.as_usize(),
                });
            }
        }
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

/// Adds one whose end is not below those before; what it lies across becomes one with it.
fn add(found: &mut Vec<Found>, mut next: Found) {
    // Ends only rise, so what it lies across is at the end of the list.
    while let Some(last) = found.pop_if(|last| last.end > next.start) {
        if last.start < next.start {
            (next.start, next.pattern) = (last.start, last.pattern);
        }
    }
    found.push(next);
}

/// Whether a byte separates characters of an encoding, in which neither white space nor a backslash has a meaning: the
/// line break of a text, or that of an escaped one.
fn is_between(bytes: &[u8], at: usize) -> bool {
    let is_escaped = || at > 0 && bytes[at - 1] == b'\\';
    match bytes[at] {
        b'\\' => true,
        b'n' | b'r' | b't' => is_escaped(),
        byte => byte.is_ascii_whitespace(),
    }
}

/// Where the last `many` characters of an encoding begin, of which one is at `at`.
fn begin_of(bytes: &[u8], at: usize, many: usize) -> usize {
    let mut characters = (0..=at).rev().filter(|at| !is_between(bytes, *at));
    characters.nth(many.saturating_sub(1)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
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
    fn an_escaped_or_broken_secret_is_removed() {
        let secret = "Cd&x<y>\"z'/q w%é1";
        let scrubber = scrubber(&[("a", secret)]);
        let every = |write: fn(char) -> String| secret.chars().map(write).collect::<String>();
        for said in [
            // Go, Python, and a template engine.
            "Cd&amp;x&lt;y&gt;&#34;z&#39;/q w%é1".to_owned(),
            "Cd&amp;x&lt;y&gt;&quot;z&#x27;/q w%é1".to_owned(),
            "Cd&#38;x&#60;y&#62;&#34;z&#39;&#x2F;q w%&eacute;1".replace("&eacute;", "&#233;"),
            "Cd&amp;amp;x&amp;lt;y&amp;gt;&amp;quot;z&amp;#39;/q w%é1".to_owned(),
            "Cd%2526x%253Cy%253E%2522z%2527%252Fq%2520w%2525%25C3%25A91".to_owned(),
            every(|it| format!("&#{};", u32::from(it))),
            every(|it| format!("&#x{:x};", u32::from(it))),
            every(|it| format!("\\u{:04x}", u32::from(it))),
            every(|it| format!("\\\\u{:04X}", u32::from(it))),
            every(|it| format!("\\x{:02x}", u32::from(it))),
            "Cd\\u0026x\\u003cy\\u003e\\\"z'/q w%é1".to_owned(),
            every(|it| format!("{it}\n")).trim_end().to_owned(),
            "Cd&x<y\r\n>\"z'/q w%é1".to_owned(),
            "Cd&amp;x&lt;y&gt;\n&quot;z&#39;/q w%é1".to_owned(),
        ] {
            let left = scrubber.text(&format!("<{said}>")).into_owned();
            assert_eq!(left, "<[secret a]>", "{said}");
        }
        let other = "Cd&amp;x&lt;y&gt;&quot;Z&#39;_q \n %41";
        assert_eq!(scrubber.text(other), other, "escapes of other texts stay");
    }

    #[test]
    fn a_secret_that_looks_escaped_is_removed_in_each_of_its_layers() {
        let scrubber = scrubber(&[("a", "pa%41&amp;\\u0041ss-word")]);
        for said in [
            "pa%41&amp;\\u0041ss-word",
            "pa%2541&amp;amp;\\\\u0041ss-word",
        ] {
            assert_eq!(scrubber.text(said).len(), "[secret a]".len(), "{said}");
        }
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
    fn an_encoded_secret_is_found_over_several_lines() {
        let scrubber = scrubber(&[("a", TEXT)]);
        let padded = format!("{}{TEXT}{}", "x".repeat(50), "y".repeat(30));
        let lines = |text: &str, width: usize, separator: &str| {
            let characters: Vec<char> = text.chars().collect();
            let lines = characters.chunks(width).map(|line| line.iter().collect());
            lines.collect::<Vec<String>>().join(separator)
        };
        let hex: String = padded.bytes().map(|byte| format!("{byte:02x}")).collect();
        for encoded in [
            lines(&STANDARD.encode(&padded), 76, "\n"),
            lines(&STANDARD.encode(&padded), 8, "\r\n    "),
            lines(&STANDARD.encode(&padded), 76, "\\n"),
            lines(&STANDARD.encode(&padded), 76, "\\\\n"),
            lines(&hex, 60, "\n"),
            lines(&hex, 2, " "),
        ] {
            let left = scrubber.text(&encoded).into_owned();
            let (head, tail) = left.split_once("[secret a]").expect(&encoded);
            assert!(encoded.starts_with(head) && encoded.ends_with(tail));
            let taken = encoded.len() - head.len() - tail.len();
            assert!(taken >= TEXT.len(), "{left}");
        }
        let apart = lines(&hex, 60, &" ".repeat(GAP_BYTES_MAX + 1));
        assert_eq!(scrubber.text(&apart), apart, "no run of digits");
    }

    #[test]
    fn an_encoded_secret_across_the_border_of_a_part_is_not_cut_in_two() {
        let scrubber = scrubber(&[("a", "12345678")]);
        let hex = "31 32 33 34 35 36 37 38";
        let text = format!("..{hex}..");
        assert!(scrubber.reach() >= hex.len() - 1);
        for border in 3..2 + hex.len() {
            let said = |part| {
                let part = scrubber.part(text.as_bytes(), part);
                String::from_utf8(part.into_owned()).expect("text")
            };
            let (left, right) = (said(0..border), said(border..text.len()));
            assert_eq!(
                (&*left, &*right),
                ("..[secret a]", "[secret a].."),
                "{border}"
            );
        }
    }

    #[test]
    fn what_json_in_json_and_python_make_of_a_secret_is_removed() {
        for (secret, said) in [
            (r#"a\"b"c'd"#, r#"'a\\"b"c\'d'"#),
            (r#"a\"b"c-d"#, r#"'a\\"b"c-d'"#),
            ("line one\u{1}\tx", r"'line one\x01\tx'"),
            (r#"a\"b"c-d"#, r#"\"a\\\\\\\"b\\\"c-d\""#),
            ("ünï-code-x", r"\\u00fcn\\u00ef-code-x"),
        ] {
            let scrubber = scrubber(&[("a", secret)]);
            let left = scrubber.text(said).into_owned();
            assert!(
                left.contains("[secret a]") && left.len() <= 14,
                "{said}: {left}"
            );
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
