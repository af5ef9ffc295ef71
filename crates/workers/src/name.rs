//! What names of workers and methods may not have, because people read them in lists.

/// Whether a character is none that is shown: a control character, one that changes the direction of the text around it,
/// or one without a width of its own, so that a name can look like another one. The last are the characters that Unicode
/// calls default ignorable; separators of lines and the marks of annotations are among those that are not shown.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// The same characters, those of the basic plane, as they stand in a class of a regular expression of ECMA 262.
pub const HIDDEN: &str = r"\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f-\u1160\u17b4-\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb";

#[cfg(test)]
mod tests {
    use super::is_hidden;

    #[test]
    fn characters_that_are_not_seen_are_hidden_and_letters_are_not() {
        assert!(
            "\u{1b}\0\n\u{202e}\u{2066}\u{61c}\u{200b}\u{200d}\u{2060}\u{feff}\u{ad}\u{3164}\u{fe0f}\u{e0041}"
                .chars()
                .all(is_hidden)
        );
        assert!(!"scrape.page/é مرحبا 画像".contains(is_hidden));
    }
}
