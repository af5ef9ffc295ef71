//! Messages on standard error, wrapped to the width of the terminal.

use crate::style::Text;
use std::io::{self, IsTerminal as _, Write as _};

/// Stands for a blank at which no line is broken.
const FIXED: char = '\u{a0}';
/// Commands to paste begin with this.
const COMMAND: &str = "taskledger ";

/// Writes lines for people. When nobody reads standard error, there is nobody to tell.
pub fn message(text: &str) {
    let text = match columns() {
        Some(columns) => fitted(text, columns),
        None => text.to_owned(),
    };
    let _ = writeln!(io::stderr(), "{text}");
}

/// Columns of the terminal that standard error is; `None`: it is none, or does not tell.
fn columns() -> Option<usize> {
    let stderr = io::stderr();
    if !stderr.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(stderr).ok()?;
    (size.ws_col > 0).then(|| size.ws_col.into())
}

/// Lines broken at blanks. What stands between backticks, and a command at the end of a line, stays in one piece:
/// whoever copies it gets all of it. Cost: O(letters).
fn fitted(text: &str, columns: usize) -> String {
    let lines = text.lines().flat_map(|line| {
        let wrapped = Text::plain(kept_together(line)).wrapped(columns);
        wrapped.into_iter().map(|line| line.letters())
    });
    let lines: Vec<String> = lines.collect();
    lines.join("\n").replace(FIXED, " ")
}

/// The line with fixed blanks in what is to be copied.
fn kept_together(line: &str) -> String {
    let mut kept = String::with_capacity(line.len());
    for (at, part) in line.split('`').enumerate() {
        if at > 0 {
            kept.push('`');
        }
        let is_quoted = at % 2 == 1;
        match part.find(COMMAND) {
            _ if is_quoted => kept.push_str(&part.replace(' ', "\u{a0}")),
            // `taskledger: ` begins a message, and is no command.
            Some(begin) if begin > 0 => {
                let (before, command) = part.split_at(begin);
                kept.push_str(before);
                kept.push_str(&command.replace(' ', "\u{a0}"));
            }
            Some(_) | None => kept.push_str(part),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::fitted;

    #[test]
    fn a_message_is_broken_at_blanks() {
        let text = "taskledger: --since: `tomorrow` is still to come; expected a time that has passed, such as \
                    `yesterday 14:00`, a date, or RFC 3339";
        let lines = fitted(text, 60);
        assert!(
            lines.lines().all(|line| line.chars().count() <= 60),
            "{lines}"
        );
        assert_eq!(lines.replace("\n  ", " "), text);
        assert!(
            lines.lines().any(|line| line.contains("`yesterday 14:00`")),
            "{lines}"
        );
        assert_eq!(fitted("short", 60), "short");
    }

    #[test]
    fn a_command_to_paste_stays_in_one_line() {
        let command =
            "taskledger tasks list --all --status failed --url https://ledger.example:8443";
        for text in [
            format!("no flow matches --status failed; `{command}` shows the tasks in flows too"),
            format!("no event in the part that was looked through; to go on: {command}"),
        ] {
            let lines = fitted(&text, 60);
            assert!(lines.lines().any(|line| line.contains(command)), "{lines}");
            assert!(lines.lines().count() > 1, "{lines}");
        }
    }
}
