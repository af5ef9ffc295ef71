//! Methods by owner: those for everybody, and those that a user has declared for their own flows.

use std::collections::HashMap;
use std::sync::Arc;

/// A value for each method, apart for users who have one of their own.
#[derive(Debug)]
pub(super) struct ByOwner<T> {
    shared: HashMap<Arc<str>, T>,
    own: HashMap<Arc<str>, HashMap<Arc<str>, T>>,
    len: usize,
}

impl<T> Default for ByOwner<T> {
    fn default() -> Self {
        Self {
            shared: HashMap::new(),
            own: HashMap::new(),
            len: 0,
        }
    }
}

impl<T> ByOwner<T> {
    /// How many there are. Cost: O(1).
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// The entry of an owner alone; `None`: everybody's.
    pub(super) fn get(&self, owner: Option<&str>, method: &str) -> Option<&T> {
        match owner {
            None => self.shared.get(method),
            Some(owner) => self.own.get(owner)?.get(method),
        }
    }

    pub(super) fn get_mut(&mut self, owner: Option<&str>, method: &str) -> Option<&mut T> {
        match owner {
            None => self.shared.get_mut(method),
            Some(owner) => self.own.get_mut(owner)?.get_mut(method),
        }
    }

    pub(super) fn insert(&mut self, owner: Option<&Arc<str>>, method: Arc<str>, value: T) {
        let methods = match owner {
            None => &mut self.shared,
            Some(owner) => self.own.entry(owner.clone()).or_default(),
        };
        self.len += usize::from(methods.insert(method, value).is_none());
    }

    /// All of them, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Option<&Arc<str>>, &Arc<str>, &T)> {
        let shared = self
            .shared
            .iter()
            .map(|(method, value)| (None, method, value));
        let own = self.own.iter().flat_map(|(owner, methods)| {
            let methods = methods.iter();
            methods.map(move |(method, value)| (Some(owner), method, value))
        });
        shared.chain(own)
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.shared.retain(|_, value| keep(value));
        self.own.retain(|_, methods| {
            methods.retain(|_, value| keep(value));
            !methods.is_empty()
        });
        let own: usize = self.own.values().map(HashMap::len).sum();
        self.len = self.shared.len() + own;
    }
}
