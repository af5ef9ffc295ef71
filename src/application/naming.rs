//! The names that a caller uses for the tasks of a call, and where in the call they stand. It travels beside a refusal,
//! so that no answer names an id that was made for the call: the caller has never seen it.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use taskledger_domain::flow::CallTask;
use taskledger_domain::task::call::ResolvedTasks;
use taskledger_domain::{PathSegment, TaskId};

/// The id of each task under the name by which the caller knows it. Shared: a reply may be kept and sent.
pub type TaskIds = Arc<[(String, TaskId)]>;

/// The tasks of a call in the terms of its caller. Empty for calls that write none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallNames {
    /// Where each task stands in the parameters, in the order written.
    paths: Vec<Vec<PathSegment>>,
    /// Their ids in the same order; empty before they have ids.
    ids: Vec<TaskId>,
    /// The id, alias or name by which the caller can refer to a task.
    aliases: TaskIds,
    /// Names of the others, which are no aliases because several tasks have them.
    shared_names: Vec<(String, TaskId)>,
    /// The stored task that the call changes.
    updated: Option<TaskId>,
}

impl CallNames {
    /// Of tasks that have no ids yet, by where they stand.
    #[must_use]
    pub fn written_at(paths: Vec<Vec<PathSegment>>) -> Self {
        Self {
            paths,
            ..Self::default()
        }
    }

    /// The same tasks, now that they have ids. Takes the ids and names out of `resolved`.
    #[must_use]
    pub fn resolved(self, resolved: &mut ResolvedTasks) -> Self {
        Self {
            ids: std::mem::take(&mut resolved.ids),
            aliases: Arc::from(std::mem::take(&mut resolved.aliases)),
            shared_names: std::mem::take(&mut resolved.shared_names),
            ..self
        }
    }

    /// Of a call that changes a stored task.
    #[must_use]
    pub fn of_update(task: TaskId) -> Self {
        Self {
            updated: Some(task),
            ..Self::default()
        }
    }

    /// The id of each alias, for the answer to a call that succeeds.
    #[must_use]
    pub fn task_ids(&self) -> TaskIds {
        self.aliases.clone()
    }

    /// Ready to be asked for many tasks. Cost: O(tasks).
    #[must_use]
    pub fn index(&self) -> Index<'_> {
        let words = self.aliases.iter().chain(&self.shared_names);
        Index {
            of: self,
            words: words.map(|(word, id)| (*id, word.as_str())).collect(),
            places: self
                .ids
                .iter()
                .enumerate()
                .map(|(i, id)| (*id, i))
                .collect(),
        }
    }
}

/// [`CallNames`], to be asked by id.
#[derive(Debug)]
pub struct Index<'n> {
    of: &'n CallNames,
    words: HashMap<TaskId, &'n str>,
    places: HashMap<TaskId, usize>,
}

impl Index<'_> {
    /// The task as the caller knows it: what it calls a task of the call, else the id.
    #[must_use]
    pub fn word(&self, task: TaskId) -> String {
        let word = self.words.get(&task);
        word.map_or_else(|| task.to_string(), |word| (*word).to_owned())
    }

    /// The same for a task that may have no id yet; `None`: it has none.
    #[must_use]
    pub fn word_of(&self, task: CallTask) -> Option<String> {
        let id = match task {
            CallTask::Index(i) => self.of.ids.get(i).copied(),
            CallTask::Id(id) => Some(id),
        };
        id.map(|id| self.word(id))
    }

    /// Where the call writes the task; `None` when it does not.
    #[must_use]
    pub fn path(&self, task: CallTask) -> Option<&[PathSegment]> {
        let place = match task {
            CallTask::Index(i) => Some(i),
            CallTask::Id(id) => self.places.get(&id).copied(),
        };
        place.and_then(|i| self.of.paths.get(i)).map(Vec::as_slice)
    }

    /// Whether the task is the stored one that the call changes.
    #[must_use]
    pub fn is_updated(&self, task: CallTask) -> bool {
        match task {
            CallTask::Index(_) => false,
            CallTask::Id(id) => self.of.updated == Some(id),
        }
    }
}
