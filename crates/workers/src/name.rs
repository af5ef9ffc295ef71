//! What names of workers and methods may not have, because people read them in lists.

/// Whether a character is none that is shown: a control character, or one that changes the direction of the text
/// around it, so that a name can look like another one.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::is_hidden;

    #[test]
    fn controls_and_changes_of_direction_are_hidden_and_letters_are_not() {
        assert!(
            ["\u{1b}", "\0", "\n", "\u{202e}", "\u{2066}", "\u{61c}"]
                .iter()
                .all(|c| c.contains(is_hidden))
        );
        assert!(!"scrape.page/é مرحبا 画像".contains(is_hidden));
    }
}
