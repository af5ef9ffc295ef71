//! How runs stand for whoever began them: whether something has begun, what waits for an answer, and what was said.
//!
//! Owns: the stage of a run and since when, which follow from the starts, questions and ends of its tasks.

use super::contradiction::Contradiction;
use super::flows::Run;
use super::working_set::WorkingSet;
use std::sync::Arc;
use taskledger_domain::flow::{Event, RunStage, RunStarted, RunState};
use taskledger_domain::question::Asks;
use taskledger_domain::{Position, Recorded, RunId, Timestamp, Version};
use taskledger_sql::{Args, Columns};

/// How a run stands, in memory.
pub(crate) struct Standing {
    pub(super) flow_no: i64,
    /// Of the event that started the run.
    version: Version,
    has_origin: bool,
    pub(super) owner: Option<Arc<str>>,
    context: Arc<str>,
    stage: RunStage,
    at: Timestamp,
    position: Position,
    /// Questions that wait; how many, when they are not in memory yet.
    pub(super) waiting: u32,
    /// Those questions, oldest first: version and ordinal of the task.
    pub(super) waits: Vec<(Version, u32, Asks)>,
}

/// A status that a run had, as it is written.
#[derive(Debug, Clone)]
pub(crate) struct PastStatus {
    run_no: i64,
    pub(super) flow_no: i64,
    pub(super) owner: Option<Arc<str>>,
    /// Of the event with which it ended.
    left: Position,
    stage: RunStage,
    at: Timestamp,
    position: Position,
    /// Version of the question that it shows.
    asked: Option<Version>,
}

impl PastStatus {
    pub(super) fn bind(&self, args: &mut Args) {
        args.int(self.run_no);
        args.position(self.left);
        args.text(self.owner.clone());
        args.name(self.stage.as_str());
        args.time(self.at);
        args.position(self.position);
        args.int(self.asked.map(taskledger_sql::int));
    }
}

/// Something that was said, as it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Said {
    kind: &'static str,
    /// -1 for a message.
    ordinal: i64,
    waits: bool,
}

impl Said {
    const MESSAGE: Self = Self {
        kind: "message",
        ordinal: -1,
        waits: false,
    };

    fn asked(ordinal: u32, asks: Asks, waits: bool) -> Self {
        Self {
            kind: match asks {
                Asks::Input => "input",
                Asks::Auth => "auth",
            },
            ordinal: i64::from(ordinal),
            waits,
        }
    }

    pub(super) fn bind(self, args: &mut Args) {
        args.name(self.kind);
        args.int(self.ordinal);
        args.int(i64::from(self.waits));
    }
}

/// A task that waits for an answer, before an event.
pub(super) struct Asking {
    run: RunId,
    ordinal: u32,
}

impl Standing {
    /// How a run stands that has just begun.
    pub(super) fn begun(
        recorded: &Recorded,
        e: &RunStarted,
        (flow_no, owner): (i64, Option<Arc<str>>),
    ) -> Self {
        let context = e.origin.as_ref().and_then(|it| it.context.as_deref());
        Self {
            flow_no,
            version: recorded.version,
            has_origin: e.origin.is_some(),
            owner,
            context: context.map_or_else(|| Arc::from(recorded.flow.to_string()), Arc::from),
            stage: RunStage::Submitted,
            at: recorded.time,
            position: recorded.position,
            waiting: 0,
            waits: Vec::new(),
        }
    }

    /// Reads the last columns of [`super::load::RUNS`].
    pub(super) fn read(c: &mut Columns<'_>) -> Result<Self, crate::Error> {
        Ok(Self {
            flow_no: c.int()?,
            version: c.number()?,
            has_origin: c.int()? != 0,
            owner: c.opt_text()?,
            context: c.text()?,
            stage: c.named()?,
            at: c.time()?,
            position: c.number()?,
            waiting: c.number()?,
            waits: Vec::new(),
        })
    }

    /// Takes a question that waits, as [`super::load::WAITS`] reads it behind the number of its run.
    pub(super) fn take_wait(&mut self, c: &mut Columns<'_>) -> Result<(), crate::Error> {
        let (version, ordinal, kind) = (c.number()?, c.number()?, c.named()?);
        self.waits.push((version, ordinal, kind));
        Ok(())
    }

    pub(super) fn bind(&self, no: i64, args: &mut Args) {
        args.int(no);
        args.int(self.flow_no);
        args.position(self.version);
        args.int(i64::from(self.has_origin));
        args.text(self.owner.clone());
        args.text(self.context.clone());
        args.name(self.stage.as_str());
        args.time(self.at);
        args.position(self.position);
        args.int(i64::from(self.waiting));
    }
}

impl Run {
    fn stage(&self, has_begun: bool) -> RunStage {
        let waits = self.standing.waits.first();
        match self.state {
            RunState::Completed => RunStage::Completed,
            RunState::Failed if self.rejected => RunStage::Rejected,
            RunState::Failed => RunStage::Failed,
            RunState::Cancelled => RunStage::Cancelled,
            RunState::Running => match waits.map(|(_, _, asks)| *asks) {
                Some(Asks::Input) => RunStage::InputRequired,
                Some(Asks::Auth) => RunStage::AuthRequired,
                None if has_begun => RunStage::Working,
                None => RunStage::Submitted,
            },
        }
    }
}

impl WorkingSet {
    /// The task of the event, if it waits for an answer before it.
    pub(super) fn asking(&self, event: &Event) -> Option<Asking> {
        let row = &self.tasks.get(&event.task_id()?)?.placed.row;
        row.suspension.as_ref()?;
        Some(Asking {
            run: row.run_id?,
            ordinal: row.ordinal,
        })
    }

    /// Carries an event to how its run stands. `asking`: its task, if it waited for an answer before. Cost: O(questions
    /// of the run that wait), mostly O(1).
    ///
    /// # Errors
    /// The event contradicts those before.
    pub(super) fn follow_run(
        &mut self,
        recorded: &Recorded,
        asking: Option<Asking>,
    ) -> Result<(), Contradiction> {
        let event = recorded.event.as_ref();
        if let Event::RunStarted(e) = event
            && e.origin.as_ref().is_some_and(|it| it.message.is_some())
        {
            let run = self.run_of(e.run_id)?.no;
            self.said.insert((run, recorded.version), Said::MESSAGE);
        } else if let Event::MessageReceived(e) = event {
            let run = self.run_of(e.run_id)?.no;
            self.said.insert((run, recorded.version), Said::MESSAGE);
        } else if let Event::TaskOutputAppended(e) = event {
            self.appended(recorded, e)?;
        } else if let Event::TaskStarted(e) = event {
            self.stands(e.run_id, recorded, true);
        } else if let Event::RunEnded(e) = event {
            if let Some(run) = self.runs.get_mut(&e.run_id) {
                run.rejected = e.rejected;
            }
            self.stands(e.run_id, recorded, false);
        } else if let Event::TaskSuspended(e) = event {
            let row = &self.task(e.task_id)?.placed.row;
            let (ordinal, run) = (row.ordinal, row.run_id);
            if let Some(run) = run.and_then(|id| self.runs.get_mut(&id)) {
                let standing = &mut run.standing;
                standing.waits.push((recorded.version, ordinal, e.asks));
                standing.waiting += 1;
                let (id, said) = (run.id, Said::asked(ordinal, e.asks, true));
                self.said.insert((run.no, recorded.version), said);
                self.changed_standings.push(id);
                self.stands(id, recorded, false);
            }
        }
        let waits_still = |task: &super::working_set::Task| task.placed.row.suspension.is_some();
        if let Some(asking) = asking
            && !event
                .task_id()
                .and_then(|id| self.tasks.get(&id))
                .is_some_and(waits_still)
            && let Some(run) = self.runs.get_mut(&asking.run)
        {
            let (no, standing) = (run.no, &mut run.standing);
            let waits = &mut standing.waits;
            if let Some(at) = waits.iter().position(|(_, it, _)| *it == asking.ordinal) {
                let (version, ordinal, asks) = waits.remove(at);
                standing.waiting -= 1;
                let said = Said::asked(ordinal, asks, false);
                self.said.insert((no, version), said);
                self.changed_standings.push(asking.run);
            }
            self.stands(asking.run, recorded, false);
        }
        Ok(())
    }

    /// Finds out how a run stands behind an event. Its status is new when its stage is, or the question that its caller
    /// is shown.
    fn stands(&mut self, id: RunId, recorded: &Recorded, begins: bool) {
        let Some(run) = self.runs.get_mut(&id) else {
            return;
        };
        let has_begun = begins || run.standing.stage != RunStage::Submitted;
        let stage = run.stage(has_begun);
        let shown = run.standing.waits.first().map(|(version, ..)| *version);
        if stage == run.standing.stage && shown == run.shown {
            return;
        }
        let asked = std::mem::replace(&mut run.shown, shown);
        let standing = &mut run.standing;
        // One that began with this event was never seen.
        if standing.position < recorded.position {
            self.past_statuses.push(PastStatus {
                run_no: run.no,
                flow_no: standing.flow_no,
                owner: standing.owner.clone(),
                left: recorded.position,
                stage: standing.stage,
                at: standing.at,
                position: standing.position,
                asked,
            });
        }
        standing.stage = stage;
        standing.at = standing.at.max(recorded.time);
        standing.position = recorded.position;
        self.changed_standings.push(id);
    }

    fn run_of(&self, id: RunId) -> Result<&Run, Contradiction> {
        self.runs.get(&id).ok_or(Contradiction::RunNotRunning(id))
    }
}
