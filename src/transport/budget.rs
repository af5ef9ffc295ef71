//! A memory budget that many requests share: the total is never exceeded, and no caller takes what others need.
//!
//! A caller may hold as much as is left free afterwards. So one caller alone gets half of the budget, two get a third
//! each, and there is always room for one more: the caller who holds most is refused first.

use crate::application::api::Caller;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taskledger_auth::Kind;

/// Bits of an IPv6 address that stand for one client: providers give each one such a network.
const CLIENT_NETWORK_BITS: u32 = 64;

/// The caller that a request's part of a budget is counted for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    /// A user or service, by the name that histories have.
    Principal(Arc<str>),
    /// A client without credentials: its address, or the /64 of an IPv6 address.
    Address(IpAddr),
    /// A client without credentials whose address is not known.
    Unknown,
}

impl Holder {
    /// A caller, and the address of its client if that is known.
    pub(crate) fn of(caller: &Caller, address: Option<IpAddr>) -> Self {
        match caller.kind() {
            Kind::Anonymous => Self::at(address),
            Kind::User | Kind::Service => Self::Principal(caller.actor().clone()),
        }
    }

    /// A client without credentials at this address.
    pub(crate) fn at(address: Option<IpAddr>) -> Self {
        match address.map(|address| address.to_canonical()) {
            None => Self::Unknown,
            Some(IpAddr::V4(address)) => Self::Address(address.into()),
            Some(IpAddr::V6(address)) => {
                let network = address.to_bits() >> CLIENT_NETWORK_BITS << CLIENT_NETWORK_BITS;
                Self::Address(Ipv6Addr::from_bits(network).into())
            }
        }
    }
}

/// A number of bytes that may be in use at once.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    pot: Arc<Pot>,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct Pot {
    used: AtomicUsize,
    /// Bytes in use of each caller that has a share. Never more than requests are handled at once.
    of_holders: Mutex<HashMap<Holder, Arc<AtomicUsize>>>,
}

impl Pot {
    fn of_holders(&self) -> MutexGuard<'_, HashMap<Holder, Arc<AtomicUsize>>> {
        self.of_holders
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// There is no room for more at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// The caller holds as much as it may.
    Holder,
    /// All callers together do.
    All,
}

impl Full {
    /// Why an answer is refused.
    pub(crate) const fn reason_for_answers(self) -> &'static str {
        match self {
            Self::Holder => {
                "too many answers wait to be read by this caller; read them, or ask for less at once"
            }
            Self::All => "too many answers wait to be read by their clients; ask for less at once",
        }
    }
}

impl Budget {
    /// Nothing of it is used.
    pub(crate) fn of(bytes_max: usize) -> Self {
        Self {
            pot: Arc::default(),
            bytes_max,
        }
    }

    /// For callers inside the process, who are not limited.
    pub(crate) fn unlimited() -> Self {
        Self::of(usize::MAX)
    }

    /// A part of it for a request of `holder`, empty yet.
    pub(crate) fn share(&self, holder: Holder) -> Share {
        Share {
            budget: self.clone(),
            of: Counted::Holder(holder),
            bytes: 0,
        }
    }

    /// A part of it that counts for no caller.
    pub(crate) fn share_of_all(&self) -> Share {
        Share {
            budget: self.clone(),
            of: Counted::All,
            bytes: 0,
        }
    }
}

/// Where a share is counted beside the budget.
#[derive(Debug)]
enum Counted {
    /// Nowhere.
    All,
    /// For this caller, as soon as the share holds something.
    Holder(Holder),
    /// In this count of its caller.
    In(Holder, Arc<AtomicUsize>),
}

/// A request's part of a [`Budget`], given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Budget,
    of: Counted,
    bytes: usize,
}

impl Share {
    /// Takes more.
    ///
    /// # Errors
    /// [`Full`]; the share is as it was.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), Full> {
        if bytes == 0 {
            return Ok(());
        }
        let all = self.add(bytes);
        let own = self.own().map_or(0, |own| own.load(Ordering::Relaxed));
        let free = self.budget.bytes_max.checked_sub(all);
        if free.is_some_and(|free| own <= free) {
            return Ok(());
        }
        self.give_back(bytes);
        // A caller who holds something can make room.
        Err(if own > bytes { Full::Holder } else { Full::All })
    }

    /// Takes what is missing to hold so many bytes.
    ///
    /// # Errors
    /// [`Full`]; the share is as it was.
    pub(crate) fn cover(&mut self, bytes: usize) -> Result<(), Full> {
        self.take(bytes.saturating_sub(self.bytes))
    }

    /// As [`Self::cover`], whatever the budget: for what must not be refused any more.
    pub(crate) fn cover_always(&mut self, bytes: usize) {
        let missing = bytes.saturating_sub(self.bytes);
        if missing > 0 {
            self.add(missing);
        }
    }

    /// Whether it holds nothing.
    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Counts `bytes` more; returns the bytes that are used of the budget then.
    fn add(&mut self, bytes: usize) -> usize {
        let pot = &self.budget.pot;
        if let Counted::Holder(holder) = &self.of {
            let counts = pot.of_holders().entry(holder.clone()).or_default().clone();
            self.of = Counted::In(holder.clone(), counts);
        }
        if let Some(own) = self.own() {
            own.fetch_add(bytes, Ordering::Relaxed);
        }
        self.bytes += bytes;
        let before = self.budget.pot.used.fetch_add(bytes, Ordering::Relaxed);
        before.saturating_add(bytes)
    }

    fn give_back(&mut self, bytes: usize) {
        if let Some(own) = self.own() {
            own.fetch_sub(bytes, Ordering::Relaxed);
        }
        self.budget.pot.used.fetch_sub(bytes, Ordering::Relaxed);
        self.bytes -= bytes;
    }

    const fn own(&self) -> Option<&Arc<AtomicUsize>> {
        match &self.of {
            Counted::In(_, own) => Some(own),
            Counted::All | Counted::Holder(_) => None,
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        /// That of the table, and that of this share.
        const LAST_REFERENCES: usize = 2;
        self.give_back(self.bytes);
        if let Counted::In(holder, own) = &self.of {
            // Under the lock, so that no other share gets the count meanwhile.
            let mut of_holders = self.budget.pot.of_holders();
            if Arc::strong_count(own) == LAST_REFERENCES {
                of_holders.remove(holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, Full, Holder};
    use std::net::IpAddr;
    use std::sync::Arc;

    fn principal(name: &str) -> Holder {
        Holder::Principal(Arc::from(name))
    }

    #[test]
    fn shares_never_hold_more_than_the_budget_and_give_back_what_they_held() {
        let budget = Budget::of(10);
        let (mut first, mut second) = (budget.share_of_all(), budget.share_of_all());
        assert_eq!(first.take(6), Ok(()));
        assert_eq!(first.cover(4), Ok(()), "it holds more already");
        assert_eq!(second.cover(5), Err(Full::All));
        assert_eq!(second.cover(4), Ok(()));
        drop(first);
        assert_eq!(second.cover(10), Ok(()));
        second.cover_always(12);
        assert_eq!(budget.share_of_all().take(1), Err(Full::All));
        drop(second);
        assert_eq!(budget.share_of_all().take(10), Ok(()));
    }

    #[test]
    fn a_caller_who_fills_the_budget_is_refused_and_others_are_not() {
        let budget = Budget::of(120);
        let share = |name| budget.share(principal(name));
        // One caller alone gets half, over however many requests.
        let (mut first, mut second) = (share("ann"), share("ann"));
        assert_eq!(first.take(40), Ok(()));
        assert_eq!(second.take(20), Ok(()));
        assert_eq!(second.take(1), Err(Full::Holder));
        // Another one finds room, as much as is left free then.
        let mut other = share("bob");
        assert_eq!(other.take(30), Ok(()));
        assert_eq!(other.take(1), Err(Full::Holder));
        assert_eq!(share("ann").take(1), Err(Full::Holder));
        // And so does each further one.
        assert_eq!(share("cid").take(15), Ok(()));
        // What was given back may be taken again.
        drop((first, other));
        assert_eq!(second.cover(60), Ok(()));
    }

    #[test]
    fn what_must_be_sent_is_counted_for_its_caller() {
        let budget = Budget::of(100);
        let mut share = budget.share(principal("ann"));
        share.cover_always(90);
        assert_eq!(budget.share(principal("ann")).take(1), Err(Full::Holder));
        assert_eq!(budget.share(principal("bob")).take(5), Ok(()));
        assert_eq!(budget.share(principal("bob")).take(6), Err(Full::All));
    }

    #[test]
    fn callers_without_shares_are_forgotten() {
        let budget = Budget::of(100);
        let (mut first, mut second) =
            (budget.share(Holder::Unknown), budget.share(Holder::Unknown));
        assert_eq!((first.take(1), second.take(1)), (Ok(()), Ok(())));
        assert_eq!(budget.pot.of_holders().len(), 1);
        drop(first);
        assert_eq!(budget.pot.of_holders().len(), 1);
        drop(second);
        assert!(budget.pot.of_holders().is_empty());
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_client() {
        let at = |text: &str| Holder::at(Some(text.parse::<IpAddr>().expect("an address")));
        assert_eq!(at("2001:db8:0:1::7"), at("2001:db8:0:1:ffff::8"));
        assert_ne!(at("2001:db8:0:1::7"), at("2001:db8:0:2::7"));
        assert_eq!(at("::ffff:192.0.2.1"), at("192.0.2.1"));
        assert_ne!(at("192.0.2.1"), at("192.0.2.2"));
    }
}
