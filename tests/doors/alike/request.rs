//! What a case asks, in no door's words.

/// A task of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Id {
    /// The one that the case calls so.
    Of(&'static str),
    /// One that nobody has made.
    Unknown,
    /// A text that is no id.
    Malformed,
}

/// What runs a task.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work {
    /// Nothing: it is a group.
    Group,
    /// Its inputs are its result.
    Echo,
    /// It runs until it is cancelled.
    Endless,
    /// It runs into its time-out, and fails.
    Failing,
    /// A worker outside the server does it.
    Remote,
    /// An executor that nobody has registered.
    Unknown,
}

/// A task to be made.
#[derive(Debug, Clone)]
pub(crate) struct NewTask {
    /// What the case calls it, and its name.
    pub(crate) alias: &'static str,
    pub(crate) parent: Option<&'static str>,
    pub(crate) after: Vec<&'static str>,
    pub(crate) work: Work,
}

/// A task without parent and dependencies.
pub(crate) fn task(alias: &'static str, work: Work) -> NewTask {
    NewTask {
        alias,
        parent: None,
        after: Vec::new(),
        work,
    }
}

impl NewTask {
    pub(crate) fn below(mut self, parent: &'static str) -> Self {
        self.parent = Some(parent);
        self
    }

    pub(crate) fn after(mut self, dependency: &'static str) -> Self {
        self.after.push(dependency);
        self
    }
}

/// A call.
#[derive(Debug, Clone)]
pub(crate) enum Request {
    Create(Vec<NewTask>),
    Get(Id),
    Tree(Id),
    Children(Id),
    History(Id),
    Explain(Id),
    /// Tasks of the case's own user.
    List,
    Rename(Id, &'static str),
    Execute(Id),
    /// Makes tasks and executes them at once.
    Run(Vec<NewTask>),
    Cancel(Id),
    Delete {
        task: Id,
        cascade: bool,
    },
    /// The copy is called `copy`.
    Copy(Id),
    Retry(Id),
    Executors,
    /// A worker claims this task. What comes next in the case is said under its lease.
    Claim(Id),
    /// A worker claims the next task of the case's own method.
    ClaimNext,
    Renew(Id),
    Complete(Id, &'static str),
    Fail {
        task: Id,
        retryable: bool,
    },
    Release(Id),
    SiblingOutput(Id, &'static str),
    /// A method that nobody knows.
    Nonsense,
}
