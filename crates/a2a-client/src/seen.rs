//! A task as far as its stream has described it.

use crate::Error;
use taskledger_a2a::{Artifact, Message, StreamResponse, Task, Wire};

/// Bytes of a task, with everything that it has made.
pub const TASK_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Artifacts that are told one by one: each is looked up among those before.
const ARTIFACTS_MAX: usize = 10_000;

/// The state of a task, as a stream has described it so far.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    task: Option<Task>,
    bytes: usize,
    artifact_bytes: Vec<usize>,
}

impl Seen {
    /// The task as it was read.
    ///
    /// # Errors
    /// [`Error::TooLarge`].
    pub fn of(task: Task) -> Result<Self, Error> {
        let mut seen = Self::default();
        seen.replace(task)?;
        Ok(seen)
    }

    /// The task as far as the stream has told it.
    #[must_use]
    pub const fn task(&self) -> Option<&Task> {
        self.task.as_ref()
    }

    /// The task, at the end.
    #[must_use]
    pub fn into_task(self) -> Option<Task> {
        self.task
    }

    /// Takes what a stream tells; gives a message that is an answer without a task.
    ///
    /// # Errors
    /// [`Error`]: it is of another task, comes without one, or is too much.
    pub fn take(&mut self, item: StreamResponse) -> Result<Option<Message>, Error> {
        match item {
            StreamResponse::Message(message) => return Ok(Some(message)),
            StreamResponse::Task(task) => {
                if self.task.as_ref().is_some_and(|it| it.id != task.id) {
                    return Err(of_another());
                }
                self.replace(task)?;
            }
            StreamResponse::StatusUpdate(update) => {
                let task = self.known(&update.task_id)?;
                // What tells of progress alone does not take the words of a status away.
                let is_same = task.status.state == update.status.state;
                let words = task.status.message.take().filter(|_| is_same);
                task.status = update.status;
                if task.status.message.is_none() {
                    task.status.message = words;
                }
            }
            StreamResponse::ArtifactUpdate(update) => {
                self.known(&update.task_id)?;
                self.add(update.artifact, update.append)?;
            }
        }
        Ok(None)
    }

    fn known(&mut self, id: &str) -> Result<&mut Task, Error> {
        match &mut self.task {
            Some(task) if task.id == id => Ok(task),
            Some(_) => Err(of_another()),
            None => Err(Error::Invalid(
                "the stream of the agent begins with an update, expected the task".to_owned(),
            )),
        }
    }

    fn replace(&mut self, task: Task) -> Result<(), Error> {
        self.artifact_bytes = task.artifacts.iter().map(bytes_of).collect();
        self.bytes = task.to_json().to_string().len();
        self.task = Some(task);
        self.check()
    }

    fn add(&mut self, artifact: Artifact, append: bool) -> Result<(), Error> {
        let bytes = bytes_of(&artifact);
        let Some(task) = &mut self.task else {
            return Ok(());
        };
        let mut known = task.artifacts.iter();
        let at = known.position(|it| it.artifact_id == artifact.artifact_id);
        self.bytes += bytes;
        match at {
            Some(at) if append => {
                self.artifact_bytes[at] += bytes;
                task.artifacts[at].parts.extend(artifact.parts);
            }
            Some(at) => {
                task.artifacts[at] = artifact;
                let before = std::mem::replace(&mut self.artifact_bytes[at], bytes);
                self.bytes = self.bytes.saturating_sub(before);
            }
            None if task.artifacts.len() == ARTIFACTS_MAX => {
                let text = format!("the task of the agent has more than {ARTIFACTS_MAX} artifacts");
                return Err(Error::Invalid(text));
            }
            None => {
                task.artifacts.push(artifact);
                self.artifact_bytes.push(bytes);
            }
        }
        self.check()
    }

    const fn check(&self) -> Result<(), Error> {
        match self.bytes > TASK_BYTES_MAX {
            true => Err(Error::TooLarge {
                what: "the task",
                max: TASK_BYTES_MAX,
            }),
            false => Ok(()),
        }
    }
}

fn bytes_of(artifact: &Artifact) -> usize {
    artifact.to_json().to_string().len()
}

fn of_another() -> Error {
    Error::Invalid("the agent tells of another task than the one that was asked for".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use taskledger_a2a::TaskState;

    fn item(value: serde_json::Value) -> StreamResponse {
        StreamResponse::from_json(value).expect("an item")
    }

    fn begun() -> Seen {
        let mut seen = Seen::default();
        let task = json!({"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}});
        seen.take(item(task)).expect("a task");
        seen
    }

    fn chunk(text: &str, append: bool) -> StreamResponse {
        item(
            json!({"artifactUpdate": {"taskId": "t", "contextId": "c", "append": append,
            "artifact": {"artifactId": "a", "parts": [{"text": text}]}}}),
        )
    }

    #[test]
    fn updates_are_folded_in_order() {
        let mut seen = begun();
        for step in [chunk("1", false), chunk("2", true), chunk("3", true)] {
            assert_eq!(seen.take(step), Ok(None));
        }
        let status = json!({"statusUpdate": {"taskId": "t", "contextId": "c",
            "status": {"state": "TASK_STATE_COMPLETED"}}});
        seen.take(item(status)).expect("a status");
        let task = seen.task().expect("a task");
        assert_eq!(task.status.state, TaskState::Completed);
        assert_eq!(task.artifacts[0].parts.len(), 3);
        seen.take(chunk("new", false)).expect("a chunk");
        assert_eq!(seen.task().expect("a task").artifacts[0].parts.len(), 1);
    }

    #[test]
    fn another_task_and_a_beginning_without_one_are_refused() {
        let other = json!({"statusUpdate": {"taskId": "u", "contextId": "c",
            "status": {"state": "TASK_STATE_COMPLETED"}}});
        assert!(begun().take(item(other.clone())).is_err());
        assert!(Seen::default().take(item(other)).is_err());
    }

    #[test]
    fn an_endless_artifact_ends_at_a_limit_and_one_that_is_replaced_does_not() {
        let megabyte = "x".repeat(1024 * 1024);
        let mut seen = begun();
        for _ in 0..20 {
            seen.take(chunk(&megabyte, false)).expect("it is replaced");
        }
        let mut endless = std::iter::repeat_with(|| seen.take(chunk(&megabyte, true)));
        let failed = endless.by_ref().take(20).find_map(Result::err);
        assert!(matches!(failed, Some(Error::TooLarge { .. })), "{failed:?}");
    }
}
