//! The results of calls about questions to people.

use super::super::text::raw;
use crate::application::api::work::{AnsweredBefore, Responded, Suspended};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use taskledger_domain::task::Status;
use taskledger_domain::{Payload, SuspensionId, TaskId, Timestamp};

/// The result of `tasks.suspend`.
pub(super) fn suspended(suspended: &Suspended) -> Box<RawValue> {
    #[derive(Serialize)]
    struct Result {
        task_id: TaskId,
        suspension_id: SuspensionId,
        expires_at: Option<Timestamp>,
    }
    raw(&Result {
        task_id: suspended.task,
        suspension_id: suspended.suspension,
        expires_at: suspended.expires_at,
    })
}

/// The result of `tasks.respond`.
pub(super) fn responded(responded: &Responded) -> Box<RawValue> {
    #[derive(Serialize)]
    struct Result<'a> {
        task_id: TaskId,
        suspension_id: SuspensionId,
        resolution: &'static str,
        value: Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        choice_label: Option<&'a str>,
        responded_by: &'a str,
        status: Status,
    }
    raw(&Result {
        task_id: responded.task,
        suspension_id: responded.suspension,
        resolution: "responded",
        value: value(&responded.answer),
        choice_label: responded.choice_label.as_deref(),
        responded_by: &responded.responded_by,
        status: responded.status,
    })
}

/// What was asked and answered before an attempt, as its worker gets it.
pub(super) struct AnswersJson<'a>(pub(super) &'a [AnsweredBefore]);

struct AnswerJson<'a>(&'a AnsweredBefore);

impl Serialize for AnswersJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(AnswerJson))
    }
}

impl Serialize for AnswerJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let answered = self.0;
        let resolution = match answered.responded_by {
            Some(_) => "responded",
            None => "expired",
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("suspension_id", &answered.suspension)?;
        map.serialize_entry("question", &answered.question)?;
        map.serialize_entry("value", &value(&answered.answer))?;
        map.serialize_entry("resolution", resolution)?;
        map.serialize_entry("responded_by", &answered.responded_by)?;
        map.serialize_entry("answered_at", &answered.at)?;
        map.end()
    }
}

fn value(answer: &Payload) -> Value {
    answer.to_map().remove("value").unwrap_or_default()
}
