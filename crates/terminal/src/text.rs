//! Texts that are safe to print, and columns of them.

/// `text` without anything that a terminal would obey.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Columns of text, each as wide as its widest cell; the last is not padded.
#[must_use]
pub fn table(head: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let mut widths: Vec<usize> = head.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &[String]| {
        let padded: Vec<String> = cells
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        padded.join("  ").trim_end().to_owned()
    };
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    std::iter::once(line(&head))
        .chain(rows.iter().map(|row| line(row)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [
            vec!["1".to_owned(), "é".to_owned()],
            vec!["22".to_owned(), "long".to_owned()],
        ];
        assert_eq!(
            table(&["ID", "NAME"], &rows),
            ["ID  NAME", "1   é", "22  long"]
        );
    }

    #[test]
    fn nothing_that_a_terminal_obeys_is_printed() {
        assert_eq!(printable("a\x1b[2Jb\nc\u{9b}d"), "a\u{fffd}[2Jb c\u{fffd}d");
    }
}
