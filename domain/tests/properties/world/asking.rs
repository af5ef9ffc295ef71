//! Questions to people, and answers.

use super::World;
use taskledger_domain::flow::{Command, OnAnswer, Receive, Respond, Suspend, Then};
use taskledger_domain::question::{answer_of, prepare};
use taskledger_domain::testing::{id, run};
use taskledger_domain::{Payload, RunId, SuspensionId, TaskId};

impl World {
    pub(super) fn asking(&self) -> Vec<(TaskId, SuspensionId)> {
        let all = self.model.tasks.iter();
        all.filter_map(|(id, t)| Some((*id, t.asks.as_ref()?.suspension)))
            .collect()
    }

    pub(super) fn answer(task: TaskId, suspension: SuspensionId, then: u8) -> Command {
        Command::Respond(Respond {
            task,
            suspension,
            answer: answer_of(true.into()),
            responded_by: "ann".to_owned(),
            on_behalf_of: None,
            then: match then % 4 {
                0 => Then::Complete(Payload::empty()),
                1 => Then::Decline("no".to_owned()),
                _ => Then::Continue,
            },
        })
    }

    /// A question with reminders, an end, or neither.
    fn question(kind: u8) -> serde_json::Value {
        let policy = ["fail", "use_default_and_continue", "complete_with_fallback"];
        let mut asked = serde_json::json!({"question": "?", "response_type": "confirm"});
        if !kind.is_multiple_of(4) {
            asked["timeout_seconds"] = (1 + kind % 3).into();
            asked["fallback_policy"] = policy[usize::from(kind) % 3].into();
            if kind % 3 == 1 {
                asked["fallback_value"] = (kind % 4 == 3).into();
            } else if kind % 3 == 2 {
                asked["fallback_value"] = serde_json::json!({});
            }
        }
        if kind % 8 > 5 {
            asked["retry_policy"] = serde_json::json!({"max_attempts": 3,
                "escalation_ladder": [{"attempt": 1}, {"attempt": 2, "notify_to": "boss"}]});
        }
        asked
    }

    pub(super) fn ask(&mut self, (task, attempt): (TaskId, u32), kind: u8) -> Command {
        let on_answer = match kind / 8 % 4 {
            0 => OnAnswer::Continue,
            1 => OnAnswer::Complete,
            _ => OnAnswer::CompleteOrDecline,
        };
        let asked = Self::question(kind);
        let asked = asked.as_object().expect("an object");
        let prepared = prepare(asked, on_answer, None);
        let (asked, question, on_expiry) = prepared.expect("a question");
        self.questions += 1;
        let name = format!("question {}", self.questions);
        Command::Suspend(Suspend {
            task,
            attempt,
            lease: self.lease(task),
            suspension: SuspensionId(id(&name).0),
            asked,
            question,
            on_answer,
            on_expiry,
        })
    }

    pub(super) fn answer_one(&self, pick: u8, wrong: bool, then: u8) -> Option<Command> {
        let asking = self.asking();
        let (task, suspension) = *asking.get(usize::from(pick) % asking.len().max(1))?;
        let other = SuspensionId(id("wrong").0);
        let meant = if wrong { other } else { suspension };
        Some(Self::answer(task, meant, then))
    }

    /// A message that answers, to the run of the task, or to another one.
    pub(super) fn say(&self, pick: u8, wrong: bool, then: u8) -> Option<Command> {
        let Command::Respond(answers) = self.answer_one(pick, false, then)? else {
            return None;
        };
        let run = match wrong {
            true => run("wrong"),
            false => self.run_of(answers.task),
        };
        let name = format!("m{}", then % 16);
        Some(Command::Receive(Receive {
            run,
            body_hash: name.clone(),
            message_id: name,
            message: Payload::empty(),
            answers,
        }))
    }

    /// The run that covers a task, or one that there is not.
    pub(super) fn run_of(&self, task: TaskId) -> RunId {
        let of = self.model.tasks.get(&task).and_then(|task| task.run);
        of.unwrap_or_else(|| run("none"))
    }
}
