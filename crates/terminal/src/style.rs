//! Styled text: what is good, bad or secondary, as colours of a terminal or as plain text.
//!
//! Colours are the terminal's own sixteen, never fixed ones: its theme, dark or light, decides how they look, so
//! one palette does for both. Nothing is told by colour alone.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns that the rest of a broken line gets at least behind what it hangs on.
const HANGING_MIN: usize = 8;

/// The meaning of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// As it is.
    #[default]
    Plain,
    /// A heading.
    Bold,
    /// Beside the point: ids, units, branches.
    Dim,
    /// Done.
    Good,
    /// Failed.
    Bad,
    /// Under way.
    Busy,
    /// Waits, or was given up.
    Warn,
}

impl Style {
    /// The parameters of the escape sequence that begins it.
    const fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Bold => Some("1"),
            Self::Dim => Some("2"),
            Self::Good => Some("32"),
            Self::Bad => Some("31"),
            Self::Busy => Some("36"),
            Self::Warn => Some("33"),
        }
    }
}

/// A line of pieces, and what stands before the rest of it where it is broken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text {
    pieces: Vec<(Style, String)>,
    /// `None`: the blanks that the line begins with, at least two.
    hang: Option<String>,
    /// It is there to be copied.
    whole: bool,
}

impl Text {
    /// A line of one plain piece.
    #[must_use]
    pub fn plain(text: impl Into<String>) -> Self {
        Self::of(Style::Plain, text)
    }

    /// A line of one piece.
    #[must_use]
    pub fn of(style: Style, text: impl Into<String>) -> Self {
        Self::default().with(style, text)
    }

    /// The same with another piece behind it.
    #[must_use]
    pub fn with(mut self, style: Style, text: impl Into<String>) -> Self {
        self.push(style, text);
        self
    }

    /// Adds a piece.
    pub fn push(&mut self, style: Style, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            self.pieces.push((style, text));
        }
    }

    /// Adds the pieces of another line.
    pub fn append(&mut self, other: Self) {
        self.pieces.extend(other.pieces);
    }

    /// The same, whose rest stands behind `hang` where the line is broken.
    #[must_use]
    pub fn hanging(mut self, hang: impl Into<String>) -> Self {
        self.hang = Some(hang.into());
        self
    }

    /// The same, which is never broken: it is there to be copied.
    #[must_use]
    pub fn whole(mut self) -> Self {
        self.whole = true;
        self
    }

    /// The letters alone.
    #[must_use]
    pub fn letters(&self) -> String {
        self.pieces.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// Columns of a terminal that it takes.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.pieces.iter().map(|(_, text)| text.width()).sum()
    }

    /// The same in at most so many columns, with `…` at the end when something is missing.
    #[must_use]
    pub fn cut(&self, columns: usize) -> Self {
        if self.columns() <= columns {
            return self.clone();
        }
        let mut left = columns.saturating_sub(1);
        let mut cut = Self::default();
        for (style, text) in &self.pieces {
            let mut kept = String::new();
            for letter in text.chars() {
                let Some(rest) = left.checked_sub(letter.width().unwrap_or(0)) else {
                    cut.push(*style, kept);
                    cut.push(Style::Dim, if columns > 0 { "…" } else { "" });
                    return cut;
                };
                left = rest;
                kept.push(letter);
            }
            cut.push(*style, kept);
        }
        cut
    }

    /// The same as lines of at most so many columns, broken at blanks, but not between a number and its unit. A word
    /// that is longer stays whole: whoever copies it gets all of it. Cost: O(letters).
    #[must_use]
    pub fn wrapped(&self, columns: usize) -> Vec<Self> {
        if self.whole || self.columns() <= columns {
            return vec![self.clone()];
        }
        let letters: Vec<(Style, char)> = self
            .pieces
            .iter()
            .flat_map(|(style, text)| text.chars().map(|letter| (*style, letter)))
            .collect();
        let hang = self.hang.clone().unwrap_or_else(|| {
            let blanks = letters.iter().take_while(|(_, letter)| *letter == ' ');
            " ".repeat(blanks.count().max(2))
        });
        // What hangs must leave room.
        let hang = if hang.width() + HANGING_MIN > columns {
            "  "
        } else {
            &hang
        };
        let (mut lines, mut rest, mut begin) = (Vec::new(), &letters[..], "");
        while !rest.is_empty() {
            let (line, next) = rest.split_at(break_of(rest, columns.saturating_sub(begin.width())));
            let mut text = Self::of(Style::Dim, begin);
            for (style, letter) in without_blanks(line) {
                match text.pieces.last_mut() {
                    Some((last, piece)) if last == style => piece.push(*letter),
                    Some(_) | None => text.push(*style, letter.to_string()),
                }
            }
            lines.push(text);
            let blanks = next.iter().take_while(|(_, letter)| *letter == ' ').count();
            rest = &next[blanks..];
            begin = hang;
        }
        lines
    }

    /// The same without blanks at its end.
    #[must_use]
    pub fn trimmed(mut self) -> Self {
        while let Some((_, text)) = self.pieces.last_mut() {
            text.truncate(text.trim_end_matches(' ').len());
            if !text.is_empty() {
                break;
            }
            self.pieces.pop();
        }
        self
    }

    /// The same with spaces up to so many columns.
    #[must_use]
    pub fn padded(&self, columns: usize) -> Self {
        let missing = columns.saturating_sub(self.columns());
        self.clone().with(Style::Plain, " ".repeat(missing))
    }

    /// As a terminal with or without colours takes it.
    #[must_use]
    pub fn render(&self, coloured: bool) -> String {
        let mut out = String::new();
        for (style, text) in &self.pieces {
            match style.code().filter(|_| coloured) {
                Some(code) => {
                    out.push_str("\x1b[");
                    out.push_str(code);
                    out.push('m');
                    out.push_str(text);
                    out.push_str("\x1b[0m");
                }
                None => out.push_str(text),
            }
        }
        out
    }
}

/// Letters that the next line takes: up to a blank, if one of them is not the beginning of the line.
fn break_of(letters: &[(Style, char)], columns: usize) -> usize {
    let mut width = 0;
    let mut last_blank = None;
    let mut has_word = false;
    for (at, (_, letter)) in letters.iter().enumerate() {
        if *letter == ' ' && !is_before_unit(letters, at) {
            last_blank = has_word.then_some(at).or(last_blank);
        }
        width += letter.width().unwrap_or(0);
        if width > columns
            && let Some(blank) = last_blank
        {
            return blank;
        }
        has_word |= *letter != ' ';
    }
    letters.len()
}

/// What stands behind a number that is told with a blank.
const UNITS: [&str; 6] = ["%", "ms", "s", "min", "h", "d"];

/// Whether the blank at this place stands between a number and its unit, or between two parts of one span of time, as
/// in `2 min 0 s`.
fn is_before_unit(letters: &[(Style, char)], blank: usize) -> bool {
    let is_end = |letter: &char| !letter.is_alphanumeric() && *letter != '%';
    let word = |letters: &mut dyn Iterator<Item = char>| -> String {
        // The longest unit, and a letter to see that the word goes on.
        letters
            .take_while(|letter| !is_end(letter))
            .take(4)
            .collect()
    };
    let mut ahead = letters[blank + 1..].iter().map(|(_, letter)| *letter);
    let mut back = letters[..blank].iter().rev().map(|(_, letter)| *letter);
    let (next, last) = (word(&mut ahead), word(&mut back));
    let last: String = last.chars().rev().collect();
    let is_number = |word: &str| word.ends_with(|letter: char| letter.is_ascii_digit());
    let begins_number = next.starts_with(|letter: char| letter.is_ascii_digit());
    let is_unit = |word: &str| UNITS.contains(&word);
    (is_number(&last) && is_unit(&next)) || (is_unit(&last) && begins_number && last != "%")
}

/// Letters without the blanks behind them.
fn without_blanks(letters: &[(Style, char)]) -> &[(Style, char)] {
    let kept = letters.iter().rposition(|(_, letter)| *letter != ' ');
    &letters[..kept.map_or(0, |at| at + 1)]
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::plain(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::plain(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_surround_pieces_and_are_left_out_without_a_terminal() {
        let text = Text::of(Style::Good, "✓").with(Style::Plain, " root");
        assert_eq!(text.render(true), "\x1b[32m✓\x1b[0m root");
        assert_eq!(text.render(false), "✓ root");
    }

    #[test]
    fn a_line_is_cut_by_the_columns_that_letters_take() {
        let text = Text::of(Style::Bad, "日本").with(Style::Plain, "語abc");
        assert_eq!(text.columns(), 9);
        assert_eq!(text.cut(9).letters(), "日本語abc");
        assert_eq!(text.cut(8).letters(), "日本語a…");
        assert_eq!(text.cut(4).letters(), "日…");
        assert_eq!(text.cut(0).letters(), "");
    }

    #[test]
    fn a_line_that_is_too_long_is_broken_at_blanks_and_hangs() {
        let text =
            Text::of(Style::Bad, "failed:").with(Style::Plain, " no route to the host of it");
        let shown = |text: &Text, columns| {
            let lines = text.wrapped(columns);
            lines.iter().map(Text::letters).collect::<Vec<_>>()
        };
        assert_eq!(shown(&text, 40), ["failed: no route to the host of it"]);
        assert_eq!(
            shown(&text, 16),
            ["failed: no route", "  to the host of", "  it"]
        );
        assert_eq!(
            shown(&text.clone().hanging("│  "), 16),
            ["failed: no route", "│  to the host", "│  of it"]
        );
        assert_eq!(
            text.wrapped(16)[0].render(true),
            "\x1b[31mfailed:\x1b[0m no route"
        );
        let long = Text::plain("see 0f8fad5b-d9cb-469f-a165-70867728950e there");
        assert_eq!(
            shown(&long, 16),
            ["see", "  0f8fad5b-d9cb-469f-a165-70867728950e", "  there"],
            "an id is never broken"
        );
        assert_eq!(
            shown(&Text::plain("    a b"), 5),
            ["    a", "  b"],
            "what hangs leaves room"
        );
    }

    #[test]
    fn a_number_stays_with_its_unit() {
        let broken = |text: &str, columns| {
            let lines = Text::plain(text).wrapped(columns);
            lines.iter().map(Text::letters).collect::<Vec<_>>()
        };
        let line = "✗ render  failed: 4 not done  10 ms  attempt 10";
        for columns in 30..35 {
            let lines = broken(line, columns);
            assert!(lines[1].trim_start().starts_with("10 ms"), "{lines:?}");
        }
        for (text, first) in [
            ("waits  21 min 47 s", "waits"),
            ("waits  (in 30 s), and", "waits  (in"),
            ("parse ▰▰▰ 42 %  2 min", "parse ▰▰▰"),
            ("it took 2.5 s", "it took"),
            ("there are 12 minutes", "there are 12"),
            ("at 10 10 10 10", "at 10 10 10"),
        ] {
            assert_eq!(broken(text, 12)[0], first, "{text}");
        }
        let whole = "10 ms 10 ms 10 ms";
        assert_eq!(broken(whole, 5), [whole], "there is no other blank");
    }

    #[test]
    fn blanks_at_the_end_go() {
        let text = Text::plain("a")
            .with(Style::Plain, "  ")
            .with(Style::Dim, " ");
        assert_eq!(text.trimmed(), Text::plain("a"));
    }
}
