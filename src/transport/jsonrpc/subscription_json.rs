//! The results of `tasks.subscribe` and `tasks.resubscribe`.

use super::task_json::{RunJson, TaskJson};
use crate::application::watching::Beginning;
use crate::subscription::stream::Reset;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// Where a subscription begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct BeginningJson<'a>(pub(super) &'a Beginning);

impl Serialize for BeginningJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let begun = self.0;
        let mut map = serializer.serialize_map(None)?;
        if let Some(task) = &begun.task {
            map.serialize_entry("task", &TaskJson(task))?;
        }
        map.serialize_entry("root_task_id", &begun.root_task_id)?;
        if let Some(run) = begun.task.as_ref().and_then(|task| task.run.as_ref()) {
            map.serialize_entry("run", &RunJson(run))?;
        }
        if let Some(resumed) = begun.resumed {
            map.serialize_entry("resumed", &resumed)?;
        }
        if let Some(reason) = begun.reset.map(Reset::as_str) {
            map.serialize_entry("reason", reason)?;
        }
        map.serialize_entry("cursor", &begun.cursor.to_string())?;
        if begun.is_final {
            map.serialize_entry("final", &true)?;
        }
        map.end()
    }
}
