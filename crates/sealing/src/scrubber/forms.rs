//! The forms in which programs commonly repeat a secret.

use super::escapes::reduced;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Bytes below which a form of a secret is not looked for: it would be found in what is no secret.
const FORM_BYTES_MIN: usize = 8;

/// What a secret may look like in base64 and in hexadecimal digits.
pub(super) fn encodings(text: &str) -> BTreeSet<String> {
    let mut encodings = BTreeSet::new();
    for text in [text, text.trim()] {
        encodings.extend((0..3).flat_map(|shift| base64(text, shift)));
        encodings.insert(text.bytes().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        }));
    }
    encodings.retain(|form| form.len() >= FORM_BYTES_MIN);
    encodings
}

/// A secret as it is in a text without escapes and line breaks.
pub(super) fn reductions(text: &str) -> BTreeSet<Vec<u8>> {
    let mut forms: BTreeSet<_> = [text, text.trim()]
        .map(|it| reduced(it).into_owned())
        .into();
    forms.retain(|form| form.len() >= FORM_BYTES_MIN);
    forms
}

/// What a secret may look like as text.
pub(super) fn forms(text: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    for text in [text, text.trim()] {
        forms.insert(text.to_owned());
        let mut json = text.to_owned();
        // A JSON document is often a text of another one.
        for _ in 0..2 {
            json = escaped(&json);
            let ascii: String = json.chars().map(ascii).collect();
            forms.extend([
                json.replace('/', "\\/"),
                escaped(&ascii),
                ascii,
                json.clone(),
            ]);
        }
        forms.extend(python(text));
        forms.extend([
            percent(text, b"-._~", "%20"),
            percent(text, b"-._!~*'()", "%20"),
            percent(text, b"-._*", "+"),
        ]);
    }
    forms.extend(text.lines().map(|line| line.trim().to_owned()));
    forms.retain(|form| form.len() >= FORM_BYTES_MIN);
    forms
}

/// A text as JSON shows it, without the quotes.
fn escaped(text: &str) -> String {
    let json = Value::from(text).to_string();
    json[1..json.len() - 1].to_owned()
}

/// A text as Python shows it, in either kind of quotes.
fn python(text: &str) -> [String; 2] {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            character if character.is_control() => {
                let _ = write!(shown, "\\x{:02x}", u32::from(character));
            }
            character => shown.push(character),
        }
    }
    [shown.replace('\'', "\\'"), shown]
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
