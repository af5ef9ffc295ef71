//! Names of a flow's tasks, for an answer that mentions several; each is looked up once.

use super::App;
use super::error::Error;
use std::collections::HashMap;
use std::sync::Arc;
use taskledger_domain::contract::{Breach, Broken};
use taskledger_domain::task::wiring::split_source;
use taskledger_domain::{FlowId, TaskId};

/// Names that one answer looks up; further tasks are shown by their ids.
const NAMES_MAX: usize = 1_000;

/// The names that an answer needs.
pub(super) struct TaskNames<'a> {
    app: &'a App,
    flow: FlowId,
    known: HashMap<TaskId, Option<Arc<str>>>,
}

impl<'a> TaskNames<'a> {
    pub(super) fn new(app: &'a App, flow: FlowId) -> Self {
        Self {
            app,
            flow,
            known: HashMap::new(),
        }
    }

    /// The name of a task; `None` when it was deleted, is of another flow, or too many were asked for.
    pub(super) async fn of(&mut self, task: TaskId) -> Result<Option<Arc<str>>, Error> {
        if let Some(known) = self.known.get(&task) {
            return Ok(known.clone());
        }
        if self.known.len() >= NAMES_MAX {
            return Ok(None);
        }
        let is_of_flow = self.app.directory.flow_of(task).await? == Some(self.flow);
        let name = match is_of_flow {
            true => self.app.name_of(task).await?,
            false => None,
        };
        self.known.insert(task, name.clone());
        Ok(name)
    }

    /// A stored reference with the name of the task in place of its id.
    pub(super) async fn readable(&mut self, stored: &str) -> Result<String, Error> {
        let Some((task, rest)) = split_source(stored) else {
            return Ok(stored.to_owned());
        };
        Ok(match self.of(task).await? {
            Some(name) => format!("{name}{rest}"),
            None => stored.to_owned(),
        })
    }

    /// What is wrong with a claim of a task, with names.
    pub(super) async fn breach(&mut self, task: TaskId, found: &Broken) -> Result<Breach, Error> {
        let text = |name: Option<Arc<str>>| name.map(|name| name.as_ref().to_owned());
        let phase_name = text(self.of(task).await?);
        let mut broken = found.clone();
        match &mut broken {
            Broken::Inputs {
                unresolvable_refs,
                incomplete,
            } => {
                *unresolvable_refs = self.all_readable(unresolvable_refs).await?;
                for it in incomplete {
                    it.phase_name = text(self.of(it.task_id).await?);
                }
            }
            Broken::Upstream {
                task_id,
                phase_name,
                ..
            } => *phase_name = text(self.of(*task_id).await?),
            Broken::Output(_) => {}
        }
        Ok(Breach { phase_name, broken })
    }

    /// Stored references, as [`Self::readable`].
    pub(super) async fn all_readable(&mut self, stored: &[String]) -> Result<Vec<String>, Error> {
        let mut readable = Vec::with_capacity(stored.len());
        for reference in stored {
            readable.push(self.readable(reference).await?);
        }
        Ok(readable)
    }
}
