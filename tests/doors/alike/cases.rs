//! The cases that are played through each form of JSON-RPC.

use super::request::Id::{Malformed, Of, Unknown};
use super::request::Work::{Echo, Endless, Failing, Group, Remote};
use super::request::{NewTask, Request, Work, task};

/// What must come of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expected {
    Done,
    /// The refusal with this code.
    Refused(i64),
}

/// One step of a case.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Ask {
        request: Request,
        /// Under this idempotency key.
        key: Option<&'static str>,
        expected: Expected,
    },
    /// Reads what is told of the flow of this task, from its beginning until nothing in it runs.
    Stream(&'static str),
}

/// Steps that are taken one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) steps: Vec<Step>,
}

fn done(request: Request) -> Step {
    Step::Ask {
        request,
        key: None,
        expected: Expected::Done,
    }
}

fn refused(code: i64, request: Request) -> Step {
    Step::Ask {
        request,
        key: None,
        expected: Expected::Refused(code),
    }
}

fn once(key: &'static str, expected: Expected, request: Request) -> Step {
    Step::Ask {
        request,
        key: Some(key),
        expected,
    }
}

/// A group of two tasks, of which the second waits for the first.
fn pair(first: Work, second: Work) -> Vec<NewTask> {
    vec![
        task("root", Group),
        task("first", first).below("root"),
        task("second", second).below("root").after("first"),
    ]
}

/// Every case.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = lives();
    cases.extend(work());
    cases.extend(errors());
    cases
}

fn lives() -> Vec<Case> {
    vec![
        Case {
            name: "a tree is stored, changed, read and deleted",
            steps: vec![
                done(Request::Create(pair(Echo, Echo))),
                done(Request::Get(Of("first"))),
                done(Request::Rename(Of("first"), "renamed")),
                done(Request::Tree(Of("root"))),
                done(Request::Children(Of("root"))),
                done(Request::List),
                done(Request::History(Of("first"))),
                done(Request::Explain(Of("second"))),
                refused(
                    -32009,
                    Request::Delete {
                        task: Of("root"),
                        cascade: false,
                    },
                ),
                done(Request::Delete {
                    task: Of("root"),
                    cascade: true,
                }),
                refused(-32001, Request::Get(Of("first"))),
                done(Request::List),
            ],
        },
        Case {
            name: "a run completes and is told",
            steps: vec![
                done(Request::Create(pair(Echo, Echo))),
                done(Request::Execute(Of("root"))),
                Step::Stream("root"),
                done(Request::Get(Of("root"))),
                done(Request::Tree(Of("root"))),
                done(Request::History(Of("second"))),
                done(Request::Explain(Of("second"))),
                done(Request::Copy(Of("root"))),
                done(Request::Tree(Of("copy"))),
            ],
        },
        Case {
            name: "tasks are made and executed at once",
            steps: vec![
                done(Request::Run(pair(Echo, Echo))),
                Step::Stream("root"),
                done(Request::Tree(Of("root"))),
            ],
        },
        Case {
            name: "a failed task is told and tried again",
            steps: vec![
                done(Request::Run(pair(Failing, Echo))),
                Step::Stream("root"),
                done(Request::Explain(Of("second"))),
                done(Request::Get(Of("first"))),
                done(Request::Retry(Of("first"))),
            ],
        },
        Case {
            name: "a running task is cancelled",
            steps: vec![
                done(Request::Run(vec![task("endless", Endless)])),
                refused(-32008, Request::Execute(Of("endless"))),
                done(Request::Rename(Of("endless"), "renamed")),
                done(Request::Cancel(Of("endless"))),
                Step::Stream("endless"),
                done(Request::Get(Of("endless"))),
                refused(-32006, Request::Cancel(Of("endless"))),
                refused(-32006, Request::Retry(Of("endless"))),
            ],
        },
        Case {
            name: "what is repeated under a key is done once",
            steps: vec![
                once("k", Expected::Done, Request::Create(pair(Echo, Echo))),
                once("k", Expected::Done, Request::Create(pair(Echo, Echo))),
                done(Request::List),
                once(
                    "k",
                    Expected::Refused(-32602),
                    Request::Create(vec![task("other", Echo)]),
                ),
            ],
        },
    ]
}

/// What workers outside the server ask for and say.
fn work() -> Vec<Case> {
    let fail = |retryable| Request::Fail {
        task: Of("far"),
        retryable,
    };
    vec![
        Case {
            name: "a worker completes what it has claimed, once",
            steps: vec![
                done(Request::Run(pair(Remote, Echo))),
                done(Request::ClaimNext),
                refused(-32006, Request::Claim(Of("first"))),
                done(Request::Renew(Of("first"))),
                done(Request::SiblingOutput(Of("first"), "second")),
                done(Request::Get(Of("first"))),
                done(Request::Complete(Of("first"), "one")),
                done(Request::Complete(Of("first"), "one")),
                refused(-31010, Request::Complete(Of("first"), "two")),
                refused(-31010, Request::Renew(Of("first"))),
                Step::Stream("root"),
                done(Request::History(Of("first"))),
                done(Request::Get(Of("root"))),
            ],
        },
        Case {
            name: "a worker gives a task back, then fails it for good",
            steps: vec![
                done(Request::Run(vec![task("far", Remote)])),
                done(Request::Claim(Of("far"))),
                done(Request::Release(Of("far"))),
                done(Request::Claim(Of("far"))),
                done(fail(false)),
                done(fail(false)),
                refused(-31010, fail(true)),
                Step::Stream("far"),
                done(Request::Get(Of("far"))),
            ],
        },
        Case {
            name: "a claimed task is cancelled",
            steps: vec![
                done(Request::Run(vec![task("far", Remote)])),
                done(Request::Claim(Of("far"))),
                refused(-32602, Request::SiblingOutput(Of("far"), "near")),
                done(Request::Cancel(Of("far"))),
                done(Request::Renew(Of("far"))),
                refused(-31010, Request::Complete(Of("far"), "late")),
                Step::Stream("far"),
                done(Request::Get(Of("far"))),
            ],
        },
        Case {
            name: "what nobody can claim, and a lease that nobody has",
            steps: vec![
                done(Request::Create(vec![task("near", Echo)])),
                refused(-32006, Request::Claim(Of("near"))),
                refused(-32001, Request::Claim(Unknown)),
                refused(-31010, Request::SiblingOutput(Of("near"), "far")),
                refused(-31010, Request::Release(Of("near"))),
                refused(-31010, Request::Release(Unknown)),
                refused(-32602, Request::Release(Malformed)),
            ],
        },
    ]
}

fn errors() -> Vec<Case> {
    let of_each = |id| {
        [
            Request::Get(id),
            Request::Tree(id),
            Request::Children(id),
            Request::History(id),
            Request::Explain(id),
            Request::Rename(id, "renamed"),
            Request::Execute(id),
            Request::Cancel(id),
            Request::Delete {
                task: id,
                cascade: true,
            },
            Request::Copy(id),
            Request::Retry(id),
        ]
    };
    let each = |code, id| of_each(id).map(|request| refused(code, request)).to_vec();
    vec![
        Case {
            name: "a task that nobody has made",
            steps: each(-32001, Unknown),
        },
        Case {
            name: "an id that is none",
            steps: each(-32602, Malformed),
        },
        Case {
            name: "tasks that cannot be stored",
            steps: vec![
                refused(
                    -32002,
                    Request::Create(vec![
                        task("root", Group),
                        task("a", Echo).below("root").after("b"),
                        task("b", Echo).below("root").after("a"),
                    ]),
                ),
                refused(
                    -32012,
                    Request::Create(vec![task("one", Echo), task("two", Echo)]),
                ),
                refused(-32602, Request::Create(vec![task("", Echo)])),
                done(Request::List),
            ],
        },
        Case {
            name: "an executor that nobody has registered",
            steps: vec![
                done(Request::Create(vec![task("lost", Work::Unknown)])),
                refused(-32003, Request::Execute(Of("lost"))),
                done(Request::Get(Of("lost"))),
            ],
        },
        Case {
            name: "what the server says of itself",
            steps: vec![done(Request::Executors), refused(-32601, Request::Nonsense)],
        },
    ]
}
