//! Lines on a terminal that are drawn again in place, whatever its size is and becomes.

use super::output::{Output, Text};
use std::fmt::Write as _;
use std::io;

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    /// Characters in a row.
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// What a terminal has that does not tell.
const USUAL: Size = Size {
    columns: 80,
    rows: 24,
};

impl Size {
    /// Of the terminal that standard output is.
    pub(super) fn now() -> Self {
        match rustix::termios::tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => Self {
                columns: size.ws_col.into(),
                rows: size.ws_row.into(),
            },
            Ok(_) | Err(_) => USUAL,
        }
    }
}

/// The lines that were drawn last.
#[derive(Debug, Default)]
pub(super) struct Canvas {
    /// Columns of each line.
    drawn: Vec<usize>,
}

impl Canvas {
    /// Draws `lines` in the place of those before, as far as they fit.
    pub(super) fn draw(&mut self, lines: &[Text], size: Size, out: &mut Output) -> io::Result<()> {
        let mut text = self.erasing(size);
        self.drawn.clear();
        // Without line wrap, because some characters are wider than one column.
        text.push_str("\x1b[?7l");
        // The cursor stands on a row of its own, below.
        for line in lines.iter().take(size.rows.saturating_sub(1)) {
            let cut = line.cut(size.columns);
            self.drawn.push(cut.columns());
            let _ = writeln!(text, "{}", cut.render(out.look().coloured));
        }
        text.push_str("\x1b[?7h");
        out.bytes(text.as_bytes())
    }

    /// Takes away what was drawn.
    pub(super) fn erase(&mut self, size: Size, out: &mut Output) -> io::Result<()> {
        let text = self.erasing(size);
        self.drawn.clear();
        out.bytes(text.as_bytes())
    }

    /// What was drawn stays where it is: something else was written below it.
    pub(super) fn leave(&mut self) {
        self.drawn.clear();
    }

    /// Goes back to where drawing began. A terminal that has become narrower has broken long lines.
    fn erasing(&self, size: Size) -> String {
        let rows = |chars: &usize| chars.div_ceil(size.columns).max(1);
        let back: usize = self.drawn.iter().map(rows).sum();
        match back.min(size.rows) {
            0 => String::new(),
            back => format!("\r\x1b[{back}A\x1b[J"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskledger_terminal::testing::Buffer;

    fn draw(canvas: &mut Canvas, lines: &[&str], columns: usize, rows: usize) -> String {
        let buffer = Buffer::default();
        let mut out = Output::to(Box::new(buffer.clone()), false, true);
        let lines: Vec<Text> = lines.iter().map(|line| Text::from(*line)).collect();
        canvas
            .draw(&lines, Size { columns, rows }, &mut out)
            .unwrap();
        buffer.text()
    }

    #[test]
    fn lines_are_drawn_over_those_before() {
        let mut canvas = Canvas::default();
        assert_eq!(
            draw(&mut canvas, &["a", "b"], 80, 24),
            "\x1b[?7la\nb\n\x1b[?7h"
        );
        assert_eq!(
            draw(&mut canvas, &["c"], 80, 24),
            "\r\x1b[2A\x1b[J\x1b[?7lc\n\x1b[?7h"
        );
        canvas.leave();
        assert_eq!(draw(&mut canvas, &[], 80, 24), "\x1b[?7l\x1b[?7h");
    }

    #[test]
    fn what_does_not_fit_is_cut() {
        let mut canvas = Canvas::default();
        assert_eq!(
            draw(&mut canvas, &["abcdef", "ééé", "b", "c"], 3, 3),
            "\x1b[?7lab…\nééé\n\x1b[?7h"
        );
    }

    #[test]
    fn lines_that_a_narrower_terminal_has_broken_are_found_again() {
        let mut canvas = Canvas::default();
        draw(&mut canvas, &["0123456789", "x"], 10, 24);
        let again = draw(&mut canvas, &["y"], 4, 24);
        assert!(again.starts_with("\r\x1b[4A\x1b[J"), "{again:?}");
    }
}
