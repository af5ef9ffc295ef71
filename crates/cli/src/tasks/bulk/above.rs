//! Finds the tasks of a selection that stand above others of it: a change of those takes the ones below along.

use super::answered;
use crate::output::member;
use crate::{Api, ApiError, CliError};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use taskledger_clock::SharedClock;

/// The selected tasks above each selected task that has any, the nearest first.
#[derive(Debug, Default)]
pub(super) struct Above(HashMap<String, Vec<String>>);

impl Above {
    /// Finds them. Tasks that lie between selected ones are asked for. Cost: a call for each of those, in flows of
    /// which several tasks are selected.
    ///
    /// # Errors
    /// The server cannot be reached, or wants other credentials.
    pub(super) async fn find(
        tasks: &[Value],
        api: &dyn Api,
        clock: &SharedClock,
    ) -> Result<Self, CliError> {
        let selected: HashSet<String> = tasks.iter().map(|task| member(task, "id")).collect();
        let mut in_flow: HashMap<String, usize> = HashMap::new();
        for task in tasks {
            *in_flow.entry(member(task, "root_task_id")).or_default() += 1;
        }
        let known = tasks.iter();
        let known = known.map(|task| (member(task, "id"), member(task, "parent_id")));
        let mut parents: HashMap<String, String> = known.collect();
        let mut found = HashMap::new();
        for task in tasks {
            let is_alone = in_flow.get(&member(task, "root_task_id")) == Some(&1);
            let (mut above, mut at) = (Vec::new(), member(task, "parent_id"));
            // The tree may change meanwhile: no task is passed twice.
            let mut passed = HashSet::from([member(task, "id")]);
            while !is_alone && !at.is_empty() && passed.insert(at.clone()) {
                if selected.contains(&at) {
                    above.push(at.clone());
                }
                let parent = match parents.get(&at) {
                    Some(parent) => parent.clone(),
                    None => parent_of(&at, api, clock).await?,
                };
                parents.insert(at, parent.clone());
                at = parent;
            }
            if !above.is_empty() {
                found.insert(member(task, "id"), above);
            }
        }
        Ok(Self(found))
    }

    /// How many selected tasks stand above this one.
    pub(super) fn count(&self, id: &str) -> usize {
        self.0.get(id).map_or(0, Vec::len)
    }

    /// Whether one of these stands above it.
    pub(super) fn has_one_of(&self, id: &str, those: &HashSet<String>) -> bool {
        let above = self.0.get(id).into_iter().flatten();
        above.into_iter().any(|above| those.contains(above))
    }
}

/// Empty: it has none, or is not there any more.
async fn parent_of(id: &str, api: &dyn Api, clock: &SharedClock) -> Result<String, CliError> {
    let asked = json!({"task_id": id});
    match answered(api, ("tasks.get", &asked, None), clock).await {
        Ok(task) => Ok(member(&task, "parent_id")),
        Err(ApiError::Refused { .. }) => Ok(String::new()),
        Err(error) => Err(error.into()),
    }
}
