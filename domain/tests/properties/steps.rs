//! What may be done to a flow, written with small numbers that the world turns into tasks.

/// A task to create; `parent` and dependencies pick among the tasks that exist, those of the same
/// call included.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) parent: u8,
    /// 0 to 3 a group, 4 to 8 `echo`, 9 `once`, 10 the unknown `ghost`, more `far`, which workers claim.
    pub(crate) kind: u8,
    pub(crate) dependencies: Vec<(u8, bool)>,
    pub(crate) priority: u8,
    /// Times 100 ms from the start.
    pub(crate) deadline: Option<u8>,
    pub(crate) attempts: u8,
    /// Times 100 ms: of three, one `start_at` from the start, one a delay, one both.
    pub(crate) timer: Option<u8>,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Create(Vec<Draft>),
    Execute {
        task: u8,
        unknown: bool,
        wait: u8,
        retry: bool,
    },
    Rename(u8),
    /// No labels for 0.
    Relabel(u8, u8),
    Reprioritize(u8, u8),
    Rewire(u8, Vec<(u8, bool)>),
    Move(u8, u8),
    ChangeUser(u8, u8),
    ChangeKind(u8, u8),
    ChangeDeadline(u8, Option<u8>),
    ChangeTimer(u8, Option<u8>),
    Delete(u8, bool),
    Cancel(u8, bool),
    /// An outcome; true for an attempt number that is not the current one.
    Complete(u8, bool),
    Fail(u8, bool, u8),
    Report(u8, bool, u8),
    /// A part of the output; 0 for the next one, else the one with this number.
    Append(u8, bool, u8),
    /// A result that the task does not declare so, one of a few.
    Reject(u8, bool, u8),
    Recover(u8),
    /// An attempt asks a person; true for an attempt number that is not the current one.
    Ask(u8, bool, u8),
    /// An answer; true for one to another question.
    Answer(u8, bool, u8),
    /// The same as a message to the run, one of a few; true for one to a run that is not the task's.
    Say(u8, bool, u8),
    CancelRun(u8),
    /// A worker claims a task, or so many of the method that workers claim.
    Claim(u8, Option<u8>),
    /// True for a lease that is not the current one.
    Release(u8, bool),
    EndLease(u8, bool),
    Wait(u8),
    Slots(u8),
    /// The executor `ghost` appears or disappears.
    Ghost(bool),
}
