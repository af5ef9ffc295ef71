//! The state of a task's questions.

use crate::flow::event::OnExpiry;
use crate::question::Escalation;
use crate::{Payload, RunId, SuspensionId, TaskId, Timestamp, Version};
use serde::{Deserialize, Serialize};

/// The questions of a task in its run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Dialogue {
    /// The one that waits for an answer.
    pub(crate) open: Option<Open>,
    /// Those that are answered, in order.
    pub(crate) turns: Vec<Turn>,
    /// The one with which the task ended, before anybody answered.
    pub(crate) unheard: Option<Unheard>,
}

/// A question that nobody will answer any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Unheard {
    /// Version of the event with the question.
    pub(crate) asked_at: Version,
    /// The run in which it was asked.
    pub(crate) run: RunId,
}

/// A question that was answered, or given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Identifies the wait.
    pub suspension: SuspensionId,
    /// Version of the event with the question.
    pub asked_at: Version,
    /// Version of the event with the answer.
    pub answered_at: Version,
}

/// A question that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Open {
    pub(crate) id: SuspensionId,
    /// Version of the event with the question.
    pub(crate) asked_at: Version,
    pub(crate) since: Timestamp,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) remind_every_ms: Option<u64>,
    pub(crate) reminders: u32,
    /// Those that are recorded.
    pub(crate) reminded: u32,
    pub(crate) ladder: Vec<Escalation>,
    pub(crate) on_expiry: Expiry,
}

/// As [`OnExpiry`], in a form that snapshots can hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Expiry {
    Fail,
    Complete(Box<str>),
    Continue(Box<str>),
    /// As [`OnExpiry::Continue`], for an answer with which the task fails.
    Decline(Box<str>),
}

/// A task that waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// Identifies the wait.
    pub suspension: SuspensionId,
    /// Version of the event with the question.
    pub asked_at: Version,
    /// When it was asked.
    pub since: Timestamp,
    /// When nobody will answer any more.
    pub expires_at: Option<Timestamp>,
}

/// What a run waits to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listens {
    /// The tasks that wait, in order of creation.
    pub waits: Vec<(TaskId, Waits)>,
    /// Whether it was told the message before.
    pub has_heard: bool,
}

impl Open {
    /// When something is due: a reminder, or the end of the wait.
    pub(crate) fn due_at(&self) -> Timestamp {
        let every_ms = self
            .remind_every_ms
            .filter(|_| self.reminded < self.reminders);
        let reminder = every_ms.map(|ms| {
            let ms = ms.saturating_mul(u64::from(self.reminded) + 1);
            self.since.plus_ms(ms)
        });
        let expires_at = self.expires_at.unwrap_or(Timestamp::FAR_FUTURE);
        reminder.map_or(expires_at, |at| at.min(expires_at))
    }

    /// The last reminder that is due at `now`, if one is.
    pub(crate) fn reminder(&self, now: Timestamp) -> Option<u32> {
        let every_ms = self.remind_every_ms.filter(|ms| *ms > 0)?;
        let passed_ms = u64::try_from(now.0.saturating_sub(self.since.0)).ok()? / 1000;
        let due = (passed_ms / every_ms).min(u64::from(self.reminders));
        u32::try_from(due).ok().filter(|due| *due > self.reminded)
    }

    pub(crate) fn on_expiry(&self) -> OnExpiry {
        let payload = |text: &str| Payload::parse(text).expect("it was written from a payload");
        match &self.on_expiry {
            Expiry::Fail => OnExpiry::Fail,
            Expiry::Complete(result) => OnExpiry::Complete {
                result: payload(result),
            },
            Expiry::Continue(answer) | Expiry::Decline(answer) => OnExpiry::Continue {
                answer: payload(answer),
            },
        }
    }

    /// Whether the task fails by what stands for an answer.
    pub(crate) const fn declines(&self) -> bool {
        matches!(self.on_expiry, Expiry::Decline(_))
    }

    /// The step that a reminder goes to: the last one up to it that no earlier reminder went to. A server that was away
    /// sends only the last reminder that is due, in place of all that it has missed.
    pub(crate) fn escalation(&self, number: u32) -> Option<&Escalation> {
        let untold = self.reminded + 1..=number;
        let steps = self
            .ladder
            .iter()
            .filter(|step| untold.contains(&step.attempt));
        steps.max_by_key(|step| step.attempt)
    }

    fn weight_bytes(&self) -> usize {
        let kept = match &self.on_expiry {
            Expiry::Fail => 0,
            Expiry::Complete(text) | Expiry::Continue(text) | Expiry::Decline(text) => text.len(),
        };
        let step = |step: &Escalation| {
            let texts = [&step.channel_hint, &step.notify_to];
            let bytes = texts.into_iter().flatten().map(String::len).sum::<usize>();
            size_of::<Escalation>() + bytes
        };
        kept + self.ladder.iter().map(step).sum::<usize>()
    }
}

impl Dialogue {
    /// Roughly what it takes in memory.
    pub(crate) fn weight_bytes(&self) -> usize {
        let open = self.open.as_ref().map_or(0, Open::weight_bytes);
        size_of::<Self>() + 16 + open + self.turns.len() * size_of::<Turn>()
    }
}
