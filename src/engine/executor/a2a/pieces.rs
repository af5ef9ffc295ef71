//! Passes on the artifacts of a remote agent as parts of the task's output.

use super::super::{Job, Output};
use crate::engine::secrets::Scrubber;
use serde_json::{Map, Value};
use std::collections::HashMap;
use taskledger_a2a::event::TaskArtifactUpdateEvent;
use taskledger_a2a::{Content, Part, Task, TaskState, Wire};
use taskledger_domain::Payload;
use taskledger_domain::flow::OutputPart;

/// The member that says in which parts an object is shown.
const PARTS: &str = "a2a_parts";

/// Passes on what an agent makes piece by piece: the first artifact that comes so. Others, those that come whole, and
/// what replaces something are left to the result of the task.
pub(super) struct Pieces {
    output: Output,
    scrubber: Scrubber,
    /// The artifact that is passed on.
    followed: Option<String>,
    /// Parts of each artifact that are known.
    seen: HashMap<String, usize>,
    /// What was passed on is not what the agent has any more.
    is_replaced: bool,
}

impl Pieces {
    pub(super) fn of(job: &Job) -> Self {
        Self {
            output: job.output.clone(),
            scrubber: job.secrets.scrubber().clone(),
            followed: None,
            seen: HashMap::new(),
            is_replaced: false,
        }
    }

    /// Takes an update of the agent's stream.
    pub(super) fn updated(&mut self, update: &TaskArtifactUpdateEvent) {
        let artifact = &update.artifact;
        let id = &artifact.artifact_id;
        let seen = self.seen.entry(id.clone()).or_default();
        let replaces = !update.append && *seen > 0;
        let is_piece = update.append || !update.last_chunk;
        *seen = match update.append {
            true => *seen + artifact.parts.len(),
            false => artifact.parts.len(),
        };
        if replaces && self.followed.as_ref() == Some(id) {
            self.is_replaced = true;
        } else if is_piece && !replaces {
            self.pass_on(id, &artifact.parts);
        }
    }

    /// Takes the agent's task as it stands while it works.
    pub(super) fn stands(&mut self, task: &Task) {
        if task.status.state != TaskState::Working {
            return;
        }
        for artifact in &task.artifacts {
            let id = &artifact.artifact_id;
            let seen = self.seen.entry(id.clone()).or_default();
            let fresh = artifact.parts.get(*seen..).unwrap_or_default();
            *seen = artifact.parts.len().max(*seen);
            if !fresh.is_empty() {
                self.pass_on(id, fresh);
            }
        }
    }

    fn pass_on(&mut self, artifact: &str, parts: &[Part]) {
        let followed = self.followed.get_or_insert_with(|| artifact.to_owned());
        if self.is_replaced || followed != artifact {
            return;
        }
        for part in parts {
            let part = match &part.content {
                Content::Text(text) => Ok(OutputPart::Text(text.clone())),
                Content::Raw(_) | Content::Url(_) | Content::Data(_) => {
                    let part = self.scrubber.value(part.to_json());
                    let parts = Value::Array(vec![part]);
                    let members = Map::from_iter([(PARTS.to_owned(), parts)]);
                    Payload::checked(&members).map(OutputPart::Data)
                }
            };
            // Nothing follows a part that tasks cannot hold.
            match part {
                Ok(part) => self.output.append(part),
                Err(_) => self.output.close(),
            }
        }
    }
}
