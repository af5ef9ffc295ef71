//! Shows the progress of long commands on standard error, if it is a terminal.

use std::io::{IsTerminal, Write};

/// Characters of the bar.
const BAR_WIDTH: u64 = 30;

/// A line that is written over and over.
#[derive(Debug)]
pub(super) struct Progress {
    what: &'static str,
    visible: bool,
    shown: Option<u64>,
}

impl Progress {
    /// Of so many `what`.
    pub(super) fn of(what: &'static str) -> Self {
        Self {
            what,
            visible: std::io::stderr().is_terminal(),
            shown: None,
        }
    }

    /// Shows that `done` of `total` are done; drawn only when a percent more is.
    pub(super) fn at(&mut self, done: u64, total: u64) {
        let percent = percent(done, total);
        if !self.visible || self.shown == Some(percent) {
            return;
        }
        self.shown = Some(percent);
        // A terminal that cannot be written to changes nothing about the work.
        let _ = write!(
            std::io::stderr(),
            "\r{} {percent:3} %  {done} of {total} {}",
            bar(percent),
            self.what
        );
    }

    /// Leaves the line, so that what follows has one of its own.
    pub(super) fn end(&mut self) {
        if self.shown.take().is_some() {
            let _ = writeln!(std::io::stderr());
        }
    }
}

fn percent(done: u64, total: u64) -> u64 {
    let parts = u128::from(done.min(total)) * 100;
    let percent = parts.checked_div(u128::from(total)).unwrap_or(100);
    u64::try_from(percent).unwrap_or(100)
}

fn bar(percent: u64) -> String {
    (0..BAR_WIDTH)
        .map(|n| {
            if n * 100 < percent * BAR_WIDTH {
                '#'
            } else {
                '.'
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{BAR_WIDTH, bar, percent};

    #[test]
    fn a_bar_is_empty_at_the_beginning_and_full_at_the_end() {
        assert_eq!(bar(0), ".".repeat(BAR_WIDTH as usize));
        assert_eq!(bar(percent(7, 7)), "#".repeat(BAR_WIDTH as usize));
        assert_eq!(percent(0, 0), 100);
        assert_eq!(percent(1, 3), 33);
    }
}
