//! Reasons why a ready task has no slot.

use super::{Said, Speaker, counted, said};
use crate::application::api::{Ahead, SlotHolder};
use serde_json::{Value, json};

impl Speaker<'_> {
    /// Who holds the slots of its executor, and who is before it.
    pub(super) fn slot(&self) -> Said {
        let method = self.method();
        let Some(line) = self.queue else {
            return said("waits_for_slot", "starts next".to_owned(), json!({}));
        };
        let ahead = line.place.ahead_in_flow;
        let message = if line.has_free_slot() && ahead == 0 && line.flows_ahead == Ahead::NONE {
            format!("is ready, and a slot of `{method}` is free: it starts next")
        } else {
            format!(
                "waits for a slot of `{method}`: {} of {} are taken, {} of its flow and {} come first{}",
                line.running
                    .map_or_else(|| "some".to_owned(), |running| running.to_string()),
                line.limit,
                counted(ahead, "task", "tasks"),
                match line.flows_ahead {
                    Ahead::Counted { count, more: true } =>
                        format!("more than {count} other flows"),
                    Ahead::Counted { count, more: false } =>
                        counted(count, "other flow", "other flows"),
                    Ahead::Few => "a few other flows".to_owned(),
                    Ahead::Many => "many other flows".to_owned(),
                },
                if line.fair_share {
                    "; users share it fairly, so that is not the order of age"
                } else {
                    ""
                },
            )
        };
        let mut said = said(
            "waits_for_slot",
            message,
            json!({"executor": method, "limit": line.limit,
                "holders": line.holders.iter().map(holder).collect::<Vec<_>>(),
                "priority": line.place.priority, "ready_since": line.place.since,
                "ahead_in_flow": ahead}),
        );
        let mut add = |name: &str, value: Value| said.details.insert(name.to_owned(), value);
        if let Some(running) = line.running {
            add("running", json!(running));
            add(
                "holders_more",
                json!(running.saturating_sub(line.holders.len())),
            );
        }
        match line.flows_ahead {
            Ahead::Counted { count, more } => {
                add("flows_ahead", json!(count));
                add("more_flows_ahead", json!(more))
            }
            Ahead::Few => add("others_ahead", json!("few")),
            Ahead::Many => add("others_ahead", json!("many")),
        };
        if line.fair_share {
            add("fair_share", json!(true));
        }
        said
    }
}

fn holder(holder: &SlotHolder) -> Value {
    let mut said = json!({"task_id": holder.task, "attempt": holder.attempt});
    if let Some(root) = holder.root {
        said["root_task_id"] = json!(root);
    }
    if let Some(name) = &holder.name {
        said["name"] = json!(name);
    }
    said
}
