//! Pieces of what an agent makes, passed on as parts of the output of the task.

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

/// Passes on what an agent makes piece by piece. An artifact that comes whole is left to the result of the task.
pub(super) struct Pieces {
    output: Output,
    scrubber: Scrubber,
    /// Parts of each artifact that need not be passed on any more.
    seen: HashMap<String, usize>,
}

impl Pieces {
    pub(super) fn of(job: &Job) -> Self {
        Self {
            output: job.output.clone(),
            scrubber: job.secrets.scrubber().clone(),
            seen: HashMap::new(),
        }
    }

    /// Takes an update of the agent's stream.
    pub(super) fn updated(&mut self, update: &TaskArtifactUpdateEvent) {
        let artifact = &update.artifact;
        let seen = self.seen.entry(artifact.artifact_id.clone()).or_default();
        // What replaces something that was passed on is left to the result, like what comes whole.
        let is_piece = update.append || (*seen == 0 && !update.last_chunk);
        *seen = match update.append {
            true => *seen + artifact.parts.len(),
            false => artifact.parts.len(),
        };
        if is_piece {
            self.pass_on(&artifact.parts);
        }
    }

    /// Takes the agent's task as it stands while it works.
    pub(super) fn stands(&mut self, task: &Task) {
        if task.status.state != TaskState::Working {
            return;
        }
        for artifact in &task.artifacts {
            let seen = self.seen.entry(artifact.artifact_id.clone()).or_default();
            let fresh = artifact.parts.get(*seen..).unwrap_or_default();
            *seen = artifact.parts.len().max(*seen);
            self.pass_on(fresh);
        }
    }

    fn pass_on(&self, parts: &[Part]) {
        for part in parts {
            self.output.append(match &part.content {
                Content::Text(text) => OutputPart::Text(self.scrubber.text(text).into_owned()),
                Content::Raw(_) | Content::Url(_) | Content::Data(_) => {
                    let part = self.scrubber.value(part.to_json());
                    let parts = Value::Array(vec![part]);
                    let members = Map::from_iter([(PARTS.to_owned(), parts)]);
                    OutputPart::Data(Payload::from_map(&members))
                }
            });
        }
    }
}
