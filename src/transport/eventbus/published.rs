//! The part of a published message that its task keeps: the member `eventbus` of its `params`. From it and the task,
//! the message is made again as it was sent.

use super::patterns;
use super::values::{priority_for, priority_of, struct_of, time_of, timestamp_of};
use crate::application::api::views::TaskRow;
use prost_types::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use taskledger_domain::Payload;
use taskledger_domain::task::Priority;
use taskledger_eventbus::TaskMessage;

/// The member of `params`.
pub(super) use crate::application::api::broker::MEMBER;
/// Who published a task that came through another door.
pub(super) const NOBODY: &str = "taskledger";
/// The key of `metadata` that says which attempt this is; absent for the first.
pub(super) const ATTEMPT: &str = "taskledger.attempt";

/// What a task keeps of its message. Read from and written to `params`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Published {
    /// The id that its requester gave.
    pub(super) task_id: String,
    /// Who wants the result.
    pub(super) requester: String,
    /// RFC 3339.
    pub(super) created_at: String,
    /// As it was given; absent if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) deadline: Option<String>,
    /// As it was given; absent if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Option<Map<String, Value>>,
    /// As it was given.
    #[serde(default)]
    pub(super) priority: i32,
    /// Whether parameters were given, even if there were none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) has_parameters: bool,
}

impl Published {
    /// What a task says of it; `None`: it came through another door.
    pub(super) fn of(row: &TaskRow) -> Option<Self> {
        let params = row.params.as_ref().map(Payload::to_map)?;
        Self::deserialize(params.get(MEMBER)?).ok()
    }
}

/// What agents call a task.
pub(super) fn external_id(row: &TaskRow) -> Arc<str> {
    match Published::of(row) {
        Some(published) => published.task_id.into(),
        None => row.id.to_string().into(),
    }
}

/// The message of a task whose attempt works on `input`.
pub(super) fn message(row: &TaskRow, input: &Payload, attempt: u32) -> TaskMessage {
    let method = row.method.as_deref().unwrap_or_default();
    let published = Published::of(row);
    let of = published.as_ref();
    let input = input.to_map();
    let has_parameters = !input.is_empty() || of.is_some_and(|it| it.has_parameters);
    let mut metadata = of.and_then(|it| it.metadata.clone());
    if attempt > 1 {
        let all = metadata.get_or_insert_default();
        all.insert(ATTEMPT.to_owned(), Value::from(attempt));
    }
    let deadline = of.and_then(|it| it.deadline.as_deref());
    let deadline = match deadline.and_then(stamp) {
        Some(given) => Some(given),
        None => row.deadline.map(|at| timestamp_of(at.0)),
    };
    TaskMessage {
        task_id: of.map_or_else(|| row.id.to_string(), |it| it.task_id.clone()),
        task_type: patterns::type_of(method).to_owned(),
        parameters: has_parameters.then(|| struct_of(input)),
        requester_agent_id: of.map_or_else(|| NOBODY.to_owned(), |it| it.requester.clone()),
        responder_agent_id: patterns::responder_of(method)
            .unwrap_or_default()
            .to_owned(),
        deadline,
        priority: priority(of, row.priority),
        metadata: metadata.map(struct_of),
        created_at: Some(match of.and_then(|it| stamp(&it.created_at)) {
            Some(given) => given,
            None => timestamp_of(row.created_at.0),
        }),
    }
}

/// As it was given, unless the task has another one by now.
fn priority(of: Option<&Published>, now: Priority) -> i32 {
    let given = of.map(|it| it.priority);
    let same = given.filter(|it| priority_of(*it).is_ok_and(|it| it == u8::from(now)));
    same.unwrap_or_else(|| priority_for(now).into())
}

/// A time of the wire as it is kept.
///
/// # Errors
/// `INVALID_ARGUMENT`.
pub(super) fn kept_time(given: Timestamp, field: &str) -> Result<String, tonic::Status> {
    let time = time_of(given, field)?;
    Ok(time.to_rfc3339_opts(chrono::SecondsFormat::Nanos, true))
}

/// A time that is kept, for the wire; `None`: it is none.
pub(super) fn stamp(text: &str) -> Option<Timestamp> {
    let time = chrono::DateTime::parse_from_rfc3339(text).ok()?;
    Some(Timestamp {
        seconds: time.timestamp(),
        nanos: i32::try_from(time.timestamp_subsec_nanos()).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_kept_to_the_nanosecond() {
        let given = Timestamp {
            seconds: 1_767_225_600,
            nanos: 123_456_789,
        };
        let kept = kept_time(given, "created_at").expect("a time");
        assert_eq!(kept, "2026-01-01T00:00:00.123456789Z");
        assert_eq!(stamp(&kept), Some(given));
    }
}
