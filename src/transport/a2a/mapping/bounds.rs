//! Limits on the size of answers, and what is left out of larger ones.

use super::left_out::{LEFT_OUT, say_where};
use super::views;
use crate::application::api::runs::RunView;
use serde_json::Value;
use taskledger_a2a::{Task, Wire};

/// Bytes of one answer: clients of gRPC and readers of streams stop at 4 MiB.
const ANSWER_BYTES_MAX: usize = 3_670_016;
/// A run as the only task of an answer.
pub(crate) fn whole(view: RunView) -> Task {
    let mut task = views::task(view);
    if task.to_json().to_string().len() <= ANSWER_BYTES_MAX {
        return task;
    }
    let left_out = task.history.len();
    task.history.clear();
    note_left_out(&mut task, "messagesLeftOut", left_out);
    if task.to_json().to_string().len() > ANSWER_BYTES_MAX {
        let left_out = task.artifacts.len();
        task.artifacts.clear();
        note_left_out(&mut task, LEFT_OUT, left_out);
    }
    task
}

/// Adds to what is counted as left out of a task.
fn note_left_out(task: &mut Task, name: &str, count: usize) {
    if count == 0 {
        return;
    }
    let metadata = task.metadata.get_or_insert_default();
    if name == LEFT_OUT {
        say_where(&task.id, metadata);
    }
    let before = metadata.get(name).and_then(Value::as_u64).unwrap_or(0);
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    metadata.insert(name.to_owned(), before.saturating_add(count).into());
}

/// The tasks, those behind the limit of an answer without what they have made and what was said.
pub(crate) fn within(tasks: impl Iterator<Item = Task>) -> Vec<Task> {
    let mut bytes = 0;
    let shortened = tasks.map(|mut task| {
        let size = task.to_json().to_string().len();
        if bytes + size > ANSWER_BYTES_MAX {
            let left_out = (task.artifacts.len(), task.history.len());
            task.artifacts.clear();
            task.history.clear();
            note_left_out(&mut task, LEFT_OUT, left_out.0);
            note_left_out(&mut task, "messagesLeftOut", left_out.1);
        } else {
            bytes += size;
        }
        task
    });
    shortened.collect()
}
