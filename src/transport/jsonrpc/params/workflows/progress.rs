//! `workflows.progress`.

use super::super::super::reader::{Parameters, Reader, TASK_ID};
use taskledger_domain::{TaskId, Violation};

/// Which run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// The run as a task, or any other task.
    pub root_task_id: TaskId,
}

impl Parameters for Params {
    fn ask(mut reader: Reader<'_>) -> Result<Self, Vec<Violation>> {
        let about = "The run: `root_task_id` of the answer that created it. Any other task will do: all below it is counted.";
        let root_task_id = reader.required("root_task_id", TASK_ID, about);
        reader.finish(|| {
            Some(Self {
                root_task_id: root_task_id?,
            })
        })
    }
}
