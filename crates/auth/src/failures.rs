//! Counts failed authentications by address: an address that fails too often is turned away before anything is looked
//! up.
//!
//! Counts addresses only. A token or a user is never locked: anybody could lock out anybody.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Failures of one address within [`WINDOW_MS`] after which it has to wait.
pub const FAILURES_MAX: usize = 10;
/// Milliseconds for which a failure counts.
pub const WINDOW_MS: i64 = 60_000;
/// Addresses that are remembered, those that failed first dropped first: about 10 MB.
const ADDRESSES_MAX: usize = 65_536;

/// The address has failed too often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many failed authentications from this address; retry after {retry_after_ms} ms")]
pub struct TooManyFailures {
    /// Milliseconds after which one more attempt is allowed; at least 1.
    pub retry_after_ms: u64,
}

/// Recent failures by address. One per server; each node counts for itself.
#[derive(Debug, Default)]
pub struct Failures {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    addresses: HashMap<IpAddr, Times>,
    /// The addresses by their first failure.
    order: VecDeque<IpAddr>,
}

/// When an address failed, in milliseconds since 1970: a ring, of which `next` is written next.
#[derive(Debug, Clone, Copy)]
struct Times {
    at_ms: [i64; FAILURES_MAX],
    next: usize,
}

impl Failures {
    /// Nobody has failed.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the address may try. To be asked before anything else is done with its credentials. Cost: O(1).
    ///
    /// # Errors
    /// [`TooManyFailures`]: it has to wait.
    pub fn check(&self, address: IpAddr, now_ms: i64) -> Result<(), TooManyFailures> {
        let address = network(address);
        let oldest = self.lock().addresses.get(&address).map(Times::oldest);
        let ends = oldest.map_or(i64::MIN, |oldest| oldest.saturating_add(WINDOW_MS));
        match u64::try_from(ends.saturating_sub(now_ms)) {
            Ok(retry_after_ms) if retry_after_ms > 0 => Err(TooManyFailures { retry_after_ms }),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Counts a failed authentication. Says how many failures of the address count now, up to
    /// [`FAILURES_MAX`]. Cost: O(1), amortised.
    pub fn failed(&self, address: IpAddr, now_ms: i64) -> usize {
        let address = network(address);
        let mut known = self.lock();
        if !known.addresses.contains_key(&address) {
            known.make_room(now_ms);
            known.order.push_back(address);
        }
        let times = known.addresses.entry(address).or_insert(Times::NEVER);
        times.at_ms[times.next] = now_ms;
        times.next = (times.next + 1) % FAILURES_MAX;
        times.counting(now_ms)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Times {
    const NEVER: Self = Self {
        at_ms: [i64::MIN; FAILURES_MAX],
        next: 0,
    };

    /// When the tenth failure before now was.
    const fn oldest(&self) -> i64 {
        self.at_ms[self.next]
    }

    fn counting(&self, now_ms: i64) -> usize {
        let counts = |at: &&i64| at.saturating_add(WINDOW_MS) > now_ms;
        self.at_ms.iter().filter(counts).count()
    }
}

impl Known {
    /// Forgets those whose failures count no more, and one that does when that is not enough.
    fn make_room(&mut self, now_ms: i64) {
        while let Some(first) = self.order.front().copied() {
            let counting = self.addresses.get(&first).map_or(0, |t| t.counting(now_ms));
            if counting > 0 && self.order.len() < ADDRESSES_MAX {
                return;
            }
            self.order.pop_front();
            self.addresses.remove(&first);
            if counting > 0 {
                return;
            }
        }
    }
}

/// What counts as one address: of IPv6 the network that one customer is given, since he has 2^64 addresses in it.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn ten_failures_a_minute_are_allowed() {
        let failures = Failures::new();
        let (ann, bob) = (address("192.0.2.1"), address("192.0.2.2"));
        for n in 0..10 {
            assert_eq!(failures.check(ann, n * 1000), Ok(()));
            assert_eq!(failures.failed(ann, n * 1000), n as usize + 1);
        }
        let refused = |retry_after_ms| Err(TooManyFailures { retry_after_ms });
        assert_eq!(failures.check(ann, 9_000), refused(51_000));
        assert_eq!(failures.check(ann, 59_999), refused(1));
        assert_eq!(failures.check(bob, 9_000), Ok(()));
        assert_eq!(failures.check(ann, 60_000), Ok(()));
        failures.failed(ann, 60_000);
        assert_eq!(failures.check(ann, 60_000), refused(1_000));
        assert_eq!(failures.check(ann, 61_000), Ok(()));
    }

    #[test]
    fn being_turned_away_does_not_count() {
        let failures = Failures::new();
        let ann = address("192.0.2.1");
        (0..10).for_each(|_| _ = failures.failed(ann, 0));
        (0..1000).for_each(|_| assert!(failures.check(ann, 1).is_err()));
        assert_eq!(failures.check(ann, 60_000), Ok(()));
    }

    #[test]
    fn addresses_of_one_network_count_together() {
        let failures = Failures::new();
        for n in 0..10 {
            failures.failed(address(&format!("2001:db8:1:2::{n:x}")), 0);
            failures.failed(address("::ffff:192.0.2.1"), 0);
        }
        assert!(failures.check(address("2001:db8:1:2:ffff::"), 0).is_err());
        assert!(failures.check(address("2001:db8:1:3::"), 0).is_ok());
        assert!(failures.check(address("192.0.2.1"), 0).is_err());
        assert!(failures.check(address("192.0.2.2"), 0).is_ok());
    }

    #[test]
    fn the_map_is_bounded_and_forgets_whoever_failed_long_ago() {
        let failures = Failures::new();
        let nth = |n: u32| IpAddr::V4((0x0a00_0000 + n).into());
        for n in 0..ADDRESSES_MAX as u32 + 1000 {
            failures.failed(nth(n), 0);
        }
        let known = |failures: &Failures| {
            let known = failures.lock();
            assert_eq!(known.addresses.len(), known.order.len());
            known.order.len()
        };
        assert_eq!(known(&failures), ADDRESSES_MAX);
        failures.failed(address("192.0.2.1"), WINDOW_MS);
        assert_eq!(known(&failures), 1);
    }
}
