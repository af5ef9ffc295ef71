//! Turns of large calls: one caller has a few of them under way at a time, so that the calls of others get between.
//!
//! A call that makes many tasks takes a processor for milliseconds. What a caller may ask for in one burst would
//! otherwise stand before everybody else's calls.

use crate::application::context::Context;
use crate::application::error::Error;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use taskledger_auth::Kind;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout_at;

/// Tasks of a call that waits for no turn.
const SMALL_CALL_TASKS_MAX: usize = 16;
/// Large calls of one caller that are under way at a time on a node.
const LARGE_CALLS_MAX: usize = 2;
/// Large calls of one caller that wait for their turn at a time: each holds its room among the requests.
const WAITING_MAX: usize = 64;
/// Both together.
const ROOM: usize = WAITING_MAX + LARGE_CALLS_MAX;
/// Callers that are kept before those without a call are forgotten.
const CALLERS_KEPT: usize = 1_024;
/// What a caller is told to wait whose call ran out of time before its turn, in milliseconds.
const RETRY_AFTER_MS: u64 = 1_000;

/// Of which caller: tenant and actor.
type Key = (Arc<str>, Arc<str>);

/// Who has large calls under way.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<Key, Arc<Places>>>);

/// Of one caller.
#[derive(Debug)]
struct Places {
    /// To wait or be under way.
    room: Arc<Semaphore>,
    under_way: Arc<Semaphore>,
}

/// The turn of a large call, which lasts until this is dropped.
#[derive(Debug)]
pub struct Turn {
    _permits: Option<[OwnedSemaphorePermit; 2]>,
}

impl Turns {
    /// Waits until a call with so many tasks may begin; small calls, and all while authentication is off, may at once.
    /// Large calls of a caller begin in the order in which they came. Cost: O(1).
    ///
    /// # Errors
    /// `Busy`: the time of the call ended before its turn came, or too many wait; nothing was done.
    pub(super) async fn wait(&self, context: &Context, tasks: usize) -> Result<Turn, Error> {
        if tasks <= SMALL_CALL_TASKS_MAX || context.caller.kind() == Kind::Anonymous {
            return Ok(Turn { _permits: None });
        }
        let places = self.of(context);
        let room = places.room.clone().try_acquire_owned();
        let room = room.map_err(|_| busy())?;
        let turn = places.under_way.clone().acquire_owned();
        let permit = match context.deadline {
            None => turn.await,
            Some(deadline) => timeout_at(deadline, turn).await.map_err(|_| busy())?,
        };
        let permit = permit.expect("nobody closes it");
        Ok(Turn {
            _permits: Some([room, permit]),
        })
    }

    fn of(&self, context: &Context) -> Arc<Places> {
        let caller = &context.caller;
        let key = (caller.tenant().clone(), caller.actor().clone());
        let mut callers = self.0.lock().expect("no code panics with it");
        if callers.len() >= CALLERS_KEPT {
            // Whoever waits or has a turn holds room.
            let is_used = |places: &Places| places.room.available_permits() < ROOM;
            callers.retain(|_, places| Arc::strong_count(places) > 1 || is_used(places));
        }
        let places = callers.entry(key).or_insert_with(|| {
            Arc::new(Places {
                room: Arc::new(Semaphore::new(ROOM)),
                under_way: Arc::new(Semaphore::new(LARGE_CALLS_MAX)),
            })
        });
        places.clone()
    }
}

fn busy() -> Error {
    let reason = format!(
        "the caller has {LARGE_CALLS_MAX} calls with more than {SMALL_CALL_TASKS_MAX} tasks under way"
    );
    Error::Busy {
        reason,
        retry_after_ms: RETRY_AFTER_MS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use taskledger_auth::{Caller, Name, Scopes};

    fn by(user: &str) -> Context {
        let name = Name::new(user).expect("a name");
        Context::of(
            Arc::new(Caller::user(&name, Scopes::NONE)),
            Arc::from("test"),
        )
    }

    const LARGE: usize = SMALL_CALL_TASKS_MAX + 1;

    #[tokio::test]
    async fn large_calls_of_one_caller_wait_for_each_other_and_for_nobody_else() {
        let turns = Turns::default();
        let (ann, bob) = (by("ann"), by("bob"));
        let mut under_way = Vec::new();
        for _ in 0..LARGE_CALLS_MAX {
            under_way.push(turns.wait(&ann, LARGE).await.expect("room"));
        }
        assert!(turns.wait(&ann, LARGE).now_or_never().is_none());
        assert!(
            turns
                .wait(&ann, SMALL_CALL_TASKS_MAX)
                .now_or_never()
                .is_some()
        );
        assert!(turns.wait(&bob, LARGE).now_or_never().is_some());
        under_way.pop();
        assert!(turns.wait(&ann, LARGE).now_or_never().is_some());
    }

    #[tokio::test]
    async fn calls_that_wait_are_bounded() {
        let turns = Turns::default();
        let ann = by("ann");
        let mut under_way = Vec::new();
        for _ in 0..LARGE_CALLS_MAX {
            under_way.push(turns.wait(&ann, LARGE).await.expect("room"));
        }
        let mut waiting = Vec::new();
        for _ in 0..WAITING_MAX {
            waiting.push(Box::pin(turns.wait(&ann, LARGE)));
        }
        for call in &mut waiting {
            assert!(call.as_mut().now_or_never().is_none());
        }
        let refused = turns.wait(&ann, LARGE).now_or_never();
        assert!(
            matches!(refused, Some(Err(Error::Busy { .. }))),
            "{refused:?}"
        );
        assert!(turns.wait(&by("bob"), LARGE).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_whose_time_ends_before_its_turn_is_refused() {
        let turns = Turns::default();
        let ann = by("ann");
        let mut under_way = Vec::new();
        for _ in 0..LARGE_CALLS_MAX {
            under_way.push(turns.wait(&ann, LARGE).await.expect("room"));
        }
        let soon = tokio::time::Instant::now() + std::time::Duration::from_secs(1);
        let late = turns.wait(&by("ann").until(Some(soon)), LARGE).await;
        assert!(matches!(late, Err(Error::Busy { .. })), "{late:?}");
    }

    #[tokio::test]
    async fn callers_without_a_call_are_forgotten() {
        let turns = Turns::default();
        for n in 0..=CALLERS_KEPT {
            turns
                .wait(&by(&format!("u{n}")), LARGE)
                .await
                .expect("room");
        }
        assert_eq!(turns.0.lock().expect("not poisoned").len(), 1);
    }
}
