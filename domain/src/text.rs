//! Rules for characters in texts that people read in lists and on terminals.

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

/// Characters without a width of their own, besides control characters, from first to last: those that Unicode calls
/// default ignorable, which include those that change the direction of text; separators of lines; marks of annotations.
const UNSEEN: [(char, char); 17] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// Whether a character is not seen in a name, which then looks like another one: a control character, or one without a
/// width of its own.
#[must_use]
pub fn is_unseen(c: char) -> bool {
    c.is_control()
        || UNSEEN
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&c))
}

/// A pattern of JSON Schema for names without white space at their ends and without characters that [`is_unseen`]
/// finds, as far as the first 65,536 characters go: not every reader of patterns knows others.
#[must_use]
pub fn name_pattern() -> String {
    let escaped = |c: char| format!("\\u{:04x}", u32::from(c));
    let known = UNSEEN.iter().filter(|(first, _)| *first <= '\u{ffff}');
    let ranges = known.map(|&(first, last)| match first == last {
        true => escaped(first),
        false => format!("{}-{}", escaped(first), escaped(last)),
    });
    let unseen = format!(r"\x00-\x1f\x7f-\x9f{}", ranges.collect::<String>());
    format!(r"^[^\s{unseen}]([^{unseen}]*[^\s{unseen}])?$")
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
    fn characters_that_are_not_seen_are_found_and_letters_are_not() {
        assert!(
            "\u{1b}\0\n\u{202e}\u{2066}\u{61c}\u{200b}\u{200d}\u{2060}\u{feff}\u{ad}\u{3164}\u{fe0f}\u{e0041}"
                .chars()
                .all(is_unseen)
        );
        assert!(!"scrape.page/é مرحبا 画像".contains(is_unseen));
        let directions = DIRECTION.iter().flat_map(|(first, last)| *first..=*last);
        assert!(directions.into_iter().all(is_unseen));
    }

    #[test]
    fn the_pattern_is_written_as_in_ecmascript() {
        let unseen = r"\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f-\u1160\u17b4-\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb";
        let pattern = format!(r"^[^\s{unseen}]([^{unseen}]*[^\s{unseen}])?$");
        assert_eq!(name_pattern(), pattern);
    }
}
