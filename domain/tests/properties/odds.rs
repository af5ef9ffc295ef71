//! How properties pick what is done: the steps of `steps`, with the odds of each.

use super::steps::{Draft, Step};
use proptest::prelude::*;

fn dependencies() -> impl Strategy<Value = Vec<(u8, bool)>> {
    prop::collection::vec((any::<u8>(), prop::bool::weighted(0.7)), 0..3)
}

pub(crate) fn draft() -> impl Strategy<Value = Draft> {
    (
        any::<u8>(),
        0..=12_u8,
        dependencies(),
        0..4_u8,
        prop::option::weighted(0.15, 0..40_u8),
        0..4_u8,
        prop::option::weighted(0.15, 0..30_u8),
    )
        .prop_map(
            |(parent, kind, dependencies, priority, deadline, attempts, timer)| Draft {
                parent,
                kind,
                dependencies,
                priority,
                deadline,
                attempts,
                timer,
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
            timer: (parent % 5 == 0).then_some(kind * 2),
        })
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let task = any::<u8>;
    prop_oneof![
        6 => prop::collection::vec(draft(), 1..7).prop_map(Step::Create),
        8 => (task(), prop::bool::weighted(0.8), 0..30_u8, prop::bool::weighted(0.2))
            .prop_map(|(task, unknown, wait, retry)| Step::Execute { task, unknown, wait, retry }),
        1 => task().prop_map(Step::Rename),
        1 => (task(), 0..3_u8).prop_map(|(t, l)| Step::Relabel(t, l)),
        2 => (task(), 0..4_u8).prop_map(|(t, p)| Step::Reprioritize(t, p)),
        4 => (task(), dependencies()).prop_map(|(t, d)| Step::Rewire(t, d)),
        3 => (task(), task()).prop_map(|(t, p)| Step::Move(t, p)),
        2 => (task(), 0..6_u8).prop_map(|(t, u)| Step::ChangeUser(t, u)),
        3 => (task(), 0..=11_u8).prop_map(|(t, k)| Step::ChangeKind(t, k)),
        2 => (task(), prop::option::of(0..40_u8)).prop_map(|(t, d)| Step::ChangeDeadline(t, d)),
        3 => (task(), prop::option::of(0..30_u8)).prop_map(|(t, d)| Step::ChangeTimer(t, d)),
        3 => (task(), any::<bool>()).prop_map(|(t, c)| Step::Delete(t, c)),
        3 => (task(), any::<bool>()).prop_map(|(t, c)| Step::Cancel(t, c)),
        14 => (task(), prop::bool::weighted(0.1)).prop_map(|(t, s)| Step::Complete(t, s)),
        8 => (task(), prop::bool::weighted(0.1), 0..8_u8).prop_map(|(t, s, r)| Step::Fail(t, s, r)),
        2 => (task(), prop::bool::weighted(0.1), any::<u8>()).prop_map(|(t, s, p)| Step::Report(t, s, p)),
        4 => (task(), prop::bool::weighted(0.1), 0..4_u8).prop_map(|(t, s, n)| Step::Append(t, s, n)),
        2 => (task(), prop::bool::weighted(0.1), 0..3_u8).prop_map(|(t, s, k)| Step::Reject(t, s, k)),
        2 => task().prop_map(Step::Recover),
        8 => (task(), prop::option::weighted(0.3, 1..4_u8)).prop_map(|(t, n)| Step::Claim(t, n)),
        1 => (task(), prop::bool::weighted(0.1)).prop_map(|(t, s)| Step::Release(t, s)),
        2 => (task(), prop::bool::weighted(0.1), any::<u8>()).prop_map(|(t, s, k)| Step::Ask(t, s, k)),
        2 => (task(), prop::bool::weighted(0.1), any::<u8>()).prop_map(|(t, s, k)| Step::Answer(t, s, k)),
        2 => (task(), prop::bool::weighted(0.1), any::<u8>()).prop_map(|(t, s, k)| Step::Say(t, s, k)),
        1 => task().prop_map(Step::CancelRun),
        3 => (task(), prop::bool::weighted(0.1)).prop_map(|(t, s)| Step::EndLease(t, s)),
        5 => (0..20_u8).prop_map(Step::Wait),
        3 => (0..6_u8).prop_map(Step::Slots),
        1 => any::<bool>().prop_map(Step::Ghost),
    ]
}
