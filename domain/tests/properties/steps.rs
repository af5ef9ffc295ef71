//! What may be done to a flow, written with small numbers that the world turns into tasks.

use proptest::prelude::*;

/// A task to create; `parent` and dependencies pick among the tasks that exist, those of the same
/// call included.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) parent: u8,
    /// 0 to 3 a group, 4 to 8 `echo`, 9 `once`, 10 the unknown `ghost`.
    pub(crate) kind: u8,
    pub(crate) dependencies: Vec<(u8, bool)>,
    pub(crate) priority: u8,
    /// Times 100 ms from the start.
    pub(crate) deadline: Option<u8>,
    pub(crate) attempts: u8,
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
    Reprioritize(u8, u8),
    Rewire(u8, Vec<(u8, bool)>),
    Move(u8, u8),
    ChangeUser(u8, u8),
    ChangeKind(u8, u8),
    ChangeDeadline(u8, Option<u8>),
    Delete(u8, bool),
    Cancel(u8, bool),
    /// An outcome; true for an attempt number that is not the current one.
    Complete(u8, bool),
    Fail(u8, bool, u8),
    Report(u8, bool, u8),
    Recover(u8),
    Wait(u8),
    Slots(u8),
    /// The executor `ghost` appears or disappears.
    Ghost(bool),
}

fn dependencies() -> impl Strategy<Value = Vec<(u8, bool)>> {
    prop::collection::vec((any::<u8>(), prop::bool::weighted(0.7)), 0..3)
}

pub(crate) fn draft() -> impl Strategy<Value = Draft> {
    (
        any::<u8>(),
        0..=10_u8,
        dependencies(),
        0..4_u8,
        prop::option::weighted(0.15, 0..40_u8),
        0..4_u8,
    )
        .prop_map(
            |(parent, kind, dependencies, priority, deadline, attempts)| Draft {
                parent,
                kind,
                dependencies,
                priority,
                deadline,
                attempts,
            },
        )
}

/// Mostly groups, with many dependencies and without deadlines.
pub(crate) fn knotted_task() -> impl Strategy<Value = Draft> {
    (
        any::<u8>(),
        0..=9_u8,
        prop::collection::vec((any::<u8>(), any::<bool>()), 0..4),
    )
        .prop_map(|(parent, kind, dependencies)| Draft {
            parent,
            kind,
            dependencies,
            priority: 2,
            deadline: None,
            attempts: 0,
        })
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let task = any::<u8>;
    prop_oneof![
        6 => prop::collection::vec(draft(), 1..7).prop_map(Step::Create),
        8 => (task(), prop::bool::weighted(0.8), 0..30_u8, prop::bool::weighted(0.2))
            .prop_map(|(task, unknown, wait, retry)| Step::Execute { task, unknown, wait, retry }),
        1 => task().prop_map(Step::Rename),
        2 => (task(), 0..4_u8).prop_map(|(t, p)| Step::Reprioritize(t, p)),
        4 => (task(), dependencies()).prop_map(|(t, d)| Step::Rewire(t, d)),
        3 => (task(), task()).prop_map(|(t, p)| Step::Move(t, p)),
        1 => (task(), 0..3_u8).prop_map(|(t, u)| Step::ChangeUser(t, u)),
        3 => (task(), 0..=10_u8).prop_map(|(t, k)| Step::ChangeKind(t, k)),
        2 => (task(), prop::option::of(0..40_u8)).prop_map(|(t, d)| Step::ChangeDeadline(t, d)),
        3 => (task(), any::<bool>()).prop_map(|(t, c)| Step::Delete(t, c)),
        3 => (task(), any::<bool>()).prop_map(|(t, c)| Step::Cancel(t, c)),
        14 => (task(), prop::bool::weighted(0.1)).prop_map(|(t, s)| Step::Complete(t, s)),
        8 => (task(), prop::bool::weighted(0.1), 0..8_u8).prop_map(|(t, s, r)| Step::Fail(t, s, r)),
        2 => (task(), prop::bool::weighted(0.1), any::<u8>()).prop_map(|(t, s, p)| Step::Report(t, s, p)),
        2 => task().prop_map(Step::Recover),
        5 => (0..20_u8).prop_map(Step::Wait),
        3 => (0..6_u8).prop_map(Step::Slots),
        1 => any::<bool>().prop_map(Step::Ghost),
    ]
}
