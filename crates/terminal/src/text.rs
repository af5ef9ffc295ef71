//! Texts that are safe to print.

/// `text` without anything that a terminal would obey.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            c if c.is_control() || changes_direction(c) => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Whether the text around it would be shown in another order, so that it can look like another text.
const fn changes_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_printed() {
        assert_eq!(printable("a\x1b[2Jb\nc\u{9b}d"), "a\u{fffd}[2Jb c\u{fffd}d");
        assert_eq!(printable("a\u{202e}b\u{2069}"), "a\u{fffd}b\u{fffd}");
    }
}
