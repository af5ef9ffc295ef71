//! Characters of texts that people read in lists and on terminals.

/// Characters that change the direction of the text around them, from first to last: a text with one can look like
/// another.
const DIRECTION: [(char, char); 5] = [
    ('\u{61c}', '\u{61c}'),
    ('\u{200e}', '\u{200e}'),
    ('\u{200f}', '\u{200f}'),
    ('\u{202a}', '\u{202e}'),
    ('\u{2066}', '\u{2069}'),
];

/// Whether a character changes the direction of the text around it.
#[must_use]
pub fn changes_direction(c: char) -> bool {
    DIRECTION
        .iter()
        .any(|(first, last)| (*first..=*last).contains(&c))
}

/// Whether a character is not shown: a control character, or one that changes the direction of text.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    c.is_control() || changes_direction(c)
}

/// A pattern of JSON Schema for texts of one character or more, none of which [`is_hidden`].
#[must_use]
pub fn shown_pattern() -> String {
    let escaped = |c: char| format!("\\u{:04x}", u32::from(c));
    let ranges = DIRECTION.iter().map(|&(first, last)| match first == last {
        true => escaped(first),
        false => format!("{}-{}", escaped(first), escaped(last)),
    });
    let ranges: String = ranges.collect();
    format!(r"^[^\x00-\x1f\x7f-\x9f{ranges}]+$")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_and_changes_of_direction_are_hidden_and_letters_are_not() {
        assert!(
            ["\u{1b}", "\0", "\n", "\u{202e}", "\u{2066}", "\u{61c}"]
                .iter()
                .all(|c| c.contains(is_hidden))
        );
        assert!(!"scrape.page/é مرحبا 画像".contains(is_hidden));
    }

    #[test]
    fn the_pattern_is_written_as_in_ecmascript() {
        let pattern = r"^[^\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+$";
        assert_eq!(shown_pattern(), pattern);
    }
}
