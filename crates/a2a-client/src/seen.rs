//! A task as far as its stream has described it.
//!
//! A stream should begin with the task. Those that agents send for a later message of a task often begin with an
//! update: then the task is what its updates tell, and is read as a whole before it is a result ([`Seen::is_whole`]).

use crate::Error;
use taskledger_a2a::{Artifact, Message, Part, StreamResponse, Task, TaskState, TaskStatus, Wire};

/// Bytes of a task, with everything that it has made.
pub const TASK_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Artifacts that are told one by one: each is looked up among those before.
const ARTIFACTS_MAX: usize = 10_000;

/// The state of a task, as a stream has described it so far.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    task: Option<Task>,
    /// The id of the task that a message continues: updates of another one are none of this stream.
    expected: Option<String>,
    /// The agent has sent the task itself, not updates alone.
    is_whole: bool,
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

    /// Nothing yet, of the task that a message continues.
    #[must_use]
    pub fn expecting(id: Option<&str>) -> Self {
        Self {
            expected: id.map(str::to_owned),
            ..Self::default()
        }
    }

    /// The task that an item begins if the stream has not sent it: what the update names, without its content.
    #[must_use]
    pub fn begun_by(&self, item: &StreamResponse) -> Option<Task> {
        if self.task.is_some() {
            return None;
        }
        let (id, context_id, state) = match item {
            StreamResponse::StatusUpdate(it) => (&it.task_id, &it.context_id, it.status.state),
            StreamResponse::ArtifactUpdate(it) => (&it.task_id, &it.context_id, TaskState::Working),
            StreamResponse::Task(_) | StreamResponse::Message(_) => return None,
        };
        Some(Task {
            id: id.clone(),
            context_id: Some(context_id.clone()),
            status: TaskStatus {
                state,
                message: None,
                timestamp: None,
            },
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: None,
        })
    }

    /// Whether the agent has sent the task itself, so that nothing of earlier messages is missing.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.is_whole
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
    /// [`Error`]: it is of another task, or is too much.
    pub fn take(&mut self, item: StreamResponse) -> Result<Option<Message>, Error> {
        if let Some(task) = self.begun_by(&item) {
            if self.expected.as_ref().is_some_and(|it| *it != task.id) {
                return Err(of_another());
            }
            self.task = Some(task);
        }
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
            Some(_) | None => Err(of_another()),
        }
    }

    fn replace(&mut self, task: Task) -> Result<(), Error> {
        self.artifact_bytes = task.artifacts.iter().map(bytes_of).collect();
        self.bytes = task.to_json().to_string().len();
        self.task = Some(task);
        self.is_whole = true;
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
                // An update that only says that it is the last one has an empty text: one part is required.
                let parts = artifact.parts.into_iter();
                let added = parts.filter(|it| *it != Part::text(""));
                task.artifacts[at].parts.extend(added);
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
    fn updates_of_another_task_are_refused() {
        let other = json!({"statusUpdate": {"taskId": "u", "contextId": "c",
            "status": {"state": "TASK_STATE_COMPLETED"}}});
        assert!(begun().take(item(other.clone())).is_err());
        assert!(Seen::expecting(Some("t")).take(item(other)).is_err());
    }

    #[test]
    fn a_stream_may_begin_with_an_update_and_the_task_is_not_whole_then() {
        let status = json!({"statusUpdate": {"taskId": "t", "contextId": "c",
            "status": {"state": "TASK_STATE_WORKING"}}});
        for first in [item(status), chunk("1", false), chunk("1", true)] {
            let mut seen = Seen::expecting(Some("t"));
            assert_eq!(seen.take(first), Ok(None));
            seen.take(chunk("2", true)).expect("a chunk");
            let task = seen.task().expect("a task");
            assert_eq!((&*task.id, task.status.state), ("t", TaskState::Working));
            assert_eq!(task.context_id.as_deref(), Some("c"));
            assert!(!seen.is_whole());
        }
        assert!(begun().is_whole());
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
