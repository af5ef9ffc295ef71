//! Turns for large calls: a caller has only a few of them under way at a time, so that other callers are served in
//! between.
//!
//! A call that makes many tasks takes a processor for milliseconds. What a caller may ask for in one burst would
//! otherwise stand before everybody else's calls. While other callers are there, the turn of a large call rests behind
//! it for as long as it took, so that what it wrote is folded and told, and the calls of others are carried out. When
//! one was refused because of its caller's rate, the next body is read once there is room in the rate for another like
//! it: to read one only to refuse it costs nearly as much as to carry it out.

use super::recent::{Key, Recent, key_of};
use super::turn::{Held, Turn};
use crate::application::context::Context;
use crate::application::error::Error;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::available_parallelism;
use std::time::Duration;
use taskledger_auth::{Caller, Kind};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until, timeout_at};

/// Tasks of a call that waits for no turn.
const SMALL_CALL_TASKS_MAX: usize = 16;
/// Bytes of a call that is read without a turn: about as many as that many tasks have.
const SMALL_CALL_BYTES_MAX: usize = 8 * 1024;
/// Processors for each large call of one caller that is under way at a time on a node; there is always one such call.
const PROCESSORS_PER_LARGE_CALL: usize = 2;
/// Large calls of one caller that wait for their turn at a time: each holds its room among the requests.
const WAITING_MAX: usize = 64;
/// KiB of the calls of one caller that have come and wait, or are under way: a quarter of what may be in hand of all.
const WAITING_KIB_MAX: u32 = 64 * 1024;
/// Callers that are kept before those without a call are forgotten.
const CALLERS_KEPT: usize = 1_024;
/// What a caller is told to wait whose call ran out of time before its turn, in milliseconds.
const RETRY_AFTER_MS: u64 = 1_000;

/// The longest that a body waits for room in its caller's rate before it is read.
const RATE_WAIT_MAX: Duration = Duration::from_millis(250);

/// The large calls under way, by caller.
#[derive(Debug)]
pub(super) struct Turns {
    callers: Mutex<HashMap<Key, Arc<Places>>>,
    recent: Arc<Recent>,
    /// Large calls of one caller that are under way at a time.
    under_way_max: usize,
}

/// The places of one caller.
#[derive(Debug)]
struct Places {
    /// To wait or be under way.
    room: Arc<Semaphore>,
    /// KiB that may wait or be under way.
    kib: Arc<Semaphore>,
    under_way: Arc<Semaphore>,
    /// Until then the rate has no room for a call like the last one that was refused.
    rate_has_room_at: Mutex<Option<Instant>>,
}

impl Places {
    fn rate_has_room_at(&self) -> MutexGuard<'_, Option<Instant>> {
        let at = self.rate_has_room_at.lock();
        at.expect("no code panics with it")
    }

    /// When there is room in the rate, unless that is now.
    fn has_room_at(&self) -> Option<Instant> {
        self.rate_has_room_at().take_if(|at| *at > Instant::now())
    }
}

impl Turns {
    /// On a machine with so many processors.
    fn on(processors: usize) -> Self {
        Self {
            callers: Mutex::default(),
            recent: Arc::default(),
            under_way_max: (processors / PROCESSORS_PER_LARGE_CALL).max(1),
        }
    }

    /// On this machine.
    pub(super) fn new() -> Self {
        Self::on(available_parallelism().map_or(1, usize::from))
    }

    /// A caller is there. Cost: O(1).
    pub(super) fn note(&self, caller: &Caller) {
        if caller.kind() != Kind::Anonymous {
            self.recent.note(caller, Instant::now());
        }
    }

    /// Waits until a call with so many tasks may begin; small calls, and all while authentication is off, may at once.
    /// Large calls of a caller begin in the order in which they came. Cost: O(1).
    ///
    /// # Errors
    /// `Busy`: the time of the call ended before its turn came, or too many wait; nothing was done.
    pub(super) async fn wait(&self, context: &Context, tasks: usize) -> Result<Turn, Error> {
        let early = context.early_turn.take();
        if tasks <= SMALL_CALL_TASKS_MAX {
            return Ok(Turn { held: None });
        }
        match early {
            Some(turn) => Ok(turn),
            // What it has in hand was counted when it was received.
            None => self.next(&context.caller, 0, context.deadline).await,
        }
    }

    /// Waits until a call of so many bytes may be read, which costs about as much as what follows; `None` for one that
    /// needs no turn, and while as many wait as may: it may turn out to be a call that waits for none.
    ///
    /// # Errors
    /// `Busy`: the time of the call ended before its turn came, or too many bytes wait; nothing was done.
    pub(super) async fn to_read(
        &self,
        caller: &Caller,
        bytes: usize,
        deadline: Instant,
    ) -> Result<Option<Turn>, Error> {
        if bytes <= SMALL_CALL_BYTES_MAX || caller.kind() == Kind::Anonymous {
            return Ok(None);
        }
        if self.of(caller).room.available_permits() == 0 {
            return Ok(None);
        }
        let mut turn = self.next(caller, bytes, Some(deadline)).await?;
        let has_room_at = self.of(caller).has_room_at();
        if let Some(at) = has_room_at {
            sleep_until(at.min(deadline)).await;
            // It did nothing meanwhile, so it need not rest for that.
            if let Some(held) = &mut turn.held {
                held.began = Instant::now();
            }
        }
        Ok(Some(turn))
    }

    /// A call with so many tasks was refused: its caller's rate has room for it after `wait`.
    pub(super) fn refused(&self, caller: &Caller, tasks: usize, wait: Duration) {
        if tasks > SMALL_CALL_TASKS_MAX && caller.kind() != Kind::Anonymous {
            let at = Instant::now() + wait.min(RATE_WAIT_MAX);
            *self.of(caller).rate_has_room_at() = Some(at);
        }
    }

    async fn next(
        &self,
        caller: &Caller,
        bytes: usize,
        deadline: Option<Instant>,
    ) -> Result<Turn, Error> {
        if caller.kind() == Kind::Anonymous {
            return Ok(Turn { held: None });
        }
        let busy = || busy(self.under_way_max);
        let places = self.of(caller);
        let room = places.room.clone().try_acquire_owned();
        let room = room.map_err(|_| busy())?;
        // One that is larger than all that may wait has all of it.
        let kib = u32::try_from(bytes.div_ceil(1024))
            .map_or(WAITING_KIB_MAX, |kib| kib.min(WAITING_KIB_MAX));
        let kib = places.kib.clone().try_acquire_many_owned(kib);
        let kib = kib.map_err(|_| busy())?;
        let turn = places.under_way.clone().acquire_owned();
        let permit = match deadline {
            None => turn.await,
            Some(deadline) => timeout_at(deadline, turn).await.map_err(|_| busy())?,
        };
        let permit = permit.expect("nobody closes it");
        Ok(Turn {
            held: Some(Held {
                _room: room,
                _kib: kib,
                under_way: permit,
                began: Instant::now(),
                caller: key_of(caller),
                recent: self.recent.clone(),
            }),
        })
    }

    fn of(&self, caller: &Caller) -> Arc<Places> {
        let key = key_of(caller);
        let room = WAITING_MAX + self.under_way_max;
        let mut callers = self.callers.lock().expect("no code panics with it");
        if callers.len() >= CALLERS_KEPT {
            // Whoever waits or has a turn holds room; a turn that rests is under way.
            let is_used = |places: &Places| {
                places.room.available_permits() < room
                    || places.under_way.available_permits() < self.under_way_max
            };
            callers.retain(|_, places| Arc::strong_count(places) > 1 || is_used(places));
        }
        let places = callers.entry(key).or_insert_with(|| {
            Arc::new(Places {
                room: Arc::new(Semaphore::new(room)),
                kib: Arc::new(Semaphore::new(WAITING_KIB_MAX as usize)),
                under_way: Arc::new(Semaphore::new(self.under_way_max)),
                rate_has_room_at: Mutex::new(None),
            })
        });
        places.clone()
    }
}

fn busy(under_way: usize) -> Error {
    let reason = format!(
        "the caller has {under_way} calls with more than {SMALL_CALL_TASKS_MAX} tasks or {SMALL_CALL_BYTES_MAX} bytes \
         under way, and others wait"
    );
    Error::Busy {
        reason,
        retry_after_ms: RETRY_AFTER_MS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::limits::EarlyTurn;
    use futures_util::FutureExt;
    use taskledger_auth::{Caller, Name, Scopes};
    use tokio::time::sleep;

    fn by(user: &str) -> Context {
        let name = Name::new(user).expect("a name");
        Context::of(
            Arc::new(Caller::user(&name, Scopes::NONE)),
            Arc::from("test"),
        )
    }

    const LARGE: usize = SMALL_CALL_TASKS_MAX + 1;
    const PROCESSORS: usize = 2 * PROCESSORS_PER_LARGE_CALL;

    #[tokio::test]
    async fn a_turn_to_read_is_that_of_the_first_request() {
        let turns = Turns::on(1);
        let mut ann = by("ann");
        let soon = Instant::now() + std::time::Duration::from_secs(60);
        let small = turns.to_read(&ann.caller, SMALL_CALL_BYTES_MAX, soon).await;
        assert!(small.expect("room").is_none());
        let caller = ann.caller.clone();
        let large = || turns.to_read(&caller, SMALL_CALL_BYTES_MAX + 1, soon);
        let turn = large().await.expect("room").expect("a turn");
        assert!(large().now_or_never().is_none());
        ann.early_turn = EarlyTurn::of(turn);
        let first = turns.wait(&ann, LARGE).now_or_never();
        assert!(first.is_some(), "it has its turn");
        drop(first);
        let turn = large().await.expect("room").expect("a turn");
        ann.early_turn = EarlyTurn::of(turn);
        let small = turns.wait(&ann, SMALL_CALL_TASKS_MAX).now_or_never();
        assert!(small.is_some());
        assert!(large().now_or_never().is_some(), "a small one needs none");
        assert!(
            turns.wait(&ann, LARGE).now_or_never().is_some(),
            "the first one is over"
        );
    }

    #[tokio::test]
    async fn large_calls_of_one_caller_wait_for_each_other_and_for_nobody_else() {
        let turns = Turns::on(PROCESSORS);
        let (ann, bob) = (by("ann"), by("bob"));
        let mut under_way = Vec::new();
        for _ in 0..turns.under_way_max {
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

    #[tokio::test(start_paused = true)]
    async fn a_turn_rests_as_long_as_it_took_while_others_are_there() {
        let turns = Turns::on(1);
        let (ann, bob) = (by("ann"), by("bob"));
        let call = async |millis| {
            let turn = turns.wait(&ann, LARGE).await.expect("room");
            turns.note(&ann.caller);
            sleep(Duration::from_millis(millis)).await;
            drop(turn);
            let ended = Instant::now();
            drop(turns.wait(&ann, LARGE).await.expect("room"));
            ended.elapsed()
        };
        assert_eq!(call(30).await, Duration::ZERO, "nobody else is there");
        turns.note(&bob.caller);
        let rest = call(30).await;
        assert!((30..32).contains(&rest.as_millis()), "{rest:?}");
        turns.note(&bob.caller);
        let rest = call(900).await;
        assert!((900..902).contains(&rest.as_millis()), "{rest:?}");
        assert_eq!(call(30).await, Duration::ZERO, "the other one has left");
        let started = Instant::now();
        turns.note(&ann.caller);
        drop(turns.wait(&bob, LARGE).await.expect("room"));
        drop(turns.wait(&ann, LARGE).await.expect("room"));
        assert_eq!(started.elapsed(), Duration::ZERO, "each rests alone");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_behind_one_that_was_refused_is_read_once_the_rate_has_room() {
        let turns = Turns::on(1);
        let (ann, bob) = (by("ann").caller, by("bob").caller);
        let read = async |caller| {
            let begun = Instant::now();
            let soon = begun + Duration::from_secs(60);
            let turn = turns.to_read(caller, SMALL_CALL_BYTES_MAX + 1, soon).await;
            drop(turn.expect("room"));
            begun.elapsed()
        };
        let wait = Duration::from_millis(50);
        turns.refused(&ann, SMALL_CALL_TASKS_MAX, wait);
        assert_eq!(read(&ann).await, Duration::ZERO, "a small one waits apart");
        turns.refused(&ann, LARGE, wait);
        assert_eq!(read(&bob).await, Duration::ZERO);
        let waited = read(&ann).await;
        assert!((50..52).contains(&waited.as_millis()), "{waited:?}");
        assert_eq!(read(&ann).await, Duration::ZERO);
        turns.refused(&ann, LARGE, Duration::from_secs(60));
        let waited = read(&ann).await;
        assert!((RATE_WAIT_MAX..RATE_WAIT_MAX + Duration::from_millis(2)).contains(&waited));
    }

    #[tokio::test]
    async fn bytes_that_wait_are_bounded() {
        let turns = Turns::on(1);
        let (ann, bob) = (by("ann").caller, by("bob").caller);
        let soon = Instant::now() + std::time::Duration::from_secs(60);
        let bytes = WAITING_KIB_MAX as usize * 1024;
        let first = turns.to_read(&ann, bytes - 1024, soon).await;
        let mut second = Box::pin(turns.to_read(&ann, SMALL_CALL_BYTES_MAX + 1, soon));
        assert!(matches!(
            second.as_mut().now_or_never(),
            Some(Err(Error::Busy { .. }))
        ));
        assert!(turns.to_read(&bob, 2 * bytes, soon).await.is_ok());
        drop(first);
        assert!(turns.to_read(&ann, bytes, soon).await.is_ok());
    }

    #[tokio::test]
    async fn calls_that_wait_are_bounded() {
        let turns = Turns::on(PROCESSORS);
        let ann = by("ann");
        let mut under_way = Vec::new();
        for _ in 0..turns.under_way_max {
            under_way.push(turns.wait(&ann, LARGE).await.expect("room"));
        }
        let mut waiting = Vec::new();
        for _ in 0..WAITING_MAX {
            waiting.push(Box::pin(turns.wait(&ann, LARGE)));
        }
        for call in &mut waiting {
            assert!(call.as_mut().now_or_never().is_none());
        }
        let soon = Instant::now() + std::time::Duration::from_secs(60);
        let read = turns.to_read(&ann.caller, SMALL_CALL_BYTES_MAX + 1, soon);
        let read = read.now_or_never().expect("it does not wait");
        assert!(read.expect("it may be read").is_none());
        let refused = turns.wait(&ann, LARGE).now_or_never();
        assert!(
            matches!(refused, Some(Err(Error::Busy { .. }))),
            "{refused:?}"
        );
        assert!(turns.wait(&by("bob"), LARGE).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_whose_time_ends_before_its_turn_is_refused() {
        let turns = Turns::on(PROCESSORS);
        let ann = by("ann");
        let mut under_way = Vec::new();
        for _ in 0..turns.under_way_max {
            under_way.push(turns.wait(&ann, LARGE).await.expect("room"));
        }
        let soon = tokio::time::Instant::now() + std::time::Duration::from_secs(1);
        let late = turns.wait(&by("ann").until(Some(soon)), LARGE).await;
        assert!(matches!(late, Err(Error::Busy { .. })), "{late:?}");
    }

    #[tokio::test]
    async fn callers_without_a_call_are_forgotten() {
        let turns = Turns::on(PROCESSORS);
        for n in 0..=CALLERS_KEPT {
            turns
                .wait(&by(&format!("u{n}")), LARGE)
                .await
                .expect("room");
        }
        assert_eq!(turns.callers.lock().expect("not poisoned").len(), 1);
    }
}
