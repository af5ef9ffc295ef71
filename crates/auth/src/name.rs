//! The name of a user or service, and which names are reserved.

use crate::audit::SERVER;
use crate::caller::{ANONYMOUS, OPERATOR, SERVICE, USER};
use std::fmt;
use std::sync::Arc;

/// Unicode scalar values of the name of a user or service.
pub const NAME_CHARS_MAX: usize = 255;
/// The actor of what the server does with flows by itself.
const ENGINE: &str = "engine";

/// The name of a user or service: 1 to [`NAME_CHARS_MAX`] characters without control or invisible characters,
/// compared exactly.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(pub(crate) Arc<str>);

/// Why a text cannot be a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// It is empty.
    #[error("a name has at least one character")]
    Empty,
    /// It is too long.
    #[error("a name has at most {NAME_CHARS_MAX} characters")]
    TooLong,
    /// It could be taken for another one.
    #[error("a name has no control or invisible characters and no white space at its ends")]
    Invisible,
    /// It looks like the stored form of another kind of caller.
    #[error("a name does not begin with `user:` or `service:`")]
    Prefixed,
}

impl Name {
    /// The name with this text.
    ///
    /// # Errors
    /// [`InvalidName`].
    pub fn new(text: &str) -> Result<Self, InvalidName> {
        if text.is_empty() {
            return Err(InvalidName::Empty);
        }
        if text.chars().count() > NAME_CHARS_MAX {
            return Err(InvalidName::TooLong);
        }
        let is_hidden = |c: char| c.is_control() || is_invisible(c);
        if text.trim() != text || text.chars().any(is_hidden) {
            return Err(InvalidName::Invisible);
        }
        if text.starts_with(USER) || text.starts_with(SERVICE) {
            return Err(InvalidName::Prefixed);
        }
        Ok(Self(Arc::from(text)))
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a reader could take it for a name by which histories and the audit log call the server itself or callers
    /// without credentials: in any case, in letters of another width or style, or with letters of another script in
    /// place of some of its own. Cost: O(length).
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        RESERVED.iter().any(|reserved| is_like(&self.0, reserved))
    }
}

/// Names by which histories and the audit log call the server itself and callers without credentials.
const RESERVED: [&str; 4] = [ANONYMOUS, ENGINE, OPERATOR, SERVER];

/// Whether `text` could be read as `word`, which is of ASCII letters. A letter of another script could be one that
/// looks like that of the word; a text of which no letter is one of the word's is another name.
fn is_like(text: &str, word: &str) -> bool {
    let mut shared = 0;
    let mut letters = text.chars().map(plain);
    for expected in word.chars() {
        match letters.next() {
            Some(letter) if letter.eq_ignore_ascii_case(&expected) => shared += 1,
            Some(letter) if !letter.is_ascii() => {}
            Some(_) | None => return false,
        }
    }
    letters.next().is_none() && shared > 0
}

/// The ASCII letter that a letter of full width or of a mathematical style stands for; others as they are.
fn plain(letter: char) -> char {
    const FULL_WIDTH: std::ops::RangeInclusive<u32> = 0xff01..=0xff5e;
    const FULL_WIDTH_BEHIND: u32 = 0xfee0;
    /// Thirteen alphabets of 52 letters.
    const MATHEMATICAL: std::ops::RangeInclusive<u32> = 0x1d400..=0x1d6a3;
    let code = u32::from(letter);
    let ascii = if FULL_WIDTH.contains(&code) {
        code - FULL_WIDTH_BEHIND
    } else if MATHEMATICAL.contains(&code) {
        u32::from('a') + (code - MATHEMATICAL.start()) % 26
    } else {
        return letter;
    };
    char::from_u32(ascii).unwrap_or(letter)
}

/// Whether a character shows nothing by itself (Unicode: `Default_Ignorable_Code_Point` and the controls of direction),
/// so that two names with and without it look alike.
const fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).expect("a name")
    }

    #[test]
    fn names_that_could_be_taken_for_others_are_refused() {
        let long = "x".repeat(NAME_CHARS_MAX + 1);
        for (text, reason) in [
            ("", InvalidName::Empty),
            (&long, InvalidName::TooLong),
            (" ann", InvalidName::Invisible),
            ("ann\0", InvalidName::Invisible),
            ("an\u{200b}n", InvalidName::Invisible),
            ("ann\u{202e}", InvalidName::Invisible),
            ("a\u{ad}nn", InvalidName::Invisible),
            ("service:ann", InvalidName::Prefixed),
        ] {
            assert_eq!(Name::new(text), Err(reason), "{text:?}");
        }
        assert_eq!(name("ann@example.org").as_str(), "ann@example.org");
    }

    #[test]
    fn names_that_could_be_taken_for_the_servers_own_are_reserved() {
        for text in [
            "anonymous",
            "engine",
            "operator",
            "server",
            "Engine",
            "SERVER",
            "s\u{435}rver",
            "\u{430}n\u{43e}nymous",
            "\u{ff53}\u{ff45}\u{ff52}\u{ff56}\u{ff45}\u{ff52}",
            "\u{1d42c}\u{1d41e}\u{1d42b}\u{1d42f}\u{1d41e}\u{1d42b}",
        ] {
            assert!(name(text).is_reserved(), "{text:?}");
        }
        for text in [
            "engineer",
            "engin",
            "servers",
            "corp:server",
            "ann",
            "\u{441}\u{435}\u{440}\u{433}\u{435}\u{439}",
            "\u{30aa}\u{30da}",
        ] {
            assert!(!name(text).is_reserved(), "{text:?}");
        }
    }
}
