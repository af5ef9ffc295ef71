//! The port for writing long answers: rows go in, and bytes in the format of one door come out.
//!
//! A tree of 100,000 tasks is never in memory as a whole, neither as views nor as text. So the door gives an
//! encoder with its request, and the application hands it rows piece by piece.

use taskledger_domain::{Position, Timestamp};
use taskledger_projections::TaskView;

/// Writes the tasks of one long answer.
pub trait TreeEncoder: Send + 'static {
    /// Writes the next task. A tree is given depth first, siblings in order of creation: `depth` is 0 for the
    /// root, which comes first and only once, and at most one more than the depth of the task before. A list
    /// is given with depth 0 for each task. Cost: O(size of the task).
    fn task(&mut self, depth: usize, task: &TaskView);

    /// Takes the bytes that were written since the last call.
    fn take(&mut self) -> Vec<u8>;

    /// Ends the answer: the bytes that have not been taken, and what closes it. `as_of` is given for an answer
    /// about the past.
    fn finish(self, as_of: Option<Moment>) -> Vec<u8>;
}

/// The last event of a flow that an answer about the past contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Its place in the log.
    pub position: Position,
    /// When it was decided.
    pub time: Timestamp,
}
