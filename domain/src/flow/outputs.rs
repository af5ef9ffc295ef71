//! The size of the output that running attempts have reported so far. The parts are in the log.

use super::event::{OutputPart, TaskOutputAppended};
use super::state::Flow;
use crate::TaskId;

impl Flow {
    /// Parts of the output of the latest attempt of a task, if it has not ended. Cost: O(log such tasks).
    #[must_use]
    pub fn parts_of(&self, id: TaskId) -> u32 {
        let appended = self.live(id).and_then(|i| self.outputs.get(&i));
        appended.map_or(0, |it| it.parts)
    }

    pub(super) fn appended(&mut self, e: &TaskOutputAppended) {
        let i = self.ordinal(e.task_id);
        let bytes = u32::try_from(OutputPart::bytes(&e.part)).unwrap_or(u32::MAX);
        let there = self.outputs.entry(i).or_default();
        there.parts = e.number;
        there.bytes = there.bytes.saturating_add(bytes);
    }

    /// Its attempt has ended, or begins.
    pub(super) fn forget_output(&mut self, i: u32) {
        self.outputs.remove(&i);
    }
}
