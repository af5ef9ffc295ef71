//! A cache of what is known about recently used credentials.
//!
//! Two halves: when the young one is full, the old one is dropped and the young one becomes old. What is in
//! use moves back to the young half, so that it stays. Refused credentials have a cache of their own:
//! strangers cannot push out those who may call.
//!
//! Accepted credentials are found by themselves: by a hash whose key nobody outside knows, then compared whole in a
//! time that does not tell where they differ. So a call costs no digest. They are forgotten a minute after the store
//! was last asked about them. Refused ones are kept as digests: nobody has to hold what strangers send.

use super::Denial;
use crate::caller::Caller;
use crate::token::{Digest, TOKEN_CHARS, TokenId};
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, PoisonError};
use subtle::ConstantTimeEq as _;
use taskledger_domain::Timestamp;

/// Accepted credentials in one half.
const ACCEPTED_MAX: usize = 4_000;
/// Refused credentials in one half.
const REFUSED_MAX: usize = 1_000;

/// A credential as it is shown.
#[derive(Clone, Copy, Eq)]
pub(super) struct Shown([u8; TOKEN_CHARS]);

impl Shown {
    /// `None`: no token has so many characters.
    pub(super) fn of(text: &str) -> Option<Self> {
        text.as_bytes().try_into().ok().map(Self)
    }
}

impl PartialEq for Shown {
    /// By words, which is as constant in time as by bytes, and takes an eighth of it.
    fn eq(&self, other: &Self) -> bool {
        let ((ours, our_rest), (theirs, their_rest)) =
            (self.0.as_chunks::<8>(), other.0.as_chunks::<8>());
        let words = ours.iter().zip(theirs).map(|(our, their)| {
            let (our, their) = (u64::from_ne_bytes(*our), u64::from_ne_bytes(*their));
            our.ct_eq(&their)
        });
        words
            .fold(our_rest.ct_eq(their_rest), |all, one| all & one)
            .into()
    }
}

impl Hash for Shown {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write(&self.0);
    }
}

impl fmt::Debug for Shown {
    /// Without its text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shown(..)")
    }
}

/// An accepted credential.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) id: TokenId,
    pub(super) caller: Arc<Caller>,
    /// When the store said so.
    pub(super) since: Timestamp,
    /// The minute of its last use that is noted already.
    pub(super) minute: AtomicI64,
}

/// Why a credential was refused, and when the store said so.
pub(super) type Refused = (Denial, Timestamp);

#[derive(Debug)]
struct Halves<K, T> {
    young: HashMap<K, T>,
    old: HashMap<K, T>,
    max: usize,
}

impl<K: Hash + Eq + Copy, T: Clone> Halves<K, T> {
    fn new(max: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            max,
        }
    }

    fn get(&mut self, key: &K) -> Option<T> {
        if let Some(found) = self.young.get(key) {
            return Some(found.clone());
        }
        let found = self.old.remove(key)?;
        self.put(*key, found.clone());
        Some(found)
    }

    fn put(&mut self, key: K, value: T) {
        if self.young.len() >= self.max && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    fn remove(&mut self, key: &K) {
        self.young.remove(key);
        self.old.remove(key);
    }

    fn retain(&mut self, keeps: impl Fn(&T) -> bool) {
        self.young.retain(|_, value| keeps(value));
        self.old.retain(|_, value| keeps(value));
    }

    fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

#[derive(Debug)]
struct State {
    accepted: Halves<Shown, Arc<Accepted>>,
    refused: Halves<Digest, Refused>,
    /// Rises each time that everything is forgotten.
    epoch: u64,
}

/// The cache; one for each server.
#[derive(Debug)]
pub(super) struct Cache(Mutex<State>);

impl Cache {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State {
            accepted: Halves::new(ACCEPTED_MAX),
            refused: Halves::new(REFUSED_MAX),
            epoch: 0,
        }))
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A credential that was accepted. Cost: O(1), without a digest.
    pub(super) fn accepted(&self, shown: &Shown) -> Option<Arc<Accepted>> {
        self.with(|state| state.accepted.get(shown))
    }

    /// A credential that was refused. Cost: O(1).
    pub(super) fn refused(&self, digest: &Digest) -> Option<Refused> {
        self.with(|state| state.refused.get(digest))
    }

    /// How often everything was forgotten: to be asked before the store is.
    pub(super) fn epoch(&self) -> u64 {
        self.with(|state| state.epoch)
    }

    /// Keeps that the store accepts a credential, unless everything was forgotten since `epoch`: then the store may
    /// say something else by now.
    pub(super) fn accept(&self, shown: Shown, accepted: Arc<Accepted>, epoch: u64) {
        self.with(|state| {
            if state.epoch == epoch {
                state.accepted.put(shown, accepted);
            }
        });
    }

    /// The same for one that it refuses.
    pub(super) fn refuse(&self, shown: &Shown, digest: Digest, refused: Refused, epoch: u64) {
        self.with(|state| {
            if state.epoch == epoch {
                state.accepted.remove(shown);
                state.refused.put(digest, refused);
            }
        });
    }

    /// Forgets accepted credentials of which the store has not been asked since. Cost: O(entries).
    pub(super) fn forget_before(&self, since: Timestamp) {
        self.with(|state| state.accepted.retain(|accepted| accepted.since >= since));
    }

    /// Forgets everything. Cost: O(entries).
    pub(super) fn clear(&self) {
        self.with(|state| {
            state.accepted.clear();
            state.refused.clear();
            state.epoch += 1;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scopes::Scopes;
    use crate::token::Token;
    use taskledger_clock::SystemClock;

    fn digest(n: u32) -> Digest {
        Digest::of(&n.to_string())
    }

    fn shown() -> (Shown, Arc<Accepted>) {
        let token = Token::fresh(&SystemClock::default());
        let name = crate::name::Name::new("ann").expect("a name");
        let accepted = Accepted {
            id: token.id().clone(),
            caller: Arc::new(Caller::user(&name, Scopes::NONE)),
            since: Timestamp(5),
            minute: AtomicI64::new(0),
        };
        let shown = Shown::of(token.reveal()).expect("as long as a token");
        (shown, Arc::new(accepted))
    }

    #[test]
    fn a_credential_is_compared_whole() {
        let one = [7; TOKEN_CHARS];
        assert!(Shown(one) == Shown(one));
        for at in 0..TOKEN_CHARS {
            let mut other = one;
            other[at] = 6;
            assert!(Shown(one) != Shown(other), "{at}");
        }
    }

    #[test]
    fn what_is_in_use_stays_while_others_come_and_go() {
        let mut halves = Halves::new(10);
        halves.put(digest(0), 0);
        for n in 1..1_000 {
            halves.put(digest(n), n);
            assert_eq!(halves.get(&digest(0)), Some(0), "after {n}");
            assert!(halves.young.len() + halves.old.len() <= 20);
        }
        assert_eq!(halves.get(&digest(1)), None);
    }

    #[test]
    fn an_answer_from_before_a_change_is_not_kept() {
        let cache = Cache::new();
        let epoch = cache.epoch();
        let (shown, accepted) = shown();
        cache.clear();
        cache.refuse(&shown, digest(1), (Denial::Unknown, Timestamp(0)), epoch);
        cache.accept(shown, accepted, epoch);
        assert!(cache.refused(&digest(1)).is_none());
        assert!(cache.accepted(&shown).is_none());
    }

    #[test]
    fn a_credential_is_found_whole_and_forgotten_with_the_time() {
        let cache = Cache::new();
        let (shown, accepted) = shown();
        cache.accept(shown, accepted, cache.epoch());
        for at in 0..TOKEN_CHARS {
            let mut other = shown;
            other.0[at] ^= 1;
            assert!(cache.accepted(&other).is_none(), "differs at {at}");
        }
        cache.forget_before(Timestamp(5));
        assert!(cache.accepted(&shown).is_some());
        cache.forget_before(Timestamp(6));
        assert!(cache.accepted(&shown).is_none());
    }

    #[test]
    fn what_is_refused_is_accepted_no_more() {
        let cache = Cache::new();
        let (shown, accepted) = shown();
        cache.accept(shown, accepted, 0);
        cache.refuse(&shown, digest(1), (Denial::Revoked, Timestamp(7)), 0);
        assert!(cache.accepted(&shown).is_none());
        assert_eq!(
            cache.refused(&digest(1)),
            Some((Denial::Revoked, Timestamp(7)))
        );
        assert!(!format!("{shown:?} {cache:?}").contains("tl_"));
    }
}
