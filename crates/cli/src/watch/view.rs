//! The display of a watch.

use super::flows::Flows;
use super::known::{self, Known, Scope};
use super::lines::{Lines, skipped};
use super::tree::Tree;
use crate::event_stream::{Event, JsonEvent};
use crate::output::Output;
use crate::run::screen::Screen;
use crate::terminal::{Canvas, Size};
use crate::{ApiError, CliError, clock};
use serde_json::Value;
use std::io;
use std::time::Duration;
use taskledger_clock::SharedClock;
use tokio::time::Instant;

/// Lines of flows: fits the smallest usual terminal.
const FLOW_LINES_MAX: usize = 20;
/// Trees that are read for one drawing, so that a burst of new flows does not make the screen stand still.
const READS_MAX: usize = 4;
/// Between two readings of a tree that new tasks came into.
const READ_EVERY: Duration = Duration::from_secs(1);
/// Between two drawings while only times grow.
const GROW_EVERY: Duration = Duration::from_secs(1);

/// The display that events go to.
pub(super) enum View {
    /// A line of JSON each.
    Json,
    /// A line of text each.
    Lines(Lines),
    /// Into a tree that is drawn.
    Tree(Box<TreeView>),
    /// Into a list of flows that is drawn.
    Flows(Box<FlowsView>),
}

/// What a drawing needs to know.
pub(super) struct Drawing {
    clock: SharedClock,
    /// Something has changed since the last one.
    changed: bool,
    last: Option<(Instant, Size)>,
}

/// A tree on a terminal.
pub(super) struct TreeView {
    tree: Tree,
    screen: Screen,
    drawing: Drawing,
    /// A task has come that the tree does not have.
    stale: bool,
    read_at: Instant,
}

/// Flows on a terminal.
pub(super) struct FlowsView {
    flows: Flows,
    canvas: Canvas,
    drawing: Drawing,
}

impl Drawing {
    fn new() -> Self {
        Self {
            clock: clock(),
            changed: true,
            last: None,
        }
    }

    /// Whether it is time for one; if so, it is taken as made.
    fn is_due(&mut self, times_grow: bool) -> bool {
        let (now, size) = (Instant::now(), Size::now());
        let due = match self.last {
            None => true,
            Some((at, before)) => {
                self.changed || size != before || times_grow && now - at >= GROW_EVERY
            }
        };
        if due {
            self.changed = false;
            self.last = Some((now, size));
        }
        due
    }
}

impl View {
    pub(super) fn tree() -> Self {
        Self::Tree(Box::new(TreeView {
            tree: Tree::default(),
            screen: Screen::Live(Canvas::default()),
            drawing: Drawing::new(),
            stale: false,
            read_at: Instant::now(),
        }))
    }

    pub(super) fn flows() -> Self {
        Self::Flows(Box::new(FlowsView {
            flows: Flows::default(),
            canvas: Canvas::default(),
            drawing: Drawing::new(),
        }))
    }

    /// Whether it is drawn from time to time.
    pub(super) fn is_drawn(&self) -> bool {
        match self {
            Self::Json | Self::Lines(_) => false,
            Self::Tree(_) | Self::Flows(_) => true,
        }
    }

    /// Whether it shows the names of the tasks that events are about.
    pub(super) fn needs_names(&self) -> bool {
        match self {
            Self::Lines(_) => true,
            Self::Json | Self::Tree(_) | Self::Flows(_) => false,
        }
    }

    /// The stream is open: what stands now is shown first.
    pub(super) async fn begin(&mut self, known: &mut Known<'_>) -> Result<(), CliError> {
        match self {
            Self::Json | Self::Lines(_) | Self::Flows(_) => Ok(()),
            Self::Tree(view) => Ok(view.read(known).await?),
        }
    }

    /// Takes events: each with its data, and the name of its task.
    pub(super) fn take(
        &mut self,
        events: &[(&Event, Value, String)],
        out: &mut Output,
    ) -> io::Result<()> {
        for (event, data, name) in events {
            match self {
                Self::Json => out.line_of_many(&event.json_line())?,
                Self::Lines(_) if data.get("task_id").is_none() => {}
                Self::Lines(lines) => {
                    for line in lines.next(event, data, name, out) {
                        out.text_of_many(&line)?;
                    }
                }
                Self::Tree(view) => {
                    view.drawing.changed = true;
                    view.stale |= data.get("task_id").is_some() && !view.tree.take(data);
                }
                Self::Flows(view) => {
                    view.drawing.changed = true;
                    view.flows.take(data);
                }
            }
        }
        Ok(())
    }

    /// Nothing follows for now.
    pub(super) fn rest(&mut self, out: &mut Output) -> io::Result<()> {
        if let Self::Lines(lines) = self
            && let Some(line) = lines.rest(out)
        {
            out.text_of_many(&line)?;
        }
        out.flush()
    }

    /// Shows the tasks that a run has left out, which no event names: before its verdict, if that is news.
    pub(super) fn skip(
        &mut self,
        (run, tree): (&str, &Value),
        at: &Value,
        out: &mut Output,
    ) -> io::Result<()> {
        let Self::Lines(lines) = self else {
            return Ok(());
        };
        if !lines.is_news(run) {
            return Ok(());
        }
        let is_skipped = |task: &&Value| task.get("skipped") == Some(&Value::Bool(true));
        for task in known::tasks(tree).filter(is_skipped) {
            out.text_of_many(&skipped(task, at, out))?;
        }
        Ok(())
    }

    /// Draws, if there is something new to see.
    pub(super) async fn draw(
        &mut self,
        known: &mut Known<'_>,
        out: &mut Output,
    ) -> Result<(), CliError> {
        match self {
            Self::Json | Self::Lines(_) => {}
            Self::Tree(view) => {
                if view.stale && view.read_at.elapsed() >= READ_EVERY {
                    match view.read(known).await {
                        // While the server is away, what is there stays.
                        Ok(()) | Err(ApiError::Connection(_) | ApiError::Refused { .. }) => {}
                        Err(error @ (ApiError::Denied { .. } | ApiError::Protocol(_))) => {
                            return Err(error.into());
                        }
                    }
                }
                if view.drawing.is_due(view.tree.is_running()) {
                    let now = view.drawing.clock.now();
                    view.screen.show(&view.tree.lines(now), out)?;
                }
            }
            Self::Flows(view) => {
                let size = Size::now();
                let room = FLOW_LINES_MAX.min(size.rows.saturating_sub(1));
                let unread: Vec<String> = view.flows.unread(room).take(READS_MAX).collect();
                for root in unread {
                    // A flow that cannot be read, because it was deleted or nobody answers, has no name.
                    let tree = known.tree(&root).await.ok();
                    view.flows.read(&root, tree.as_ref());
                    view.drawing.changed = true;
                }
                if view.drawing.is_due(view.flows.is_running()) {
                    let lines = view.flows.lines(room, view.drawing.clock.now());
                    view.canvas.draw(&lines, size, out)?;
                }
            }
        }
        Ok(())
    }

    /// Something else is about to be written: the next drawing begins below it.
    pub(super) fn leave(&mut self) {
        match self {
            Self::Json | Self::Lines(_) => {}
            Self::Tree(view) => {
                if let Screen::Live(canvas) = &mut view.screen {
                    canvas.leave();
                }
            }
            Self::Flows(view) => view.canvas.leave(),
        }
    }

    /// Shows the end.
    pub(super) async fn finish(
        &mut self,
        known: &mut Known<'_>,
        out: &mut Output,
    ) -> Result<(), CliError> {
        match self {
            Self::Json | Self::Lines(_) => {}
            Self::Tree(view) => {
                view.read(known).await?;
                let lines = view.tree.lines(view.drawing.clock.now());
                view.screen.finish(&lines, out)?;
            }
            Self::Flows(_) => self.draw(known, out).await?,
        }
        Ok(())
    }
}

impl TreeView {
    async fn read(&mut self, known: &mut Known<'_>) -> Result<(), ApiError> {
        let root = match known.scope() {
            Scope::Server => return Ok(()),
            Scope::Flow { root } | Scope::Below { root, .. } => root.clone(),
        };
        self.tree.read(&known.tree(&root).await?);
        self.stale = false;
        self.read_at = Instant::now();
        self.drawing.changed = true;
        Ok(())
    }
}
