//! The status of runs for whoever began them: whether something has begun, what waits for an answer, and which messages
//! were sent.
//!
//! Owns: the stage of a run and since when, which follow from the starts, questions and ends of its tasks.

use super::contradiction::Contradiction;
use super::flows::Run;
use super::held::Task;
use super::standing::{PastStatus, Said};
use super::working_set::WorkingSet;
use taskledger_domain::flow::{Event, RunStage, RunState};
use taskledger_domain::question::Asks;
use taskledger_domain::{Recorded, RunId};

/// A task that waits for an answer, before an event.
pub(super) struct Asking {
    run: RunId,
    ordinal: u32,
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
        let waits_still = |task: &Task| task.placed.row.suspension.is_some();
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
