//! Methods that users have declared for themselves, as far as waiting workers were told of them.

use crate::application::ports::DeclaredByUsers;
use std::sync::{Arc, Mutex, PoisonError};
use taskledger_workers::MethodKey;

#[derive(Debug, Default)]
pub(in crate::application) struct Declared(Mutex<Arc<DeclaredByUsers>>);

impl Declared {
    /// Takes the newest; gives the declarations that have come or gone since the last one. Cost: O(1) if there is
    /// nothing new, else O(declarations of users).
    pub(super) fn follow(&self, newest: impl FnOnce() -> Arc<DeclaredByUsers>) -> Vec<MethodKey> {
        // Nothing is changed in parts.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Asked for while it is held, so that nothing takes the place of something newer.
        let newest = newest();
        let before = std::mem::replace(&mut *known, newest.clone());
        drop(known);
        if Arc::ptr_eq(&before, &newest) {
            return Vec::new();
        }
        let come = others(&newest, &before);
        come.chain(others(&before, &newest)).collect()
    }
}

/// What is among the first and not among the second.
fn others<'a>(
    all: &'a DeclaredByUsers,
    known: &'a DeclaredByUsers,
) -> impl Iterator<Item = MethodKey> + 'a {
    all.iter().flat_map(|(method, owners)| {
        let known: &[Arc<str>] = known.get(method).map_or(&[], Vec::as_slice);
        let others = owners
            .iter()
            .filter(|owner| known.binary_search(owner).is_err());
        others.map(|owner| MethodKey {
            name: method.clone(),
            owner: Some(owner.clone()),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(declared: &[(&str, &[&str])]) -> Arc<DeclaredByUsers> {
        let declared = declared.iter().map(|(method, owners)| {
            let owners = owners.iter().map(|owner| Arc::from(*owner));
            (Arc::from(*method), owners.collect())
        });
        Arc::new(declared.collect())
    }

    #[test]
    fn what_has_come_or_gone_is_told_once() {
        let known = Declared::default();
        let told = |newest: &Arc<DeclaredByUsers>| {
            let told = known.follow(|| newest.clone()).into_iter();
            let told = told.map(|key| (key.name.to_string(), key.owner.unwrap().to_string()));
            let mut told: Vec<_> = told.collect();
            told.sort_unstable();
            told
        };
        let key = |method: &str, owner: &str| (method.to_owned(), owner.to_owned());
        let first = of(&[("a", &["ann", "bob"]), ("b", &["ann"])]);
        assert_eq!(
            told(&first),
            [key("a", "ann"), key("a", "bob"), key("b", "ann")]
        );
        assert_eq!(told(&first), []);
        let second = of(&[("a", &["ann", "cem"]), ("b", &["ann"])]);
        assert_eq!(told(&second), [key("a", "bob"), key("a", "cem")]);
        assert_eq!(told(&of(&[("a", &["ann", "cem"])])), [key("b", "ann")]);
    }
}
