//! Text with meaning: what is good, bad or beside the point, as colours of a terminal or as nothing.
//!
//! Colours are the terminal's own sixteen, never fixed ones: its theme, dark or light, decides how they look, so
//! one palette does for both. Nothing is told by colour alone.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What a piece of text means.
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

/// A line of pieces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text(Vec<(Style, String)>);

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
            self.0.push((style, text));
        }
    }

    /// Adds the pieces of another line.
    pub fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The letters alone.
    #[must_use]
    pub fn letters(&self) -> String {
        self.0.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// Columns of a terminal that it takes.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.0.iter().map(|(_, text)| text.width()).sum()
    }

    /// The same in at most so many columns, with `…` at the end when something is missing.
    #[must_use]
    pub fn cut(&self, columns: usize) -> Self {
        if self.columns() <= columns {
            return self.clone();
        }
        let mut left = columns.saturating_sub(1);
        let mut cut = Self::default();
        for (style, text) in &self.0 {
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
        for (style, text) in &self.0 {
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

/// Columns that a shrunk column keeps at least.
const SHRUNK_COLUMNS_MIN: usize = 8;

/// Columns of text, each as wide as its widest cell, in at most so many columns of the terminal: then the column
/// at `shrinks` is cut, down to 8 columns. The last is not padded.
#[must_use]
pub fn grid(
    head: &[&str],
    rows: &[Vec<Text>],
    shrinks: usize,
    columns: Option<usize>,
) -> Vec<Text> {
    const GAP: usize = 2;
    let mut widths: Vec<usize> = head.iter().map(|cell| cell.width()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.columns());
        }
    }
    let all: usize = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
    if let (Some(columns), Some(width)) = (columns, widths.get_mut(shrinks)) {
        let over = all.saturating_sub(columns);
        *width = width
            .saturating_sub(over)
            .max(SHRUNK_COLUMNS_MIN.min(*width));
    }
    let line = |cells: &[Text]| {
        let mut line = Text::default();
        let last = cells.len().saturating_sub(1);
        for (at, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            let cell = cell.cut(*width);
            line.append(if at == last {
                cell
            } else {
                cell.padded(*width + GAP)
            });
        }
        line
    };
    let head: Vec<Text> = head
        .iter()
        .map(|cell| Text::of(Style::Bold, *cell))
        .collect();
    std::iter::once(line(&head))
        .chain(rows.iter().map(|row| line(row)))
        .map(|line| columns.map_or_else(|| line.clone(), |columns| line.cut(columns)))
        .collect()
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
    fn a_table_that_is_too_wide_shrinks_where_it_may() {
        let rows = [vec![
            Text::from("1"),
            Text::from("a name that is long"),
            Text::from("ann"),
        ]];
        let shown = |columns| {
            let lines = grid(&["ID", "NAME", "BY"], &rows, 1, columns);
            lines.iter().map(Text::letters).collect::<Vec<_>>()
        };
        assert_eq!(
            shown(None),
            [
                "ID  NAME                 BY",
                "1   a name that is long  ann"
            ]
        );
        assert_eq!(
            shown(Some(20)),
            ["ID  NAME         BY", "1   a name tha…  ann"]
        );
        assert!(shown(Some(5)).iter().all(|line| line.chars().count() <= 5));
    }
}
