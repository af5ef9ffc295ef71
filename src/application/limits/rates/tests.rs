//! Rates under a clock that stands still.

use super::{COLLECT_AFTER_CALLS, Cost, Error, RateOptions, Rates};
use crate::clock::ManualClock;
use std::num::NonZeroU32;
use std::sync::Arc;
use taskledger_auth::{Caller, Name, Scopes};
use taskledger_domain::testing::START;

fn rates(per_second: Option<u32>, burst: u32) -> (Rates, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(START));
    let options = RateOptions {
        per_second,
        burst: NonZeroU32::new(burst),
    };
    (Rates::new(options, clock.clone()), clock)
}

fn user(name: &str) -> Caller {
    Caller::user(&Name::new(name).expect("a name"), Scopes::all())
}

fn wait_ms(taken: Result<(), Error>) -> Option<u64> {
    match taken {
        Ok(()) => None,
        Err(Error::RateLimited { retry_after_ms }) => Some(retry_after_ms),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_caller_who_waits_as_long_as_told_is_served() {
    let (rates, clock) = rates(Some(10), 20);
    let ann = user("ann");
    for _ in 0..4 {
        assert_eq!(wait_ms(rates.take(&ann, Cost::Write, 1)), None);
    }
    let wait = wait_ms(rates.take(&ann, Cost::Write, 1)).expect("the bucket is empty");
    assert!((400..=500).contains(&wait), "{wait}");
    assert_eq!(wait_ms(rates.take(&user("bob"), Cost::Write, 1)), None);
    clock.advance_ms(wait - 1);
    assert!(wait_ms(rates.take(&ann, Cost::Write, 1)).is_some());
    clock.advance_ms(1);
    assert_eq!(wait_ms(rates.take(&ann, Cost::Write, 1)), None);
}

#[test]
fn a_task_of_a_call_costs_a_unit_and_no_call_costs_more_than_a_full_bucket() {
    let (rates, clock) = rates(Some(1), 100);
    let ann = user("ann");
    assert_eq!(wait_ms(rates.take(&ann, Cost::Write, 95)), None);
    assert_eq!(wait_ms(rates.take(&ann, Cost::Read, 1)), None);
    assert!(wait_ms(rates.take(&ann, Cost::Read, 1)).is_some());
    clock.advance_ms(101_000);
    assert_eq!(wait_ms(rates.take(&ann, Cost::Write, 20_000)), None);
    assert!(wait_ms(rates.take(&ann, Cost::Read, 1)).is_some());
}

#[test]
fn what_is_free_is_never_refused() {
    let (rates, _clock) = rates(Some(1), 1);
    let ann = user("ann");
    assert_eq!(wait_ms(rates.take(&ann, Cost::Read, 1)), None);
    for _ in 0..100 {
        assert_eq!(wait_ms(rates.take(&ann, Cost::Free, 1)), None);
    }
}

#[test]
fn callers_without_credentials_are_limited_only_when_the_operator_says_so() {
    let (unsaid, _clock) = rates(None, 1);
    let anonymous = Caller::anonymous();
    for _ in 0..100 {
        assert_eq!(wait_ms(unsaid.take(&anonymous, Cost::Write, 1)), None);
    }
    assert_eq!(wait_ms(unsaid.take(&user("ann"), Cost::Read, 1)), None);
    assert!(wait_ms(unsaid.take(&user("ann"), Cost::Read, 1)).is_some());
    let (said, _clock) = rates(Some(1), 1);
    assert_eq!(wait_ms(said.take(&anonymous, Cost::Read, 1)), None);
    assert!(wait_ms(said.take(&anonymous, Cost::Read, 1)).is_some());
    let (none, _clock) = rates(Some(0), 1);
    for _ in 0..100 {
        assert_eq!(wait_ms(none.take(&user("ann"), Cost::Write, 1)), None);
    }
}

#[test]
fn callers_who_are_silent_are_forgotten() {
    let (rates, clock) = rates(Some(10), 10);
    for n in 0..2 * COLLECT_AFTER_CALLS {
        assert_eq!(
            wait_ms(rates.take(&user(&format!("u{n}")), Cost::Read, 1)),
            None
        );
        clock.advance_ms(10);
    }
    assert!(rates.callers() <= COLLECT_AFTER_CALLS as usize + 1_000);
}
