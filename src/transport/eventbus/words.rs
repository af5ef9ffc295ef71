//! Remembers the messages with which agents ended tasks, to tell whether a message is a repetition whose answer was
//! lost, or concerns a later attempt.
//!
//! The wire names tasks and no attempts. What tells is when the agent was given the later attempt: it cannot have ended
//! before that. `completed_at` says when it ended, as exactly as the agent writes it.

use taskledger_domain::{LeaseId, TaskId, Timestamp};

/// How far clocks of agents may be ahead of this server's, in microseconds. Who is further ahead has none that says
/// anything.
const AHEAD_MAX_US: i64 = 60_000_000;

/// A message, in short.
pub(super) type Digest = [u8; 32];

/// What an agent works on: by which lease, and since when it knows that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) task: TaskId,
    pub(super) lease: LeaseId,
    pub(super) at: Timestamp,
}

/// What an agent has said to end a task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word {
    digest: Digest,
    task: TaskId,
    /// The lease by which it held the task, if it did.
    lease: Option<LeaseId>,
    /// Until when `completed_at` may last, by the clock of this server; `None`: it says nothing.
    ended_by: Option<Timestamp>,
}

impl Word {
    /// This message ended a task, which the agent was given or not, and was heard now.
    pub(super) fn of(
        digest: Digest,
        task: TaskId,
        given: Option<Given>,
        completed_at: &prost_types::Timestamp,
        now: Timestamp,
    ) -> Self {
        let step = step_us(completed_at.nanos);
        let seconds = completed_at.seconds.saturating_mul(1_000_000);
        let completed = seconds.saturating_add(i64::from(completed_at.nanos / 1_000));
        let (latest, heard) = (completed.saturating_add(step), now.0.saturating_add(step));
        // An end before its beginning, or one that is still to come, is no time of an end.
        let is_time = given.is_none_or(|given| given.at.0 <= latest)
            && completed <= now.0.saturating_add(AHEAD_MAX_US);
        Self {
            digest,
            task,
            lease: given.map(|given| given.lease),
            ended_by: is_time.then(|| Timestamp(latest.min(heard))),
        }
    }

    pub(super) const fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Whether the same message again, from an agent that works on this, is a repetition. Where its time says nothing,
    /// it is about a later attempt of the same task, and not about another task of the same id.
    pub(super) fn is_repeated_by(&self, given: Option<Given>) -> bool {
        let Some(given) = given else { return true };
        if self.lease == Some(given.lease) {
            return true;
        }
        match self.ended_by {
            Some(by) => by < given.at,
            None => self.task != given.task,
        }
    }
}

/// How exactly a time is written, in microseconds.
const fn step_us(nanos: i32) -> i64 {
    match nanos {
        0 => 1_000_000,
        _ if nanos % 1_000_000 == 0 => 1_000,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskledger_domain::testing::id;

    const SECOND: i64 = 1_000_000;

    fn given(name: &str, at: i64) -> Given {
        Given {
            task: id("task"),
            lease: LeaseId(id(name).0),
            at: Timestamp(at),
        }
    }

    /// Ends the first attempt, which was given at 10 s, at `completed` microseconds, heard at `now`.
    fn word(completed: i64, now: i64) -> Word {
        let completed_at = prost_types::Timestamp {
            seconds: completed / SECOND,
            nanos: i32::try_from(completed % SECOND).expect("below a second") * 1_000,
        };
        let first = Some(given("first", 10 * SECOND));
        Word::of([1; 32], id("task"), first, &completed_at, Timestamp(now))
    }

    #[test]
    fn what_ended_before_the_later_attempt_was_given_is_a_repetition() {
        let word = word(10_400_001, 10_400_100);
        assert!(word.is_repeated_by(None), "nothing else is meant");
        assert!(word.is_repeated_by(Some(given("first", 10 * SECOND))));
        assert!(word.is_repeated_by(Some(given("second", 10_401_000))));
    }

    #[test]
    fn whole_seconds_and_milliseconds_may_be_those_of_the_later_attempt() {
        let (seconds, millis) = (word(11 * SECOND, 11_400_000), word(10_400_000, 10_400_100));
        assert!(!seconds.is_repeated_by(Some(given("second", 11_900_000))));
        assert!(seconds.is_repeated_by(Some(given("second", 12_100_000))));
        assert!(!millis.is_repeated_by(Some(given("second", 10_400_900))));
        assert!(millis.is_repeated_by(Some(given("second", 10_401_100))));
    }

    #[test]
    fn a_time_that_says_nothing_makes_no_repetition_of_what_a_later_attempt_says() {
        for completed in [3_100_001, 500 * SECOND] {
            let word = word(completed, 10_400_000);
            assert!(!word.is_repeated_by(Some(given("second", 11 * SECOND))));
            assert!(word.is_repeated_by(Some(given("first", 10 * SECOND))));
            let other = Given {
                task: id("other"),
                ..given("second", 11 * SECOND)
            };
            assert!(word.is_repeated_by(Some(other)), "of the same id");
        }
    }

    #[test]
    fn a_clock_that_is_ahead_tells_no_more_than_when_it_was_heard() {
        let word = word(15_000_001, 10_400_000);
        assert!(word.is_repeated_by(Some(given("second", 11 * SECOND))));
    }
}
