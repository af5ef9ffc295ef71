//! Lists methods for callers, with the workers that would take their tasks.

use super::{Known, SILENT_ELSEWHERE_MS, SILENT_MS, is_now};
use crate::application::ports::{ASKED_FOR_MS, Asking, KnownMethod};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use taskledger_auth::Reach;
use taskledger_domain::Timestamp;
use taskledger_workers::{MethodKey, Worker};

impl Known {
    /// Declared methods and those that workers ask for now: as they are for flows of one user, or all.
    pub(in crate::engine::workers) fn methods(
        &self,
        reach: &Reach,
        now: Timestamp,
    ) -> Vec<KnownMethod> {
        let mut all: BTreeMap<MethodKey, KnownMethod> = BTreeMap::new();
        for (key, _) in self.names(now) {
            let is_seen = match (reach, &key.owner) {
                (Reach::All, _) | (Reach::Of(_), None) => true,
                (Reach::Of(own), Some(owner)) => own == owner,
            };
            if is_seen {
                // What only the workers of one user ask for is as what is shared, until they declare it.
                let owner = key
                    .owner
                    .as_ref()
                    .filter(|_| self.declared.contains_key(&key));
                let owner = owner.cloned();
                let key = MethodKey {
                    name: key.name,
                    owner,
                };
                all.entry(key.clone()).or_insert_with(|| KnownMethod {
                    declared: self.declared.get(&key).map(|known| known.method.clone()),
                    workers: 0,
                    last_asked_at: None,
                    key,
                });
            }
        }
        if let Reach::Of(own) = reach {
            let own = Some(own.clone());
            let is_hidden = |key: &MethodKey| {
                let (name, owner) = (key.name.clone(), own.clone());
                key.owner.is_none() && self.declared.contains_key(&MethodKey { name, owner })
            };
            all.retain(|key, _| !is_hidden(key));
        }
        let covers = |owner: Option<&Arc<str>>| match (reach, owner) {
            (Reach::All, _) | (Reach::Of(_), None) => true,
            (Reach::Of(own), Some(owner)) => own == owner,
        };
        for worker in self.workers(now).filter(|it| covers(it.owner.as_ref())) {
            for method in &*worker.methods {
                for known in claimed(&mut all, method, worker.owner.as_ref()) {
                    known.workers += 1;
                }
            }
        }
        for (owner, method, asked) in self.asked.iter().filter(|(it, _, _)| covers(*it)) {
            for known in claimed(&mut all, method, owner) {
                known.last_asked_at = known.last_asked_at.max(Some(asked.at));
            }
        }
        all.into_values().collect()
    }

    /// The methods whose tasks workers claim now, everybody's and those of users alone.
    pub(in crate::engine::workers) fn names(&self, now: Timestamp) -> super::super::Published {
        let declared = self.declared.iter();
        let mut names: super::super::Published = declared
            .map(|(key, declared)| (key.clone(), Some(declared.clone())))
            .collect();
        let mut own = Vec::new();
        for (owner, name, _) in self.asked.iter().filter(|(_, _, it)| is_now(it.at, now)) {
            let (name, owner) = (name.clone(), owner.cloned());
            let key = MethodKey { name, owner };
            match &key.owner {
                None => _ = names.entry(key).or_insert(None),
                Some(_) => own.push(key),
            }
        }
        for key in own {
            // What all have needs no entry for one of them.
            if !names.contains_key(&MethodKey::shared(key.name.clone())) {
                names.entry(key).or_insert(None);
            }
        }
        names
    }

    /// Who would take a task of this method of a flow of this owner.
    pub(in crate::engine::workers) fn asking(
        &self,
        method: &str,
        owner: Option<&str>,
        now: Timestamp,
    ) -> Asking {
        let here = self.here.values().flat_map(HashMap::values);
        let here = here.map(|present| (&present.seen, SILENT_MS));
        let elsewhere = self.elsewhere.iter();
        let all = here.chain(elsewhere.map(|worker| (worker, SILENT_ELSEWHERE_MS)));
        let mut asking = Asking::default();
        for (worker, silent_ms) in all {
            if !may_claim_of(worker, owner)
                || !worker.methods.iter().any(|asked| **asked == *method)
            {
                continue;
            }
            let silence_ms = now.ms_since(worker.last_seen_at);
            if self.is_drained(&worker.worker, &worker.principal) {
                asking.drained += usize::from(silence_ms < ASKED_FOR_MS);
            } else if silence_ms < silent_ms {
                asking.now += 1;
                asking.takes_all |= worker.owner.is_none();
            }
        }
        asking
    }

    /// When a worker last asked for the method that may claim of flows of this owner.
    pub(in crate::engine::workers) fn last_asked_at(
        &self,
        method: &str,
        owner: Option<&str>,
    ) -> Option<Timestamp> {
        let shared = self.asked.get(None, method);
        let own = owner.and_then(|owner| self.asked.get(Some(owner), method));
        shared.max(own).map(|asked| asked.at)
    }
}

fn may_claim_of(worker: &Worker, owner: Option<&str>) -> bool {
    worker.owner.is_none() || worker.owner.as_deref() == owner
}

/// What whoever asks for a method may have of it: with all users' flows in reach every declaration of it; with one
/// user's, that user's, or else the shared one.
fn claimed<'a>(
    all: &'a mut BTreeMap<MethodKey, KnownMethod>,
    method: &Arc<str>,
    owner: Option<&Arc<str>>,
) -> impl Iterator<Item = &'a mut KnownMethod> {
    let (name, owner) = (method.clone(), owner.cloned());
    let key = MethodKey { name, owner };
    let shared = MethodKey::shared(method.clone());
    let first = match &key.owner {
        Some(_) if all.contains_key(&key) => key.clone(),
        Some(_) | None => shared,
    };
    let takes_all = key.owner.is_none();
    let from = all.range_mut(first.clone()..);
    let of_name = from
        .take_while(move |(found, _)| found.name == first.name && (takes_all || **found == first));
    of_name.map(|(_, known)| known)
}
