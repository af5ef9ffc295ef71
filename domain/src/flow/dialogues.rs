//! The part of the state that holds waits for people: the questions of tasks, and the answers.

use super::event::{OnExpiry, TaskSuspended, TaskSuspensionExpired};
use super::state::{Dialogue, Expiry, Flow, Listens, Open, Turn, Unheard, Waits};
use crate::question::value_of;
use crate::task::Status;
use crate::{Payload, RunId, TaskId, Timestamp};

impl Flow {
    /// What a live task waits for, if it is suspended. Cost: O(log tasks).
    #[must_use]
    pub fn waits(&self, id: TaskId) -> Option<Waits> {
        let open = self.open_question(self.live(id)?)?;
        Some(Waits {
            suspension: open.id,
            asked_at: open.asked_at,
            since: open.since,
            expires_at: open.expires_at,
        })
    }

    /// What an active run waits to be told, and whether it was told this before; `None` once it has ended. Cost:
    /// O(questions of the flow + messages of the run).
    #[must_use]
    pub fn listens(&self, run: RunId, body_hash: &str) -> Option<Listens> {
        let key = *self.run_keys.get(&run)?;
        let asking = self.dialogues.keys().copied();
        let of_run = asking.filter(|&i| self.at(i).run == key);
        let waits = of_run.filter_map(|i| {
            let id = self.at(i).id;
            Some((id, self.waits(id)?))
        });
        Some(Listens {
            waits: waits.collect(),
            has_heard: self.runs[&key]
                .heard
                .iter()
                .any(|hash| **hash == *body_hash),
        })
    }

    /// The questions of a live task that were answered in its latest run, in order. Cost: O(log tasks + result).
    #[must_use]
    pub fn turns(&self, id: TaskId) -> &[Turn] {
        let dialogue = self.live(id).and_then(|i| self.dialogues.get(&i));
        dialogue.map_or(&[], |dialogue| &dialogue.turns)
    }

    pub(crate) fn open_question(&self, i: u32) -> Option<&Open> {
        self.dialogues.get(&i)?.open.as_ref()
    }

    /// The task does not run any more, and waits for a person.
    pub(super) fn suspended(&mut self, e: &TaskSuspended, time: Timestamp) {
        let i = self.ordinal(e.task_id);
        self.end_lease(i);
        let on_expiry = match &e.on_expiry {
            OnExpiry::Fail => Expiry::Fail,
            OnExpiry::Complete { result } => Expiry::Complete(result.as_str().into()),
            OnExpiry::Continue { answer } if e.on_answer.declines(&value_of(answer)) => {
                Expiry::Decline(answer.as_str().into())
            }
            OnExpiry::Continue { answer } => Expiry::Continue(answer.as_str().into()),
        };
        let open = Open {
            id: e.suspension_id,
            asked_at: self.version,
            since: time,
            expires_at: e.expires_at,
            remind_every_ms: e.remind_every_ms,
            reminders: e.reminders,
            reminded: 0,
            ladder: e.ladder.clone(),
            on_expiry,
        };
        self.change_dialogue(i, |dialogue| {
            dialogue.open = Some(open);
            dialogue.unheard = None;
        });
    }

    pub(super) fn reminded(&mut self, id: TaskId, number: u32) {
        let i = self.ordinal(id);
        self.change_dialogue(i, |dialogue| {
            if let Some(open) = &mut dialogue.open {
                open.reminded = number;
            }
        });
    }

    /// The wait is over, by an answer or by what stands for one.
    pub(super) fn answered(&mut self, id: TaskId) {
        let (i, answered_at) = (self.ordinal(id), self.version);
        self.change_dialogue(i, |dialogue| {
            if let Some(open) = dialogue.open.take() {
                dialogue.turns.push(Turn {
                    suspension: open.id,
                    asked_at: open.asked_at,
                    answered_at,
                });
            }
        });
    }

    pub(super) fn suspension_expired(&mut self, e: &TaskSuspensionExpired) {
        match e.policy {
            OnExpiry::Continue { .. } => self.answered(e.task_id),
            OnExpiry::Fail | OnExpiry::Complete { .. } => {
                self.stop_waiting(self.ordinal(e.task_id));
            }
        }
    }

    /// The task has ended otherwise.
    pub(super) fn stop_waiting(&mut self, i: u32) {
        if self.open_question(i).is_some() {
            let run = self.runs.get(&self.at(i).run).map(|run| run.id);
            self.change_dialogue(i, |dialogue| {
                let asked_at = dialogue.open.take().map(|open| open.asked_at);
                let unheard = asked_at.zip(run);
                dialogue.unheard = unheard.map(|(asked_at, run)| Unheard { asked_at, run });
            });
        }
    }

    /// What was said belongs to the run in which it was said.
    pub(super) fn forget_dialogue(&mut self, i: u32) {
        if self.dialogues.contains_key(&i) {
            self.change_dialogue(i, |dialogue| *dialogue = Dialogue::default());
        }
    }

    fn change_dialogue(&mut self, i: u32, change: impl FnOnce(&mut Dialogue)) {
        let known = self.dialogues.remove(&i);
        if let Some(known) = &known {
            self.dialogues_bytes -= known.weight_bytes();
            if let Some(open) = &known.open {
                self.suspension_dues.remove(&(open.due_at(), i));
            }
        }
        let mut dialogue = known.unwrap_or_default();
        change(&mut dialogue);
        if dialogue != Dialogue::default() {
            self.dialogues_bytes += dialogue.weight_bytes();
            self.dialogues.insert(i, dialogue);
            self.link_suspension(i);
        }
    }

    /// Has something happen to a suspended task when it is due.
    pub(super) fn link_suspension(&mut self, i: u32) {
        let due_at = self.open_question(i).map(Open::due_at);
        if let Some(due_at) = due_at.filter(|at| *at != Timestamp::FAR_FUTURE) {
            self.suspension_dues.insert((due_at, i));
        }
    }

    /// Questions belong to attempts that are under way in a run.
    pub(super) fn asks_what_runs(&self) -> bool {
        self.dialogues.iter().all(|(&i, dialogue)| {
            let task = self.tasks.get(i as usize);
            let within = |turn: &Turn| turn.answered_at.max(turn.asked_at) <= self.version;
            task.is_some_and(|task| {
                let waits = task.status == Status::InProgress
                    && !task.is_group()
                    && !task.deleted
                    && !self.leases.contains_key(&i)
                    && self.runs.contains_key(&task.run);
                let is_sound = |open: &Open| {
                    waits
                        && open.asked_at <= self.version
                        && match &open.on_expiry {
                            Expiry::Fail => true,
                            Expiry::Complete(text)
                            | Expiry::Continue(text)
                            | Expiry::Decline(text) => Payload::parse(text).is_ok(),
                        }
                };
                let was_asked = |unheard: &Unheard| unheard.asked_at <= self.version;
                dialogue.turns.iter().all(within)
                    && dialogue.unheard.iter().all(was_asked)
                    && dialogue.open.iter().all(is_sound)
            })
        })
    }
}
