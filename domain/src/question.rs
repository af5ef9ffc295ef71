//! The question that a task asks a person while it is suspended, and the check of its answer. The form is that of
//! RFC-0025, as far as RFC-0024 needs it.
//!
//! Owns: reading a question, its times, what happens when nobody answers, and the check of an answer. May not touch:
//! tasks, and of flows the events alone.
//!
//! ```text
//! question         text, 1 to 4,000 characters
//! asks             "input" (without it) | "auth": credentials, which go to the task by other ways
//! response_type    "text" (without it) | "confirm" | "choice" | "form"
//! choices          [{value, label?, ..}]      of a choice
//! schema | fields  JSON Schema | {key: type}  of a form; the schema is an object or true
//! context          object                     shown with the question
//! channel_hint     text                       where the person may be found
//! timeout_seconds  number                     ends the wait; without it and `retry_policy` there is no end
//! fallback_policy  "fail" (without it) | "complete_with_fallback" | "use_default_and_continue"
//! fallback_value   any                        needed by both of the others
//! retry_policy     {max_attempts?, interval_seconds?, strategy?: "fixed",
//!                   escalation_ladder?: [{attempt, channel_hint?, notify_to?}], final_fallback_policy?}
//! ```
//!
//! A question is asked `max_attempts` times: once, and again with each reminder. Reminders come every
//! `interval_seconds`, or every `timeout_seconds / max_attempts`. `timeout_seconds` ends the wait, and later reminders
//! are left out; without it, the last interval ends the wait. `attempt` is the number of a reminder, from 1.
//! `final_fallback_policy` takes the place of `fallback_policy`.

mod reader;
mod stored;
#[cfg(test)]
mod tests;

use crate::contract::{Mismatch, Outputs, Type, equal};
use crate::flow::{OnAnswer, OnExpiry};
use crate::{Payload, Violation, limits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Something that a person is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The question in words for the person.
    pub text: String,
    /// What the task waits for.
    pub asks: Asks,
    /// What an answer is.
    pub expects: Expected,
    /// Milliseconds after which nobody will answer any more; `None`: the wait has no end.
    pub expires_after_ms: Option<u64>,
    /// Milliseconds between two reminders.
    pub remind_every_ms: Option<u64>,
    /// How often the person is reminded.
    pub reminders: u32,
    /// Who is asked when, by number of the reminder.
    pub ladder: Vec<Escalation>,
    /// What happens when nobody answers in time.
    pub fallback: Fallback,
}

/// What a task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asks {
    /// An answer.
    #[default]
    Input,
    /// Credentials. They are set where secrets are kept, never said in an answer, which only says that they are there.
    Auth,
}

impl Asks {
    /// Whether it is an answer.
    #[must_use]
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub const fn is_input(&self) -> bool {
        matches!(self, Self::Input)
    }
}

/// The answer that a question expects.
#[derive(Debug, Clone, PartialEq)]
pub enum Expected {
    /// One of these values; never empty.
    Choice(Vec<Choice>),
    /// True or false.
    Confirm,
    /// A text that is not empty.
    Text,
    /// An object of this type.
    Form(Type),
}

/// A value that may be chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The answer that this choice stands for.
    pub value: Value,
    /// What people read.
    pub label: Option<String>,
}

/// The consequences when nobody answers in time.
#[derive(Debug, Clone, PartialEq)]
pub enum Fallback {
    /// The task fails.
    Fail,
    /// The task completes with this result.
    Complete(Map<String, Value>),
    /// The task goes on as if this had been answered.
    Continue(Value),
}

/// The receivers of a reminder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Escalation {
    /// Number of the reminder, from 1.
    pub attempt: u32,
    /// Where the person may be found.
    #[serde(default)]
    pub channel_hint: Option<String>,
    /// Who is told.
    #[serde(default)]
    pub notify_to: Option<String>,
}

/// Why a value is no answer.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerFault {
    /// None of the choices.
    NotAChoice {
        /// Their values.
        valid: Vec<Value>,
    },
    /// A value of another kind than this.
    NotA(&'static str),
    /// Not of the form's type.
    Form(Vec<Mismatch>),
}

impl Question {
    /// Reads a question. Cost: O(size), and for a `schema` what [`crate::task::inputs::compile`] costs.
    ///
    /// # Errors
    /// Everything that its author has to mend, with paths below the question.
    pub fn parse(members: &Map<String, Value>) -> Result<Self, Vec<Violation>> {
        Self::parse_beside(members, &[])
    }

    /// As [`Question::parse`], for members that stood beside others, which are no part of the question: messages
    /// about unknown members name these, too.
    ///
    /// # Errors
    /// As for [`Question::parse`].
    pub fn parse_beside(
        members: &Map<String, Value>,
        others: &[&'static str],
    ) -> Result<Self, Vec<Violation>> {
        reader::read(members, others)
    }
}

/// A question, ready to be asked: as it is stored, read, and what follows when nobody answers. `outputs`: what the
/// task declares, which a result that stands for an answer has to keep. Cost: as for [`Question::parse`].
///
/// # Errors
/// Everything that its author has to mend, with paths below the question.
pub fn prepare(
    members: &Map<String, Value>,
    on_answer: OnAnswer,
    outputs: Option<&Outputs>,
) -> Result<(Payload, Question, OnExpiry), Vec<Violation>> {
    let question = Question::parse(members)?;
    let fault = |reason: &str, expected: String, found: &Value| {
        vec![Violation::of("fallback_value", reason, expected, found)]
    };
    let asked = Payload::checked(members).map_err(|unfit| {
        let found = Value::from(unfit.found());
        vec![Violation::of(
            "question",
            unfit.reason(),
            unfit.expected(),
            &found,
        )]
    })?;
    if asked.as_str().len() > limits::QUESTION_BYTES_MAX {
        let found = Value::from(asked.as_str().len());
        let expected = format!("at most {} bytes", limits::QUESTION_BYTES_MAX);
        return Err(vec![Violation::of(
            "question",
            "Too large",
            expected,
            &found,
        )]);
    }
    let result = match &question.fallback {
        Fallback::Fail => return Ok((asked, question, OnExpiry::Fail)),
        Fallback::Continue(value)
            if on_answer == OnAnswer::Continue || on_answer.declines(value) =>
        {
            let answer = answer_of(value.clone());
            return Ok((asked, question, OnExpiry::Continue { answer }));
        }
        Fallback::Continue(value) => question.expects.result(value, None),
        Fallback::Complete(result) => result.clone(),
    };
    if let Some(Err(broken)) = outputs.map(|outputs| outputs.check(&result)) {
        let (reason, found) = (broken.message(), Value::Object(result));
        return Err(fault(&reason, "what the task declares".to_owned(), &found));
    }
    let result = Payload::from_map(&result);
    Ok((asked, question, OnExpiry::Complete { result }))
}

/// Whether a value can be an answer to anything: no null, no array, no empty text.
#[must_use]
pub fn is_answer(value: &Value) -> bool {
    match value {
        Value::Null | Value::Array(_) => false,
        Value::String(text) => !text.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => true,
    }
}

/// An answer as it is stored: an object with `value`.
#[must_use]
pub fn answer_of(value: Value) -> Payload {
    let mut answer = Map::new();
    answer.insert("value".to_owned(), value);
    Payload::from_map(&answer)
}

/// What was answered, of a stored answer; null for what is none.
#[must_use]
pub fn value_of(answer: &Payload) -> Value {
    answer.to_map().remove("value").unwrap_or_default()
}

impl Expected {
    /// What is an answer to a question that was asked, whatever is refused of new ones since; `None` for what no task
    /// has asked. Cost: as for [`Question::parse`].
    #[must_use]
    pub fn of(stored: &Payload) -> Option<Self> {
        stored::read(&stored.to_map())
    }

    /// Checks an answer. Cost: O(size of the answer), for a form that of [`Type::mismatches`].
    ///
    /// # Errors
    /// [`AnswerFault`].
    pub fn check(&self, answer: &Value) -> Result<(), AnswerFault> {
        match (self, answer) {
            (Self::Confirm, Value::Bool(_)) => Ok(()),
            (Self::Confirm, _) => Err(AnswerFault::NotA("true or false")),
            (Self::Text, Value::String(text)) if !text.trim().is_empty() => Ok(()),
            (Self::Text, _) => Err(AnswerFault::NotA("a text that is not empty")),
            (Self::Choice(choices), _) if choices.iter().any(|c| equal(&c.value, answer)) => Ok(()),
            (Self::Choice(choices), _) => {
                let valid = choices.iter().map(|choice| choice.value.clone()).collect();
                Err(AnswerFault::NotAChoice { valid })
            }
            (Self::Form(form), Value::Object(_)) => {
                let mismatches = form.mismatches(answer);
                match mismatches.is_empty() {
                    true => Ok(()),
                    false => Err(AnswerFault::Form(mismatches)),
                }
            }
            (Self::Form(_), _) => Err(AnswerFault::NotA("an object")),
        }
    }

    /// What people read of a value that was chosen.
    #[must_use]
    pub fn label_of(&self, answer: &Value) -> Option<&str> {
        match self {
            Self::Choice(choices) => {
                let chosen = choices.iter().find(|choice| equal(&choice.value, answer))?;
                chosen.label.as_deref()
            }
            Self::Confirm | Self::Text | Self::Form(_) => None,
        }
    }

    /// The result of a task that completes with an answer: `value`, `responded_by` (null when nobody answered),
    /// `approved` of a yes or no, `choice_label` of a choice that has one.
    #[must_use]
    pub fn result(&self, answer: &Value, responded_by: Option<&str>) -> Map<String, Value> {
        let mut result = Map::new();
        if let (Self::Confirm, Value::Bool(approved)) = (self, answer) {
            result.insert("approved".to_owned(), (*approved).into());
        }
        if let Some(label) = self.label_of(answer) {
            result.insert("choice_label".to_owned(), label.into());
        }
        result.insert("responded_by".to_owned(), responded_by.into());
        result.insert("value".to_owned(), answer.clone());
        result
    }
}

impl AnswerFault {
    /// What would be accepted.
    #[must_use]
    pub fn expected(&self) -> String {
        match self {
            Self::NotAChoice { valid } => {
                let shown = valid.iter().take(limits::SUGGESTED_CHOICES_MAX);
                let shown: Vec<String> = shown.map(Value::to_string).collect();
                format!("one of: {}", shown.join(", "))
            }
            Self::NotA(kind) => (*kind).to_owned(),
            Self::Form(mismatches) => {
                let first = mismatches.first();
                first.map_or_else(
                    || "an object of the form's type".to_owned(),
                    |first| format!("{} at `{}`", first.expected, first.pointer),
                )
            }
        }
    }
}
