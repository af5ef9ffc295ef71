//! The order of owners, compared with a model that computes it anew each time.

use super::{Fair, Owner};
use crate::application::slots::Weights;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use taskledger_domain::testing::id;
use taskledger_domain::{FlowId, Timestamp};

fn owner(n: usize) -> Owner {
    (n > 0).then(|| Arc::from(format!("user {n}")))
}

fn flow(n: usize) -> FlowId {
    id(&format!("flow {n}")).as_flow()
}

fn weights(given: &[(usize, u32)]) -> Arc<Weights> {
    let weight = |(n, weight): &(usize, u32)| {
        let weight = (*weight).try_into().expect("not zero");
        (format!("user {n}"), weight)
    };
    Arc::new(given.iter().map(weight).collect())
}

/// The next flow starts a task, and waits again.
fn start(line: &mut Fair, owners: &BTreeMap<FlowId, (usize, Timestamp)>) -> usize {
    let next = line.first().next().expect("somebody waits");
    let (who, since) = owners[&next];
    let (owner, age) = (owner(who), (since, next));
    line.look(&owner, age);
    assert_eq!(
        line.ahead(&owner, age, 1),
        0,
        "who is first has nobody ahead"
    );
    line.started(&owner);
    line.join(&owner, age);
    line.looked(&owner);
    who
}

#[test]
fn owners_start_in_proportion_to_their_weights() {
    let mut line = Fair::new(weights(&[(2, 3)]));
    let mut owners = BTreeMap::new();
    for who in [1, 2] {
        let since = Timestamp(who as i64);
        line.join(&owner(who), (since, flow(who)));
        owners.insert(flow(who), (who, since));
    }
    let mut starts = [0; 3];
    for n in 1..=400 {
        starts[start(&mut line, &owners)] += 1;
        assert!((starts[1] * 4_i64 - n).abs() <= 4, "{starts:?} of {n}");
    }
    assert_eq!(starts, [0, 100, 300]);
}

#[test]
fn who_comes_later_begins_with_those_who_wait_and_earns_nothing_by_being_away() {
    let mut line = Fair::new(weights(&[]));
    let mut owners = BTreeMap::new();
    let mut join = |line: &mut Fair, who: usize| {
        let since = Timestamp(who as i64);
        line.join(&owner(who), (since, flow(who)));
        owners.insert(flow(who), (who, since));
        owners.clone()
    };
    join(&mut line, 1);
    let owners = join(&mut line, 2);
    for _ in 0..100 {
        start(&mut line, &owners);
    }
    line.leave(&owner(2), (Timestamp(2), flow(2)));
    let owners = join(&mut line, 3);
    for _ in 0..100 {
        start(&mut line, &owners);
    }
    let owners = join(&mut line, 2);
    let mut starts = [0_i32; 4];
    for _ in 0..300 {
        starts[start(&mut line, &owners)] += 1;
    }
    assert!(
        starts[1..].iter().all(|n| (n - 100).abs() <= 1),
        "{starts:?}"
    );
}

#[test]
fn looking_at_a_flow_does_not_cost_its_owner_the_place() {
    let mut line = Fair::new(weights(&[]));
    let ages = [1, 2].map(|who| (Timestamp(-(who as i64)), flow(who)));
    line.join(&owner(1), ages[0]);
    line.join(&owner(2), ages[1]);
    line.started(&owner(2));
    // Owner 1 is younger and has had less; its flow is looked at again and again.
    for _ in 0..10 {
        line.look(&owner(1), ages[0]);
        line.join(&owner(1), ages[0]);
        line.looked(&owner(1));
        assert_eq!(line.first().next(), Some(flow(1)));
    }
}

#[test]
fn nothing_is_remembered_of_owners_once_nobody_waits() {
    let mut line = Fair::new(weights(&[]));
    let age = (Timestamp(0), flow(0));
    line.join(&owner(1), age);
    for who in 2..10_000 {
        line.started(&owner(who));
    }
    assert!(line.accounts.len() <= 10_000);
    line.started(&owner(2));
    line.leave(&owner(1), age);
    assert!(line.is_empty());
    assert!(line.left.is_empty() && line.present.is_empty() && line.heads.is_empty());
}

#[derive(Debug, Clone)]
enum Step {
    Join(usize),
    Leave(usize),
    Start,
    StartOf(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..12_usize).prop_map(Step::Join),
        1 => (0..12_usize).prop_map(Step::Leave),
        3 => Just(Step::Start),
        1 => (0..4_usize).prop_map(Step::StartOf),
    ];
    proptest::collection::vec(step, 0..200)
}

proptest! {
    /// The indexes give the order that sorting gives, whoever comes and goes.
    #[test]
    fn the_order_is_that_of_sorting(steps in steps()) {
        let mut line = Fair::new(weights(&[(3, 4)]));
        let mut waiting: BTreeSet<(usize, Timestamp, FlowId)> = BTreeSet::new();
        let owners: BTreeMap<_, _> =
            (0..12).map(|n| (flow(n), (n % 4, Timestamp(n as i64 * 7 % 5)))).collect();
        for step in steps {
            match step {
                Step::Join(n) => {
                    let (who, since) = owners[&flow(n)];
                    if waiting.insert((who, since, flow(n))) {
                        line.join(&owner(who), (since, flow(n)));
                    }
                }
                Step::Leave(n) => {
                    let (who, since) = owners[&flow(n)];
                    if waiting.remove(&(who, since, flow(n))) {
                        line.leave(&owner(who), (since, flow(n)));
                    }
                }
                Step::Start if waiting.is_empty() => {}
                Step::Start => _ = start(&mut line, &owners),
                Step::StartOf(who) => line.started(&owner(who)),
            }
            let mut keys: Vec<(u64, Timestamp, FlowId)> = Vec::new();
            for who in 0..4 {
                let own = waiting.iter().filter(|(other, _, _)| *other == who);
                for (n, (_, since, flow)) in own.enumerate() {
                    let at = line.time_of(&owner(who)) + n as u64 * line.step(&owner(who));
                    keys.push((at, *since, *flow));
                }
            }
            keys.sort_unstable();
            let order: Vec<FlowId> = line.first().collect();
            prop_assert_eq!(&order, &keys.iter().map(|key| key.2).collect::<Vec<_>>());
            for (n, flow) in order.iter().enumerate() {
                let (who, since) = owners[flow];
                prop_assert_eq!(line.ahead(&owner(who), (since, *flow), usize::MAX), n);
                prop_assert_eq!(line.ahead(&owner(who), (since, *flow), 3), n.min(3));
            }
            let present = line.present.len();
            prop_assert_eq!(line.accounts.len(), present + line.left.len());
            prop_assert!(line.left.first().is_none_or(|(at, _)| *at > line.least()));
        }
    }
}
