//! The one escape of JSON that YAML lacks: a character beyond U+FFFF as two `\u` escapes, which writers of plain ASCII
//! such as Python's `json.dumps` use.

use serde_json::Value;
use std::borrow::Cow;

/// Bytes of `\uD83D\uDE00`.
const PAIR: usize = 12;

/// A JSON text with `\UXXXXXXXX` in place of each pair, which moves the rest of its line by two columns. Any other text
/// as it is: outside of JSON the same characters may be no escape. Cost: O(bytes).
pub(super) fn joined(text: &str) -> Cow<'_, str> {
    let may_have = text.contains("\\ud") || text.contains("\\uD");
    if !may_have || serde_json::from_str::<Value>(text).is_err() {
        return Cow::Borrowed(text);
    }
    let mut joined = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        joined.push_str(&rest[..at]);
        rest = &rest[at..];
        // In JSON a backslash is followed by one ASCII character at least.
        let (escape, behind) = match rest.get(..PAIR).and_then(pair) {
            Some(c) => (format!("\\U{:08X}", u32::from(c)), &rest[PAIR..]),
            None => (rest[..2].to_owned(), &rest[2..]),
        };
        joined.push_str(&escape);
        rest = behind;
    }
    joined.push_str(rest);
    Cow::Owned(joined)
}

/// The character that a pair stands for.
fn pair(text: &str) -> Option<char> {
    let unit = |text: &str| u16::from_str_radix(text.strip_prefix("\\u")?, 16).ok();
    let units = [unit(text.get(..PAIR / 2)?)?, unit(text.get(PAIR / 2..)?)?];
    let mut decoded = char::decode_utf16(units);
    let c = decoded.next()?.ok()?;
    decoded.next().is_none().then_some(c)
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn pairs_of_json_are_joined_and_nothing_else() {
        let text = r#"{"a\\ud83d": "\ud83d\uDE00é\u00e9\n", "b": ["\\\ud83d\ude00"]}"#;
        let expected = r#"{"a\\ud83d": "\U0001F600é\u00e9\n", "b": ["\\\U0001F600"]}"#;
        assert_eq!(joined(text), expected);
        let yaml = r"a: \ud83d\ude00";
        assert_eq!(joined(yaml), yaml);
    }
}
