//! Reads text without the escapes of HTML, URLs, JSON and JavaScript, and without line breaks.
//!
//! A peer may write each character of a secret in several ways (`&`, `&amp;`, `&#38;`, `&#x26;`, `%26`, `%2526`,
//! `\u0026`, `\x26`), and mix them. The text and the secret are both reduced to the characters that are meant, and then
//! compared. Each byte of the reduced text knows the bytes of the original that it stems from.

use std::borrow::Cow;
use std::ops::Range;

/// Layers of escapes that are removed, such as HTML in a URL in JSON in JSON.
const LAYERS_MAX: usize = 4;
/// Characters of a number in an HTML reference or in `\u{..}`, with leading zeros.
const DIGITS_MAX: usize = 10;
/// References of HTML by name that escaping functions write.
const NAMES: [(&[u8], char); 7] = [
    (b"amp;", '&'),
    (b"lt;", '<'),
    (b"gt;", '>'),
    (b"quot;", '"'),
    (b"apos;", '\''),
    (b"sol;", '/'),
    (b"nbsp;", ' '),
];

/// A text without escapes, and where its bytes come from.
pub(super) struct Reduced {
    pub(super) bytes: Vec<u8>,
    /// For each byte the bytes of the original: all bytes of an escape.
    origins: Vec<Range<usize>>,
}

impl Reduced {
    /// The bytes of the original from which a part that is not empty comes.
    pub(super) fn origin(&self, part: Range<usize>) -> Range<usize> {
        self.origins[part.start].start..self.origins[part.end - 1].end
    }
}

/// The text without escapes and line breaks; `None`: it has none. Cost: O(bytes), at most [`LAYERS_MAX`] times.
pub(super) fn reduce(text: &[u8]) -> Option<Reduced> {
    let mut reduced: Option<Reduced> = None;
    for _ in 0..LAYERS_MAX {
        let bytes = reduced.as_ref().map_or(text, |reduced| &reduced.bytes);
        let Some(next) = without_a_layer(bytes) else {
            break;
        };
        reduced = Some(match &reduced {
            None => next,
            Some(before) => Reduced {
                origins: next
                    .origins
                    .into_iter()
                    .map(|it| before.origin(it))
                    .collect(),
                bytes: next.bytes,
            },
        });
    }
    reduced
}

/// The same of a secret.
pub(super) fn reduced(secret: &str) -> Cow<'_, [u8]> {
    match reduce(secret.as_bytes()) {
        Some(reduced) => Cow::Owned(reduced.bytes),
        None => Cow::Borrowed(secret.as_bytes()),
    }
}

/// `None`: nothing was removed.
fn without_a_layer(text: &[u8]) -> Option<Reduced> {
    let may_begin = |byte: &u8| matches!(byte, b'&' | b'%' | b'\\' | b'\n' | b'\r');
    let first = text.iter().position(may_begin)?;
    let mut bytes = text[..first].to_vec();
    let mut origins: Vec<_> = (0..first).map(|at| at..at + 1).collect();
    let mut at = first;
    let mut is_changed = false;
    while let Some(byte) = text.get(at) {
        let Some((meant, len)) = escape(&text[at..]) else {
            bytes.push(*byte);
            origins.push(at..at + 1);
            at += 1;
            continue;
        };
        is_changed = true;
        match meant {
            Meant::Break => {}
            Meant::Byte(byte) => {
                bytes.push(byte);
                origins.push(at..at + len);
            }
            Meant::Character(character) => {
                let mut buffer = [0; 4];
                for byte in character.encode_utf8(&mut buffer).bytes() {
                    bytes.push(byte);
                    origins.push(at..at + len);
                }
            }
        }
        at += len;
    }
    is_changed.then_some(Reduced { bytes, origins })
}

/// What an escape stands for.
enum Meant {
    Break,
    Byte(u8),
    Character(char),
}

impl Meant {
    const fn of(character: char) -> Self {
        match character {
            '\n' | '\r' => Self::Break,
            character => Self::Character(character),
        }
    }
}

/// The escape or line break that a text begins with, and its bytes.
fn escape(text: &[u8]) -> Option<(Meant, usize)> {
    let (first, rest) = text.split_first()?;
    let (meant, len) = match first {
        b'\n' | b'\r' => return Some((Meant::Break, 1)),
        b'%' => match number(rest.get(..2)?, 16)? {
            code @ (0x0a | 0x0d) => (Meant::of(char::from_u32(code)?), 2),
            code => (Meant::Byte(u8::try_from(code).ok()?), 2),
        },
        b'&' => reference(rest)?,
        b'\\' => return backslash(text),
        _ => return None,
    };
    Some((meant, 1 + len))
}

/// A reference of HTML, behind its `&`.
fn reference(text: &[u8]) -> Option<(Meant, usize)> {
    if let Some(numeric) = text.strip_prefix(b"#") {
        let (digits, radix, before) = match numeric.split_first() {
            Some((b'x' | b'X', digits)) => (digits, 16, 2),
            Some(_) | None => (numeric, 10, 1),
        };
        let many = digits
            .iter()
            .take(DIGITS_MAX + 1)
            .position(|it| *it == b';')?;
        let character = char::from_u32(number(&digits[..many], radix)?)?;
        return Some((Meant::of(character), before + many + 1));
    }
    let named = NAMES.iter().find(|(name, _)| {
        text.get(..name.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(name))
    });
    named.map(|(name, character)| (Meant::of(*character), name.len()))
}

/// An escape of JSON or JavaScript. Where JSON is a text of JSON its backslashes are doubled, so several count as one.
/// All of a run of backslashes is taken, whatever follows: else each of them would count the rest again.
fn backslash(text: &[u8]) -> Option<(Meant, usize)> {
    let slashes = text.iter().take_while(|byte| **byte == b'\\').count();
    match escaped(&text[slashes..]) {
        Some((meant, len)) => Some((meant, slashes + len)),
        // They mean themselves.
        None if slashes > 1 => Some((Meant::Byte(b'\\'), slashes)),
        None => None,
    }
}

/// What stands behind the backslashes of an escape, and its bytes.
fn escaped(text: &[u8]) -> Option<(Meant, usize)> {
    let (kind, rest) = text.split_first()?;
    let (meant, len) = match kind {
        b'n' | b'r' => (Meant::Break, 0),
        b't' => (Meant::Byte(b'\t'), 0),
        b'"' | b'\'' | b'/' => (Meant::Byte(*kind), 0),
        b'x' => (Meant::of(char::from_u32(number(rest.get(..2)?, 16)?)?), 2),
        b'u' => unicode(rest)?,
        _ => return None,
    };
    Some((meant, 1 + len))
}

/// The rest of an escape behind `\u`: four digits, a pair of surrogates, or a number in braces.
fn unicode(text: &[u8]) -> Option<(Meant, usize)> {
    if let Some(braced) = text.strip_prefix(b"{") {
        let many = braced
            .iter()
            .take(DIGITS_MAX + 1)
            .position(|it| *it == b'}')?;
        let character = char::from_u32(number(&braced[..many], 16)?)?;
        return Some((Meant::of(character), many + 2));
    }
    let unit = number(text.get(..4)?, 16)?;
    if let Some(character) = char::from_u32(unit) {
        return Some((Meant::of(character), 4));
    }
    let slashes = text[4..].iter().take_while(|byte| **byte == b'\\').count();
    let low = text[4 + slashes..].strip_prefix(b"u")?;
    let units = [unit, number(low.get(..4)?, 16)?].map(|unit| unit as u16);
    let character = char::decode_utf16(units).next()?.ok()?;
    Some((Meant::of(character), 4 + slashes + 1 + 4))
}

/// `None`: not only digits, or none.
fn number(digits: &[u8], radix: u32) -> Option<u32> {
    let is_digit = |byte: &u8| char::from(*byte).is_digit(radix);
    let text = std::str::from_utf8(digits).ok()?;
    let only_digits = digits.iter().all(is_digit);
    only_digits.then(|| u32::from_str_radix(text, radix).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        String::from_utf8(reduced(text).into_owned()).expect("text")
    }

    #[test]
    fn escapes_are_read_as_the_characters_that_they_stand_for() {
        for (text, expected) in [
            ("a&amp;&#38;&#x26;&#X0026;&#0038;b", "a&&&&&b"),
            ("&lt;&GT;&quot;&#39;&apos;", "<>\"''"),
            ("%26%2526%252526", "&&&"),
            ("%c3%bc", "ü"),
            ("%26amp%3B", "&"),
            ("\\u0043\\u{1F600}\\ud83d\\ude00\\x43", "C😀😀C"),
            ("\\\\u0043\\\\\\\\u0043", "CC"),
            (
                "one\ntwo\r\nthree\\nfour%0afive&#10;six",
                "onetwothreefourfivesix",
            ),
            (
                "100% &c; &#; &#xg; \\q \\u12 %g1 %",
                "100% &c; &#; &#xg; \\q \\u12 %g1 %",
            ),
            ("\\ud83d", "\\ud83d"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        assert!(reduce(b"nothing").is_none());
    }

    #[test]
    fn a_byte_comes_from_all_bytes_of_its_escape() {
        let reduced = reduce(b"x%2526amp;y").expect("escapes");
        assert_eq!(reduced.bytes, b"x&y");
        assert_eq!(reduced.origin(1..2), 1..10);
        assert_eq!(reduced.origin(0..3), 0..11);
    }

    #[test]
    fn a_run_of_backslashes_is_counted_once() {
        // If each of them counted the others again, this would take hours.
        for end in ["uq", "xq", "q", ""] {
            let text = format!("{}{end}", "\\".repeat(1 << 20));
            assert_eq!(read(&text), format!("\\{end}"), "{end}");
        }
    }

    #[test]
    fn a_text_of_many_escapes_of_escapes_is_read_to_a_limit() {
        let text = format!("%{}26", "25".repeat(100));
        let reduced = reduce(text.as_bytes()).expect("escapes");
        assert_eq!(
            reduced.bytes,
            format!("%{}26", "25".repeat(100 - LAYERS_MAX)).into_bytes()
        );
    }
}
