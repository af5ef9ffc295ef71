//! Tables that fit: aligned columns within the width of a terminal.
//!
//! What a reader needs stays whole and in place. First the columns that may be shortened get an ellipsis, then
//! columns that are extra are left out, the last first, and where even that does not help, each row becomes lines of
//! `NAME  value`.

use crate::style::{Style, Text};
use unicode_width::UnicodeWidthStr;

/// Columns of a terminal that a shortened cell keeps at least.
const SHORT_MIN: usize = 8;
/// Columns that it keeps while there are columns to leave out.
const SHORT_USUAL: usize = 16;
/// Columns of a terminal that a cell which is broken into lines gets at least; with less it stands below its row.
const WRAPPED_MIN: usize = 40;
/// Columns of a terminal between two cells.
const GAP: usize = 2;
/// Before what stands below its row.
const BELOW: &str = "    ";

/// What becomes of the cells of a column when there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    Whole,
    /// Down to so many columns while there are others to leave out.
    Short(usize),
    Wraps,
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column<'h> {
    head: &'h str,
    fit: Fit,
    extra: bool,
}

impl<'h> Column<'h> {
    /// Its cells are never shortened, as those with ids.
    #[must_use]
    pub const fn whole(head: &'h str) -> Self {
        Self {
            head,
            fit: Fit::Whole,
            extra: false,
        }
    }

    /// Its cells are shortened where there is no room: to 16 columns, and to 8 when nothing can be left out any more.
    #[must_use]
    pub const fn short(head: &'h str) -> Self {
        Self {
            head,
            fit: Fit::Short(SHORT_USUAL),
            extra: false,
        }
    }

    /// Its cells are broken into lines below one another. The last column only.
    #[must_use]
    pub const fn wraps(head: &'h str) -> Self {
        Self {
            head,
            fit: Fit::Wraps,
            extra: false,
        }
    }

    /// The heading that stands above the column.
    #[must_use]
    pub const fn head(&self) -> &'h str {
        self.head
    }

    /// The same, left out where there is no room.
    #[must_use]
    pub const fn extra(mut self) -> Self {
        self.extra = true;
        self
    }
}

/// A table with a head, in at most so many columns of the terminal; `None`: as many as it needs. Lines hang below
/// their last column where they are still to be broken. Cost: O(cells).
#[must_use]
pub fn aligned(columns: &[Column<'_>], rows: &[Vec<Text>], width: Option<usize>) -> Vec<Text> {
    let mut chosen: Vec<usize> = (0..columns.len()).collect();
    loop {
        let extra = chosen.iter().rposition(|at| columns[*at].extra);
        let least = |usual: usize| if extra.is_some() { usual } else { SHORT_MIN };
        if let Some(widths) = widths(columns, rows, &chosen, (width, &least)) {
            return lines(columns, rows, &chosen, &widths, width);
        }
        match extra {
            Some(last) => chosen.remove(last),
            None => return records(columns, rows),
        };
    }
}

/// Columns of text, each as wide as its widest cell, in at most so many columns of the terminal: then the column at
/// `shrinks` is shortened, and those behind it are left out, the last first.
#[must_use]
pub fn grid(
    head: &[&str],
    rows: &[Vec<Text>],
    shrinks: usize,
    columns: Option<usize>,
) -> Vec<Text> {
    let columns_of = head.iter().enumerate().map(|(at, head)| match at {
        at if at == shrinks => Column {
            fit: Fit::Short(SHORT_MIN),
            ..Column::short(head)
        },
        at if at > shrinks => Column::whole(head).extra(),
        _ => Column::whole(head),
    });
    let all: Vec<Column<'_>> = columns_of.collect();
    aligned(&all, rows, columns)
}

/// How wide each chosen column is, the one that wraps apart; `None`: they do not fit.
fn widths(
    columns: &[Column<'_>],
    rows: &[Vec<Text>],
    chosen: &[usize],
    (width, least): (Option<usize>, &dyn Fn(usize) -> usize),
) -> Option<Vec<usize>> {
    let natural = |at: &usize| {
        let cells = rows.iter().filter_map(|row| row.get(*at));
        let cells = cells.map(Text::columns).max().unwrap_or(0);
        cells.max(columns[*at].head.width())
    };
    let fixed: Vec<usize> = chosen
        .iter()
        .copied()
        .filter(|at| columns[*at].fit != Fit::Wraps)
        .collect();
    let mut widths: Vec<usize> = fixed.iter().map(natural).collect();
    let Some(width) = width else {
        return Some(widths);
    };
    let gaps = GAP * widths.len().saturating_sub(1);
    let mut over = (widths.iter().sum::<usize>() + gaps).saturating_sub(width);
    while over > 0 {
        let shortened = fixed
            .iter()
            .zip(&mut widths)
            .filter(|(at, width)| match columns[**at].fit {
                Fit::Short(usual) => **width > least(usual),
                Fit::Whole | Fit::Wraps => false,
            })
            .max_by_key(|(_, width)| **width)?;
        *shortened.1 -= 1;
        over -= 1;
    }
    Some(widths)
}

fn lines(
    columns: &[Column<'_>],
    rows: &[Vec<Text>],
    chosen: &[usize],
    widths: &[usize],
    width: Option<usize>,
) -> Vec<Text> {
    let wraps = chosen
        .iter()
        .copied()
        .find(|at| columns[*at].fit == Fit::Wraps);
    let begin = widths.iter().map(|width| width + GAP).sum::<usize>();
    // A word is not broken, so the longest must fit beside the row too.
    let words = rows.iter().filter_map(|row| row.get(wraps?));
    let longest = words.map(longest_word).max().unwrap_or(0);
    let is_beside = width.is_none_or(|width| begin + longest.max(WRAPPED_MIN) <= width);
    let none = Text::default();
    let line = |cells: &[&Text]| {
        let mut line = Text::default();
        let fixed = chosen.iter().filter(|at| columns[**at].fit != Fit::Wraps);
        for (at, width) in fixed.zip(widths) {
            line.append(cells[*at].cut(*width).padded(width + GAP));
        }
        line.hanging(" ".repeat(begin))
    };
    let head: Vec<Text> = columns
        .iter()
        .map(|column| Text::of(Style::Bold, column.head))
        .collect();
    let head_row = std::iter::once(head.iter().collect::<Vec<_>>());
    let all = head_row.chain(rows.iter().map(|row| {
        let cells = (0..columns.len()).map(|at| row.get(at).unwrap_or(&none));
        cells.collect()
    }));
    let mut shown = Vec::new();
    for (number, cells) in all.enumerate() {
        let mut line = line(&cells);
        let last = wraps.map(|at| cells[at].clone());
        match last {
            Some(last) if is_beside => {
                line.append(last);
                shown.push(line.trimmed());
            }
            Some(last) => {
                shown.push(line.trimmed());
                // The name of what stands below says nothing there.
                if number > 0 && last.columns() > 0 {
                    let mut below = Text::plain(BELOW);
                    below.append(last);
                    shown.push(below.hanging(BELOW));
                }
            }
            None => shown.push(line.trimmed()),
        }
    }
    shown
}

fn longest_word(text: &Text) -> usize {
    let letters = text.letters();
    let words = letters.split(' ').map(UnicodeWidthStr::width);
    words.max().unwrap_or(0)
}

/// Each row as lines with a name and a value, rows apart from one another.
fn records(columns: &[Column<'_>], rows: &[Vec<Text>]) -> Vec<Text> {
    let widest = columns.iter().map(|column| column.head.width()).max();
    let width = widest.unwrap_or(0) + GAP;
    let mut shown = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        if number > 0 {
            shown.push(Text::default());
        }
        for (column, cell) in columns.iter().zip(row) {
            if cell.columns() == 0 {
                continue;
            }
            let mut line = Text::of(Style::Bold, column.head).padded(width);
            line.append(cell.clone());
            shown.push(line.hanging(" ".repeat(width)));
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

    fn letters(lines: &[Text]) -> Vec<String> {
        lines.iter().map(Text::letters).collect()
    }

    #[test]
    fn a_table_that_is_too_wide_shrinks_where_it_may() {
        let rows = [vec![
            Text::from("1"),
            Text::from("a name that is long"),
            Text::from("ann"),
        ]];
        let shown = |columns| letters(&grid(&["ID", "NAME", "BY"], &rows, 1, columns));
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
        assert_eq!(
            shown(Some(13)),
            ["ID  NAME", "1   a name t…"],
            "by whom is extra"
        );
        assert_eq!(
            shown(Some(5)),
            ["ID    1", "NAME  a name that is long", "BY    ann"],
            "each row in lines"
        );
    }

    #[test]
    fn ids_are_never_shortened_however_narrow_it_is() {
        let columns = [
            Column::whole("ID"),
            Column::short("URL"),
            Column::short("NOTE").extra(),
        ];
        let url = Text::from("https://example.com/hooks/of/a/team");
        let rows = [vec![Text::from(ID), url, Text::from("a note that is long")]];
        for width in [1, 30, 40, 60, 80, 200] {
            let shown = aligned(&columns, &rows, Some(width));
            assert!(
                letters(&shown).iter().any(|line| line.contains(ID)),
                "{width}: {shown:?}"
            );
            if width >= 60 {
                assert!(
                    shown.iter().all(|line| line.columns() <= width),
                    "{shown:?}"
                );
            }
        }
    }

    #[test]
    fn a_long_cell_is_broken_beside_its_row_or_stands_below_it() {
        let columns = [Column::whole("TYPE"), Column::wraps("WHAT")];
        let rows = [vec![
            Text::from("task_failed"),
            Text::from("no route to the host that was named, and no answer"),
        ]];
        let shown = |width| {
            let lines = aligned(&columns, &rows, Some(width));
            let lines = lines.iter().flat_map(|line| line.wrapped(width));
            lines.map(|line| line.letters()).collect::<Vec<_>>()
        };
        assert_eq!(
            shown(56),
            [
                "TYPE         WHAT",
                "task_failed  no route to the host that was named, and no",
                "             answer",
            ]
        );
        assert_eq!(
            shown(30),
            [
                "TYPE",
                "task_failed",
                "    no route to the host that",
                "    was named, and no answer",
            ]
        );
    }
}
