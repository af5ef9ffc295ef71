//! The caller's words for the tasks of a call: no answer names an id that the caller has never seen.

use super::ResolvedTasks;
use crate::TaskId;
use crate::flow::Rejection;
use hashbrown::HashMap;
use serde_json::{Map, Value};

/// What the caller calls the tasks of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Words {
    aliases: Vec<(String, TaskId)>,
    shared_names: Vec<(String, TaskId)>,
}

impl ResolvedTasks {
    /// What the caller calls the tasks.
    #[must_use]
    pub fn words(&self) -> Words {
        Words {
            aliases: self.aliases.clone(),
            shared_names: self.shared_names.clone(),
        }
    }
}

impl Words {
    /// The id of each alias, for the answer to a call that succeeds.
    #[must_use]
    pub fn task_ids(&self) -> Map<String, Value> {
        let ids = self.aliases.iter();
        ids.map(|(alias, id)| (alias.clone(), Value::String(id.to_string())))
            .collect()
    }

    /// The same refusal with the caller's words in place of the ids that were made for the call,
    /// which are stored nowhere. Cost: O(tasks of the call + texts of the refusal).
    #[must_use]
    pub fn retell(&self, mut rejection: Rejection) -> Rejection {
        let all = self.aliases.iter().chain(&self.shared_names);
        let words: HashMap<TaskId, &str> = all.map(|(word, id)| (*id, word.as_str())).collect();
        for violation in &mut rejection.violations {
            retell_value(&words, &mut violation.actual);
            retell_text(&words, &mut violation.reason);
            retell_text(&words, &mut violation.expected);
        }
        for detail in rejection.details.values_mut() {
            if let Value::Array(items) = detail {
                items.iter_mut().for_each(|v| retell_value(&words, v));
            } else {
                retell_value(&words, detail);
            }
        }
        rejection
    }
}

fn retell_value(words: &HashMap<TaskId, &str>, value: &mut Value) {
    if let Value::String(text) = value
        && let Some(word) = word_for(words, text)
    {
        word.clone_into(text);
    }
}

/// Replaces ids between backticks, where literals stand.
fn retell_text(words: &HashMap<TaskId, &str>, text: &mut String) {
    let parts: Vec<&str> = text.split('`').collect();
    let told: Vec<&str> = parts
        .iter()
        .map(|part| word_for(words, part).unwrap_or(part))
        .collect();
    if told != parts {
        *text = told.join("`");
    }
}

fn word_for<'w>(words: &HashMap<TaskId, &'w str>, text: &str) -> Option<&'w str> {
    TaskId::parse(text)
        .ok()
        .and_then(|id| words.get(&id).copied())
}
