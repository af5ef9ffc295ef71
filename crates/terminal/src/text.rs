//! Texts that are safe to print.

use taskledger_domain::text::is_hidden;

/// `text` without anything that a terminal would obey.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            c if is_hidden(c) => '\u{fffd}',
            c => c,
        })
        .collect()
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
