//! The retry schedule: when a message is tried again.
//!
//! A schedule is a list of pauses, one before each attempt. What a receiver asks for (`Retry-After`)
//! lengthens a pause, within bounds. Pure: the same delivery and attempt always give the same time, so
//! nothing has to be remembered of it.

use super::delivery::DeliveryId;
use std::time::Duration;
use taskledger_domain::Timestamp;

/// Seconds before each attempt, unless the endpoint has its own: about 28 hours in all. Enough for an
/// outage that somebody notices the next morning.
pub const DEFAULT_SECONDS: [u32; 8] = [0, 5, 300, 1_800, 7_200, 18_000, 36_000, 36_000];
/// Entries of a schedule at most.
pub const ENTRIES_MAX: usize = 20;
/// Seconds before one attempt at most: a week.
pub const SECONDS_MAX: u32 = 7 * 24 * 3600;
/// A pause is up to this much shorter or longer, so that messages that failed together do not come back
/// together; percent.
pub const JITTER_PERCENT: u64 = 20;
/// The shortest pause before an attempt that is not the first: a schedule of zeros is no loop; ms.
const PAUSE_MS_MIN: u64 = 1_000;
/// A receiver lengthens a pause to this multiple of what the schedule says at most.
const ASKED_SLOTS_MAX: u64 = 2;
/// A receiver lengthens a pause to a day at most; ms.
const ASKED_MS_MAX: u64 = 24 * 3_600 * 1_000;

/// When a delivery is tried again after attempt number `attempt` (from 1) of its schedule has failed at
/// `now`; `None`: that was the last one. `asked`: the pause that the receiver wants.
#[must_use]
pub fn next(
    seconds: &[u32],
    delivery: DeliveryId,
    attempt: u32,
    now: Timestamp,
    asked: Option<Duration>,
) -> Option<Timestamp> {
    let entry = seconds.get(usize::try_from(attempt).ok()?)?;
    let slot_ms = u64::from(*entry) * 1_000;
    let pause_ms = jittered(slot_ms, delivery, attempt).max(PAUSE_MS_MIN);
    let asked_ms = asked.map_or(0, |asked| {
        let bound = (slot_ms * ASKED_SLOTS_MAX).min(ASKED_MS_MAX);
        u64::try_from(asked.as_millis()).map_or(bound, |ms| ms.min(bound))
    });
    Some(now.plus_ms(pause_ms.max(asked_ms)))
}

/// Between 80 and 120 percent, told by the delivery and the attempt.
fn jittered(slot_ms: u64, delivery: DeliveryId, attempt: u32) -> u64 {
    let spread = slot_ms * JITTER_PERCENT / 100;
    let mixed = mix(delivery.0.cast_unsigned() ^ (u64::from(attempt) << 48));
    slot_ms - spread + mixed % (2 * spread + 1)
}

/// The last step of `SplitMix64`: neighbours become far apart.
const fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp(1_767_225_600_000_000); // 2026-01-01T00:00:00Z

    fn pause_ms(attempt: u32, asked: Option<u64>) -> Option<u64> {
        let asked = asked.map(Duration::from_secs);
        let at = next(&DEFAULT_SECONDS, DeliveryId(1), attempt, NOW, asked)?;
        Some(at.ms_since(NOW))
    }

    proptest! {
        #[test]
        fn each_pause_is_within_a_fifth_of_its_slot(id in any::<i64>(), attempt in 1_u32..8) {
            let slot = u64::from(DEFAULT_SECONDS[attempt as usize]) * 1000;

            let at = next(&DEFAULT_SECONDS, DeliveryId(id), attempt, NOW, None);

            let pause = at.expect("the schedule goes on").ms_since(NOW);
            prop_assert!((slot * 8 / 10..=slot * 12 / 10).contains(&pause), "{pause}");
            prop_assert_eq!(at, next(&DEFAULT_SECONDS, DeliveryId(id), attempt, NOW, None));
        }
    }

    #[test]
    fn messages_that_failed_together_do_not_come_back_together() {
        let pauses: std::collections::BTreeSet<_> = (0..1000)
            .filter_map(|id| next(&DEFAULT_SECONDS, DeliveryId(id), 2, NOW, None))
            .collect();
        assert!(pauses.len() > 950, "{} of 1000 differ", pauses.len());
    }

    #[test]
    fn after_the_last_slot_there_is_nothing() {
        assert!(pause_ms(7, None).is_some());
        assert_eq!(pause_ms(8, None), None);
        assert_eq!(pause_ms(u32::MAX, None), None);
        assert_eq!(next(&[], DeliveryId(1), 1, NOW, None), None);
    }

    #[test]
    fn a_schedule_of_zeros_pauses_all_the_same() {
        let at = next(&[0, 0], DeliveryId(1), 1, NOW, None);
        assert_eq!(at, Some(NOW.plus_ms(PAUSE_MS_MIN)));
    }

    #[test]
    fn a_receiver_lengthens_a_pause_up_to_twice_its_slot_and_a_day() {
        assert_eq!(pause_ms(1, Some(7)), Some(7_000));
        assert_eq!(pause_ms(1, Some(1_000_000_000)), Some(10_000));
        assert_eq!(pause_ms(1, Some(u64::MAX)), Some(10_000));
        assert_eq!(pause_ms(7, Some(u64::MAX)), Some(72_000_000));
        let long = next(
            &[0, 60_000],
            DeliveryId(1),
            1,
            NOW,
            Some(Duration::from_secs(200_000)),
        );
        assert_eq!(long, Some(NOW.plus_ms(ASKED_MS_MAX)));
    }

    #[test]
    fn a_receiver_shortens_no_pause() {
        assert_eq!(pause_ms(2, Some(0)), pause_ms(2, None));
        assert_eq!(pause_ms(2, Some(1)), pause_ms(2, None));
    }
}
