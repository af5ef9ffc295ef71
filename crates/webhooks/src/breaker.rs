//! The circuit breaker of an endpoint, driven by how its attempts end.
//!
//! Opens after failures in a row, or when most of many fail; lets one probe through after a pause that
//! doubles; gives an endpoint up after days, or when it says that it is gone. While it is open nothing is
//! sent, so no message uses its schedule up. Pure: what is known comes in and goes out as [`Health`].

use super::delivery::{Health, Window};
use super::endpoint::{DisabledReason, EventName};
use taskledger_domain::Timestamp;

/// Failures in a row after which nothing is sent for a while.
pub const FAILURES_TO_OPEN: u32 = 5;
/// Failures in a row after which others are told, once.
pub const FAILURES_TO_SAY: u32 = 4;
/// Attempts that a stretch of time must have before its share of failures counts.
pub const WINDOW_ATTEMPTS_MIN: u32 = 10;
/// Share of failures in a stretch of time that opens; percent.
pub const WINDOW_FAILURES_PERCENT: u32 = 70;
/// How long a stretch of time is; ms.
pub const WINDOW_MS: u64 = 5 * 60 * 1_000;
/// The first pause; ms. It doubles with each probe that fails.
pub const PAUSE_MS_FIRST: u64 = 60 * 1_000;
/// The longest pause: an endpoint that comes back is noticed within an hour; ms.
pub const PAUSE_MS_MAX: u64 = 3_600 * 1_000;
/// Failing for so long disables: a weekend and a holiday are shorter; ms.
pub const GIVE_UP_MS: u64 = 5 * 24 * 3_600 * 1_000;

/// The outcome of an attempt, as far as the endpoint is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It arrived.
    Arrived,
    /// It did not.
    Failed,
    /// The receiver says that nothing is to be sent there any more (410).
    Gone,
}

/// The consequences for the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// How it fares now.
    pub health: Health,
    /// It is disabled.
    pub disable: Option<DisabledReason>,
    /// What others are told.
    pub say: Option<EventName>,
}

/// Whether nothing may be sent at `now`.
#[must_use]
pub fn is_open(health: &Health, now: Timestamp) -> bool {
    health.open_until.is_some_and(|until| now < until)
}

/// The state of an endpoint's breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Everything goes through.
    Closed,
    /// Nothing does until a time.
    Open {
        /// When this pause began.
        since: Timestamp,
        /// When it ends.
        until: Timestamp,
    },
    /// The next attempt decides.
    HalfOpen {
        /// When the pause before it began.
        since: Timestamp,
    },
}

/// What the breaker does at `now`.
#[must_use]
pub fn state(health: &Health, now: Timestamp) -> State {
    let Some(until) = health.open_until else {
        return State::Closed;
    };
    let pause = pause_ms(health.openings.saturating_sub(1));
    let pause = i64::try_from(pause).expect("the longest pause is an hour");
    let since = Timestamp(until.0 - pause * 1_000);
    if now < until {
        State::Open { since, until }
    } else {
        State::HalfOpen { since }
    }
}

/// Whether the endpoint has to prove itself, by one attempt at a time.
#[must_use]
pub const fn on_probation(health: &Health) -> bool {
    health.failures > 0 || health.open_until.is_some()
}

/// What an attempt that ended at `now` means for the endpoint.
#[must_use]
pub fn judge(before: &Health, now: Timestamp, ending: Ending) -> Verdict {
    let failed = ending != Ending::Arrived;
    let window = counted(before.window, now, failed);
    if !failed {
        let recovered = before.failures >= FAILURES_TO_SAY;
        let was_open = before.open_until.is_some();
        return Verdict {
            health: Health {
                // What failed before a pause says nothing about the time after it.
                window: if was_open { Window::default() } else { window },
                ..Health::default()
            },
            disable: None,
            say: recovered.then_some(EventName::EndpointRecovered),
        };
    }
    let mut health = Health {
        failures: before.failures.saturating_add(1),
        failing_since: before.failing_since.or(Some(now)),
        window,
        ..*before
    };
    // Attempts that began before it opened end later; they open it no further.
    if !is_open(before, now) && (before.open_until.is_some() || is_bad(&health)) {
        health.open_until = Some(now.plus_ms(pause_ms(health.openings)));
        health.openings = health.openings.saturating_add(1);
    }
    let disable = match ending {
        Ending::Gone => Some(DisabledReason::Gone),
        Ending::Arrived | Ending::Failed => {
            is_hopeless(&health, now).then_some(DisabledReason::Failing)
        }
    };
    let say = match disable {
        Some(_) => Some(EventName::EndpointDisabled),
        None => (health.failures == FAILURES_TO_SAY).then_some(EventName::EndpointFailing),
    };
    Verdict {
        health,
        disable,
        say,
    }
}

fn counted(window: Window, now: Timestamp, failed: bool) -> Window {
    let present = window
        .since
        .is_some_and(|since| now.ms_since(since) < WINDOW_MS);
    let window = if present {
        window
    } else {
        Window {
            since: Some(now),
            ..Window::default()
        }
    };
    Window {
        attempts: window.attempts.saturating_add(1),
        failures: window.failures.saturating_add(u32::from(failed)),
        ..window
    }
}

const fn is_bad(health: &Health) -> bool {
    let Window {
        attempts, failures, ..
    } = health.window;
    let mostly = failures.saturating_mul(100) >= attempts.saturating_mul(WINDOW_FAILURES_PERCENT);
    health.failures >= FAILURES_TO_OPEN || (attempts >= WINDOW_ATTEMPTS_MIN && mostly)
}

/// A clock that leaps over days, as after a suspension, does not make one failure many.
fn is_hopeless(health: &Health, now: Timestamp) -> bool {
    let long = health
        .failing_since
        .is_some_and(|since| now.ms_since(since) >= GIVE_UP_MS);
    long && health.failures >= FAILURES_TO_OPEN
}

fn pause_ms(openings: u32) -> u64 {
    let doubled = 1_u64.checked_shl(openings).unwrap_or(u64::MAX);
    PAUSE_MS_FIRST.saturating_mul(doubled).min(PAUSE_MS_MAX)
}

#[cfg(test)]
mod tests {
    use super::Ending::{Arrived, Failed, Gone};
    use super::*;

    const START: Timestamp = Timestamp(1_000_000_000_000);

    fn at(ms: u64) -> Timestamp {
        START.plus_ms(ms)
    }

    /// The verdicts on attempts at these times, one after the other.
    fn verdicts(attempts: &[(u64, Ending)]) -> Vec<Verdict> {
        let mut health = Health::default();
        attempts
            .iter()
            .map(|(ms, ending)| {
                let verdict = judge(&health, at(*ms), *ending);
                health = verdict.health;
                verdict
            })
            .collect()
    }

    fn last(attempts: &[(u64, Ending)]) -> Verdict {
        *verdicts(attempts).last().expect("there are attempts")
    }

    #[test]
    fn five_failures_in_a_row_open_it_and_four_do_not() {
        let failures: Vec<_> = (0..5).map(|n| (n * 1000, Failed)).collect();
        assert_eq!(last(&failures[..4]).health.open_until, None);
        let open = last(&failures).health;
        assert_eq!(open.open_until, Some(at(4_000 + PAUSE_MS_FIRST)));
        assert!(is_open(&open, at(4_000)) && !is_open(&open, at(64_000)));
        assert!(on_probation(&open));
    }

    #[test]
    fn what_the_breaker_does_can_be_told_at_any_time() {
        let attempts: Vec<_> = (0..5).map(|n| (n * 1_000, Failed)).collect();
        assert_eq!(
            state(&last(&attempts[..4]).health, at(9_000)),
            State::Closed
        );
        let open = last(&attempts).health;
        let (since, until) = (at(4_000), at(64_000));
        assert_eq!(state(&open, at(63_999)), State::Open { since, until });
        assert_eq!(state(&open, until), State::HalfOpen { since });
        // The probe fails: the pause after it is twice as long.
        let again = judge(&open, until, Failed).health;
        let (since, until) = (until, at(184_000));
        assert_eq!(state(&again, since), State::Open { since, until });
    }

    #[test]
    fn an_arrival_between_begins_the_row_anew() {
        let mut attempts = vec![(0, Failed); 4];
        attempts.push((1, Arrived));
        attempts.extend([(600_000, Failed); 4]);
        let health = last(&attempts).health;
        assert_eq!((health.failures, health.open_until), (4, None));
        assert_eq!(health.failing_since, Some(at(600_000)));
    }

    #[test]
    fn seven_of_ten_failures_within_five_minutes_open_it() {
        let endings = [
            Failed, Failed, Failed, Arrived, Failed, Failed, Failed, Arrived, Arrived, Failed,
        ];
        let attempts: Vec<_> = (0..).zip(endings).map(|(n, e)| (n * 1_000, e)).collect();
        assert_eq!(last(&attempts[..9]).health.open_until, None);
        assert_eq!(
            last(&attempts).health.open_until,
            Some(at(9_000 + PAUSE_MS_FIRST))
        );
        // The same, too slowly.
        let slow: Vec<_> = (0..).zip(endings).map(|(n, e)| (n * 60_000, e)).collect();
        assert_eq!(last(&slow).health.open_until, None);
    }

    #[test]
    fn the_pause_doubles_with_each_probe_that_fails_up_to_an_hour() {
        let mut health = last(&[(0, Failed); 5]).health;
        let mut pauses = Vec::new();
        for _ in 0..9 {
            let probe = health.open_until.expect("it is open");
            health = judge(&health, probe, Failed).health;
            let until = health.open_until.expect("it is open again");
            pauses.push(until.ms_since(probe) / 60_000);
        }
        assert_eq!(pauses, [2, 4, 8, 16, 32, 60, 60, 60, 60]);
    }

    #[test]
    fn failures_of_attempts_that_began_before_it_opened_open_it_no_further() {
        let open = last(&[(0, Failed); 5]).health;
        let later = judge(&open, at(10_000), Failed).health;
        assert_eq!(
            (later.open_until, later.openings),
            (open.open_until, open.openings)
        );
        assert_eq!(later.failures, 6);
    }

    #[test]
    fn a_probe_that_arrives_closes_it() {
        let mut attempts = vec![(0, Failed); 5];
        attempts.push((61_000, Arrived));
        let closed = last(&attempts);
        assert_eq!(closed.health, Health::default());
        assert!(!on_probation(&closed.health));
        // The next failures are counted from the beginning.
        attempts.extend([(62_000, Failed); 4]);
        assert_eq!(last(&attempts).health.open_until, None);
    }

    #[test]
    fn failing_is_said_once_and_recovery_only_after_it() {
        let mut attempts = vec![(0, Failed); 6];
        attempts.extend([(1, Arrived), (2, Arrived), (3, Failed), (4, Arrived)]);
        let said: Vec<_> = verdicts(&attempts).iter().map(|v| v.say).collect();
        let mut expected = vec![None; 10];
        expected[3] = Some(EventName::EndpointFailing);
        expected[6] = Some(EventName::EndpointRecovered);
        assert_eq!(said, expected);
    }

    #[test]
    fn an_endpoint_that_is_gone_is_disabled_at_once() {
        let gone = last(&[(0, Gone)]);
        assert_eq!(gone.disable, Some(DisabledReason::Gone));
        assert_eq!(gone.say, Some(EventName::EndpointDisabled));
    }

    #[test]
    fn five_days_without_an_arrival_disable_it() {
        let mut attempts: Vec<_> = (0..5).map(|n| (n * 1_000, Failed)).collect();
        attempts.push((GIVE_UP_MS - 1, Failed));
        assert_eq!(last(&attempts).disable, None);
        attempts.push((GIVE_UP_MS, Failed));
        let over = last(&attempts);
        assert_eq!(over.disable, Some(DisabledReason::Failing));
        assert_eq!(over.say, Some(EventName::EndpointDisabled));
    }

    #[test]
    fn a_clock_that_leaps_over_days_disables_nothing() {
        let leapt = last(&[(0, Failed), (2 * GIVE_UP_MS, Failed)]);
        assert_eq!(leapt.disable, None);
    }
}
