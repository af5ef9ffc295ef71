//! The answer that precedes the events of a subscription.

use crate::application::api::Subscribed;
use crate::transport::jsonrpc::task_json::{RunJson, TaskJson};
use serde::Serialize;
use serde_json::value::RawValue;
use taskledger_domain::TaskId;

#[derive(Serialize)]
struct Result<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TaskJson<'a>>,
    root_task_id: TaskId,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resumed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    cursor: String,
    #[serde(rename = "final", skip_serializing_if = "std::ops::Not::not")]
    is_final: bool,
}

/// The result of `tasks.subscribe` and `tasks.resubscribe`.
pub(in crate::transport::jsonrpc) fn subscribed(subscribed: &Subscribed) -> Box<RawValue> {
    super::raw(&Result {
        task: subscribed.task.as_ref().map(TaskJson),
        root_task_id: subscribed.root,
        run: subscribed.run.as_ref().map(RunJson),
        resumed: subscribed.resumed,
        reason: subscribed.reset.map(|reset| reset.as_str()),
        cursor: subscribed.cursor.to_string(),
        is_final: subscribed.is_final,
    })
}
