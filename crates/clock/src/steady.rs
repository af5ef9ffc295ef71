//! The machine's time, without its jumps.
//!
//! Somebody sets the clock of a machine, or a time server corrects it, by an hour perhaps. Leases, time-outs and
//! schedules are differences of two times, so an hour too many would end all leases at once, and an hour too few would
//! let them hold for an hour more. So a jump is taken over little by little: between two answers at least half and at
//! most one and a half of the time passes that has passed in truth, which the machine counts apart from its clock. What
//! differs by no more than [`FOLLOWED_US`] is the machine's own time. The time that a machine has slept has passed.

use super::{Clock, fresh_uuid};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use taskledger_domain::Timestamp;
use uuid::Uuid;

/// Microseconds by which the clock of a machine moves against its time since the start without having jumped.
const FOLLOWED_US: u64 = 1_000;
/// Microseconds of a jump forward that is taken over at once: the machine did not know the time until now.
const LEAP_US: i64 = 24 * 3_600 * 1_000_000;
/// Microseconds by which the machine's clock may be behind the answers before schedules follow it back at once. Vixie
/// cron, too, takes larger changes of the clock for corrections.
const BACK_US: i64 = 3 * 3_600 * 1_000_000;
/// Microseconds of a jump that is logged.
const WARNED_US: u64 = 60 * 1_000_000;
/// Microseconds between two answers of which at most half is taken over: whoever does not ask for long has not
/// noticed what happened meanwhile.
const NOTICED_US: i64 = 1_000_000;
/// Microseconds from which a machine counts as having slept: more than rounding and a pause of the program.
const SLEPT_US: i64 = 5_000_000;
/// Nothing was asked yet.
const UNKNOWN: i64 = i64::MIN;

/// The readings of a machine's clocks at one moment, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Since 1970, as far as the machine knows. May jump.
    pub wall_us: i64,
    /// Since some moment in the past, without times in which the machine slept. Never jumps.
    pub running_us: i64,
}

/// The source of readings.
pub trait Machine: fmt::Debug + Send + Sync + 'static {
    /// What it says now.
    fn read(&self) -> Reading;
    /// How many microseconds more it has slept than at some moment in the past, to a second.
    fn slept_us(&self) -> i64;
}

/// The machine that the program runs on.
#[derive(Debug)]
pub struct ThisMachine {
    begun: Instant,
}

impl Default for ThisMachine {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
        }
    }
}

impl ThisMachine {
    fn running_us(&self) -> i64 {
        i64::try_from(self.begun.elapsed().as_micros()).unwrap_or(i64::MAX)
    }
}

impl Machine for ThisMachine {
    #[expect(clippy::disallowed_methods, reason = "this is the clock port")]
    fn read(&self) -> Reading {
        let wall_us = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |d| i64::try_from(d.as_micros()).unwrap_or(i64::MAX));
        Reading {
            wall_us,
            running_us: self.running_us(),
        }
    }

    #[cfg(target_os = "linux")]
    fn slept_us(&self) -> i64 {
        // Since the start of the machine, sleep included.
        let awake_or_not_us = rustix::system::sysinfo().uptime.saturating_mul(1_000_000);
        awake_or_not_us - self.running_us()
    }

    /// Not known: what a machine has slept counts as a jump.
    #[cfg(not(target_os = "linux"))]
    fn slept_us(&self) -> i64 {
        0
    }
}

/// A clock that takes jumps of another over slowly. Cost of an answer: two readings; a lock only while a jump is taken
/// over.
#[derive(Debug)]
pub struct SteadyClock<M> {
    machine: M,
    /// The latest answer.
    latest: AtomicI64,
    /// What answers have more than the machine's running time.
    offset: AtomicI64,
    /// Whether schedules follow the machine's clock, because it was set back by hours.
    is_back: AtomicBool,
    /// Held while the offset is changed.
    known: Mutex<Known>,
}

/// The state of the machine when the offset was last changed.
#[derive(Debug)]
struct Known {
    /// How long it had slept.
    slept: i64,
    /// What its clock had more than its running time.
    offset: i64,
}

impl<M> SteadyClock<M> {
    /// The time of this machine.
    #[must_use]
    pub const fn of(machine: M) -> Self {
        Self {
            machine,
            latest: AtomicI64::new(0),
            offset: AtomicI64::new(UNKNOWN),
            is_back: AtomicBool::new(false),
            known: Mutex::new(Known {
                slept: 0,
                offset: UNKNOWN,
            }),
        }
    }
}

impl<M: Machine> SteadyClock<M> {
    /// The time while the machine's own one is another than the one before led to expect.
    fn adjusted(&self, reading: Reading) -> i64 {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut offset, wanted) = (
            self.offset.load(Ordering::Relaxed),
            reading.wall_us - reading.running_us,
        );
        let slept_us = self.machine.slept_us();
        let more_us = slept_us - known.slept;
        if offset == UNKNOWN || wanted - offset > LEAP_US {
            warn_of_jump(known.offset, wanted, true);
            known.slept = slept_us;
            offset = wanted;
        } else {
            if more_us >= SLEPT_US {
                // The machine slept for this long, as far as the clock agrees.
                let slept_us_agreed = more_us.min((wanted - offset).max(0));
                offset += slept_us_agreed;
                known.offset = known.offset.saturating_add(slept_us_agreed);
                known.slept = slept_us;
            }
            warn_of_jump(known.offset, wanted, false);
            let passed = reading.running_us + offset - self.latest.load(Ordering::Relaxed);
            let most = passed.clamp(0, NOTICED_US) / 2;
            offset += (wanted - offset).clamp(-most, most);
        }
        known.offset = wanted;
        if offset - wanted > BACK_US {
            self.is_back.store(true, Ordering::Relaxed);
        }
        self.offset.store(offset, Ordering::Relaxed);
        let micros = reading.running_us + offset;
        // Before the next one changes the offset: what has passed counts once.
        self.latest.fetch_max(micros, Ordering::Relaxed);
        micros
    }
}

impl<M: Default> Default for SteadyClock<M> {
    fn default() -> Self {
        Self::of(M::default())
    }
}

impl<M: Machine> Clock for SteadyClock<M> {
    fn now(&self) -> Timestamp {
        let reading = self.machine.read();
        let offset = self.offset.load(Ordering::Relaxed);
        let jumped = offset.abs_diff(reading.wall_us - reading.running_us) > FOLLOWED_US;
        let micros = if jumped {
            self.adjusted(reading)
        } else {
            self.is_back.store(false, Ordering::Relaxed);
            reading.wall_us
        };
        Timestamp(self.latest.fetch_max(micros, Ordering::Relaxed).max(micros))
    }

    fn wall(&self) -> Timestamp {
        Timestamp(self.machine.read().wall_us)
    }

    fn civil(&self) -> Timestamp {
        let now = self.now();
        match self.is_back.load(Ordering::Relaxed) {
            true => self.wall(),
            false => now,
        }
    }

    fn uuid(&self) -> Uuid {
        fresh_uuid()
    }
}

/// Logs that the machine's clock has jumped, if it has: what it has more than the machine's running time has changed.
fn warn_of_jump(before: i64, after: i64, is_followed: bool) {
    if before == UNKNOWN || before.abs_diff(after) < WARNED_US {
        return;
    }
    let seconds = (i128::from(after) - i128::from(before)) / 1_000_000;
    let follows = if is_followed { "at once" } else { "gradually" };
    tracing::warn!(
        clock.jump_seconds = %seconds,
        "the clock of this machine jumped; the time of the server follows {follows}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const SECOND: i64 = 1_000_000;
    const HOUR: i64 = 3_600 * SECOND;
    /// When the machine says that it is, at first.
    const BEGIN: i64 = 1_767_225_600 * SECOND;

    /// A machine whose time the test sets.
    #[derive(Debug, Clone)]
    struct Set(Arc<Mutex<(Reading, i64)>>);

    impl Set {
        fn new() -> Self {
            let reading = Reading {
                wall_us: BEGIN,
                running_us: 5 * SECOND,
            };
            Self(Arc::new(Mutex::new((reading, 90 * SECOND))))
        }

        fn passes(&self, micros: i64) {
            let mut said = self.0.lock().expect("no test panics here");
            said.0.wall_us += micros;
            said.0.running_us += micros;
        }

        fn jumps(&self, micros: i64) {
            self.0.lock().expect("no test panics here").0.wall_us += micros;
        }

        fn sleeps(&self, micros: i64) {
            let mut said = self.0.lock().expect("no test panics here");
            said.0.wall_us += micros;
            said.1 += micros;
        }
    }

    impl Machine for Set {
        fn read(&self) -> Reading {
            self.0.lock().expect("no test panics here").0
        }

        fn slept_us(&self) -> i64 {
            self.0.lock().expect("no test panics here").1
        }
    }

    /// A clock that was asked, and its machine.
    fn clock() -> (SteadyClock<Set>, Set) {
        let machine = Set::new();
        let clock = SteadyClock::of(machine.clone());
        assert_eq!(clock.now(), Timestamp(BEGIN));
        (clock, machine)
    }

    /// How much time passes for the clock while so much passes in truth, asked each tenth of a second.
    fn passed(clock: &SteadyClock<Set>, machine: &Set, micros: i64) -> i64 {
        let before = clock.now().0;
        for _ in 0..micros / (SECOND / 10) {
            let earlier = clock.now();
            machine.passes(SECOND / 10);
            assert!(clock.now() > earlier, "it never stands still");
        }
        clock.now().0 - before
    }

    #[test]
    fn it_is_the_time_of_the_machine() {
        let (clock, machine) = clock();
        assert_eq!(passed(&clock, &machine, 60 * SECOND), 60 * SECOND);
        machine.passes(HOUR);
        assert_eq!(clock.now(), Timestamp(BEGIN + 60 * SECOND + HOUR));
    }

    #[test]
    fn an_hour_more_does_not_end_what_was_to_last_a_minute() {
        let (clock, machine) = clock();
        machine.jumps(HOUR);
        assert_eq!(clock.now(), Timestamp(BEGIN), "no time has passed");
        assert_eq!(passed(&clock, &machine, 20 * SECOND), 30 * SECOND);
        // After two hours it is again what the machine says.
        passed(&clock, &machine, 2 * HOUR - 20 * SECOND);
        assert_eq!(clock.now(), Timestamp(machine.read().wall_us));
        assert_eq!(passed(&clock, &machine, 60 * SECOND), 60 * SECOND);
    }

    #[test]
    fn an_hour_less_lets_nothing_last_for_an_hour_more() {
        let (clock, machine) = clock();
        machine.jumps(-HOUR);
        assert_eq!(passed(&clock, &machine, 120 * SECOND), 60 * SECOND);
        passed(&clock, &machine, 2 * HOUR - 120 * SECOND);
        assert_eq!(clock.now(), Timestamp(machine.read().wall_us));
    }

    #[test]
    fn what_happened_while_nobody_asked_is_taken_over_little_by_little_too() {
        let (clock, machine) = clock();
        machine.passes(HOUR);
        machine.jumps(HOUR);
        let now = clock.now().0;
        assert_eq!(now, BEGIN + HOUR + SECOND / 2);
    }

    #[test]
    fn a_machine_that_did_not_know_the_day_is_believed_when_it_does() {
        let (clock, machine) = clock();
        machine.jumps(25 * HOUR);
        assert_eq!(clock.now(), Timestamp(BEGIN + 25 * HOUR));
        machine.jumps(-25 * HOUR);
        assert_eq!(passed(&clock, &machine, SECOND), SECOND / 2);
    }

    #[test]
    fn schedules_follow_a_clock_that_comes_back_from_another_day_at_once() {
        let (clock, machine) = clock();
        machine.jumps(25 * HOUR);
        assert_eq!(clock.civil(), Timestamp(BEGIN + 25 * HOUR));
        machine.passes(60 * SECOND);
        machine.jumps(-25 * HOUR);
        assert_eq!(clock.civil(), Timestamp(BEGIN + 60 * SECOND));
        assert!(
            clock.now() >= Timestamp(BEGIN + 25 * HOUR),
            "it never runs back"
        );
        machine.passes(HOUR);
        assert_eq!(clock.civil(), Timestamp(BEGIN + 60 * SECOND + HOUR));
        // Both are the same again once the other one has come there too.
        passed(&clock, &machine, 52 * HOUR);
        assert_eq!(clock.civil(), clock.now());
        assert_eq!(clock.now(), Timestamp(machine.read().wall_us));
        machine.jumps(-HOUR);
        assert!(
            clock.civil() > Timestamp(machine.read().wall_us),
            "an hour is slewed"
        );
    }

    #[test]
    fn what_other_machines_compare_follows_a_jump_at_once() {
        for jump in [HOUR, -HOUR] {
            let (clock, machine) = clock();
            machine.jumps(jump);
            assert_eq!(clock.wall(), Timestamp(BEGIN + jump));
            assert_eq!(clock.now(), Timestamp(BEGIN));
            machine.passes(SECOND);
            assert_eq!(clock.wall(), Timestamp(BEGIN + jump + SECOND));
            assert!((clock.now().0 - BEGIN) <= SECOND * 3 / 2);
        }
    }

    #[test]
    fn the_time_that_the_machine_has_slept_has_passed() {
        let (clock, machine) = clock();
        machine.sleeps(8 * HOUR);
        assert_eq!(clock.now(), Timestamp(BEGIN + 8 * HOUR));
        machine.jumps(HOUR);
        assert_eq!(passed(&clock, &machine, 20 * SECOND), 30 * SECOND);
    }

    #[test]
    fn this_machine_has_both_times_and_is_awake() {
        let machine = ThisMachine::default();
        let (first, second) = (machine.read(), machine.read());
        assert!(second.running_us >= first.running_us && first.running_us >= 0);
        assert!(first.wall_us > BEGIN / 2);
        let slept = machine.slept_us();
        assert!((machine.slept_us() - slept).abs() < SLEPT_US);
    }
}
