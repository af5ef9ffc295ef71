//! Shows progress: as a tree that is redrawn in place, as one line for each change, or not at all.

use crate::output::{Output, Style, Text, counted, short, style};
use crate::terminal::{Canvas, Size};
use crate::tree::{Line, SKIPPED, WORDS};
use std::collections::HashMap;
use std::io;

/// Lines of a tree that is drawn in place: fits the smallest usual terminal.
const LIVE_LINES_MAX: usize = 20;
/// Lines of a tree that is shown whole when it has ended: what people scroll through.
const TREE_LINES_MAX: usize = 100;
/// Failed tasks that are shown of a larger one.
const FAILED_LINES_MAX: usize = 20;

/// Where progress goes.
#[derive(Debug)]
pub(crate) enum Screen {
    /// Nowhere: the answer is for a program.
    Silent,
    /// A line for each change of a status.
    Plain {
        /// The statuses that were shown, by task.
        shown: HashMap<String, String>,
    },
    /// A compact tree, drawn again over itself.
    Live(Canvas),
}

impl Screen {
    /// The screen that suits `out`.
    pub(crate) fn for_output(out: &Output) -> Self {
        if out.is_json() {
            Self::Silent
        } else if out.is_terminal() {
            Self::Live(Canvas::default())
        } else {
            Self::Plain {
                shown: HashMap::new(),
            }
        }
    }

    /// Shows the tree as it is now.
    pub(crate) fn show(&mut self, lines: &[Line], out: &mut Output) -> io::Result<()> {
        match self {
            Self::Silent => Ok(()),
            Self::Plain { shown } => {
                let mut changed: Vec<(usize, &Line)> = lines
                    .iter()
                    .enumerate()
                    .filter(|(_, line)| {
                        let before = shown.get(&line.id).map_or("pending", String::as_str);
                        before != line.status
                    })
                    .collect();
                // In the order of events. Of those that are one append, tasks end before others begin, and what lies
                // deeper ends first. What the run has left out is known at its end only.
                changed.sort_by_key(|(at, line)| {
                    let place = i64::try_from(*at).unwrap_or(i64::MAX);
                    match line.status.as_str() {
                        SKIPPED => (true, None, false, place),
                        "in_progress" => (false, line.changed_at, true, place),
                        _ => (false, line.changed_at, false, -place),
                    }
                });
                let changed: Vec<Text> = changed.iter().map(|(_, line)| line.change()).collect();
                for line in lines {
                    if shown.get(&line.id) != Some(&line.status) {
                        shown.insert(line.id.clone(), line.status.clone());
                    }
                }
                out.texts(&changed)
            }
            Self::Live(canvas) => {
                let size = Size::now();
                let room = LIVE_LINES_MAX.min(size.rows.saturating_sub(1));
                canvas.draw(&compact(lines, room), size, out)
            }
        }
    }

    /// Shows one change, where each is shown.
    pub(crate) fn tell(&mut self, line: &Line, out: &mut Output) -> io::Result<()> {
        match self {
            Self::Plain { shown } => {
                shown.insert(line.id.clone(), line.status.clone());
                out.texts(&[line.change()])
            }
            Self::Silent | Self::Live(_) => Ok(()),
        }
    }

    /// Every change was told: what the tree shows besides is what the run has left out.
    pub(crate) fn has_told(&mut self, lines: &[Line]) {
        if let Self::Plain { shown } = self {
            let reached = lines.iter().filter(|line| line.status != SKIPPED);
            shown.extend(reached.map(|line| (line.id.clone(), line.status.clone())));
        }
    }

    /// Shows how the tree ended: whole if it is small, else what failed; counts and the time it took in any case.
    pub(crate) fn finish(&mut self, lines: &[Line], out: &mut Output) -> io::Result<()> {
        self.show(lines, out)?;
        match self {
            Self::Silent => return Ok(()),
            Self::Plain { .. } => {}
            Self::Live(canvas) => canvas.erase(Size::now(), out)?,
        }
        let shown = ended(lines, out);
        out.texts(&shown)
    }

    /// A remark between drawings; on standard error, so that it never mixes with an answer.
    pub(crate) fn remark(&mut self, text: &str) {
        if let Self::Live(canvas) = self {
            // The remark scrolls the terminal: the next drawing starts below it.
            canvas.leave();
        }
        taskledger_terminal::message(text);
    }
}

/// A tree that fits, or what matters of one that does not: what runs and what failed.
fn compact(lines: &[Line], room: usize) -> Vec<Text> {
    if lines.len() <= room {
        return lines.iter().map(Line::text).collect();
    }
    let mut shown = vec![lines[0].text(), summary(lines)];
    let matters =
        |status: &'static str| lines[1..].iter().filter(move |line| line.status == status);
    let room = room.saturating_sub(shown.len());
    let failed = matters("failed").take(room / 2);
    shown.extend(failed.chain(matters("in_progress")).take(room).map(inside));
    shown
}

/// A tree that has ended, for people who did not see it happen.
fn ended(lines: &[Line], out: &Output) -> Vec<Text> {
    if lines.len() <= TREE_LINES_MAX {
        return lines.iter().map(Line::text).collect();
    }
    let mut shown = vec![lines[0].text(), summary(lines)];
    let failed = || lines[1..].iter().filter(|line| line.status == "failed");
    shown.extend(failed().take(FAILED_LINES_MAX).map(inside));
    let more = failed().count().saturating_sub(FAILED_LINES_MAX);
    let id = short(&lines[0].id);
    if more > 0 {
        let list = out.command("taskledger tasks list --all --status failed");
        let text = format!("  {more} more failed: {list}");
        shown.push(Text::of(Style::Dim, text).whole());
    }
    let tree = out.command(&format!("taskledger tasks tree {id}"));
    shown.push(Text::of(Style::Dim, format!("  all of them: {tree}")).whole());
    shown
}

/// A task of a tree that is shown in part.
fn inside(line: &Line) -> Text {
    let line = Line {
        branches: "  ".to_owned(),
        ..line.clone()
    };
    line.text()
}

/// How many tasks stand where. Groups run nothing and are not counted, as in the counts of the run.
fn summary(lines: &[Line]) -> Text {
    let tasks = || lines.iter().filter(|line| !line.is_group);
    let mut text = Text::from(counted(tasks().count() as u64, "task", "tasks"));
    for (at, (status, word)) in WORDS.into_iter().enumerate() {
        let count = tasks().filter(|line| line.status == status).count();
        if count == 0 && status == SKIPPED {
            // Nothing is skipped before a run has ended, and rarely then.
            continue;
        }
        text.push(Style::Plain, if at == 0 { ": " } else { ", " });
        let style = if count > 0 { style(status) } else { Style::Dim };
        text.push(style, format!("{count} {word}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskledger_domain::Timestamp;

    fn line(id: usize, status: &str) -> Line {
        Line {
            branches: "├─ ".to_owned(),
            id: id.to_string(),
            name: format!("t{id}"),
            status: status.to_owned(),
            ..Line::default()
        }
    }

    #[test]
    fn changes_are_told_in_the_order_in_which_they_happened() {
        let at = |second: u8| Timestamp::parse(&format!("2026-01-31T12:00:0{second}Z")).ok();
        let changed = |id, status, second| Line {
            changed_at: at(second),
            ..line(id, status)
        };
        let lines = [
            changed(0, "completed", 5),
            changed(1, "in_progress", 3),
            changed(2, "failed", 3),
            changed(3, "completed", 2),
            changed(4, "completed", 5),
            // It has no time of its own.
            line(5, SKIPPED),
        ];
        let buffer = taskledger_terminal::testing::Buffer::default();
        let mut out = Output::to(Box::new(buffer.clone()), false, false);
        let mut screen = Screen::for_output(&out);
        screen.show(&lines, &mut out).unwrap();
        assert_eq!(
            buffer.text(),
            "✓ t3  completed  (3)\n✗ t2  failed  (2)\n▸ t1  in_progress  (1)\n✓ t4  completed  (4)\n\
             ✓ t0  completed  (0)\n○ t5  skipped  (5)\n"
        );
    }

    #[test]
    fn a_small_tree_is_shown_whole_and_a_large_one_in_short() {
        let mut lines: Vec<Line> = (0..20).map(|id| line(id, "pending")).collect();
        assert_eq!(compact(&lines, LIVE_LINES_MAX).len(), 20);
        lines.extend((20..500).map(|id| line(id, "in_progress")));
        lines.extend((500..600).map(|id| line(id, "failed")));
        let letters = |shown: Vec<Text>| shown.iter().map(Text::letters).collect::<Vec<_>>();
        let shown = letters(compact(&lines, LIVE_LINES_MAX));
        assert_eq!(shown.len(), LIVE_LINES_MAX);
        assert_eq!(
            shown[1],
            "600 tasks: 0 completed, 480 running, 20 pending, 100 failed, 0 cancelled"
        );
        assert_eq!(shown[2], "  ✗ t500  failed");
        let ends = [
            (1, "failed", false),
            (150, SKIPPED, false),
            (2, "failed", true),
        ];
        let ends = ends
            .into_iter()
            .flat_map(|(count, status, is_group)| std::iter::repeat_n((status, is_group), count));
        let ends = ends.enumerate().map(|(id, (status, is_group))| Line {
            is_group,
            ..line(id, status)
        });
        assert_eq!(
            summary(&ends.collect::<Vec<_>>()).letters(),
            "151 tasks: 0 completed, 0 running, 0 pending, 1 failed, 0 cancelled, 150 skipped"
        );
        assert_eq!(shown[19], "  ▸ t28  in_progress");

        let out = Output::to(Box::new(Vec::new()), false, false);
        let shown = letters(ended(&lines, &out));
        assert_eq!(shown.len(), 2 + FAILED_LINES_MAX + 2);
        assert_eq!(
            shown[shown.len() - 2],
            "  80 more failed: taskledger tasks list --all --status failed"
        );
        lines.truncate(TREE_LINES_MAX);
        assert_eq!(ended(&lines, &out).len(), TREE_LINES_MAX);
    }
}
