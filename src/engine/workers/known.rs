//! What a server knows of workers, in memory: methods, the workers that ask for them, and drained workers.
//!
//! What a worker asks for counts for the flows that it may claim of: all, or those of one user.

mod claimed;
mod listed;

use super::by_owner::ByOwner;
use crate::application::ports::{ASK_AGAIN_MS, ASKED_FOR_MS, AskRefusal, Asks};
use crate::engine::directory::Remote;
use claimed::Claimed;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use taskledger_domain::task::inputs::{CompiledSchema, compile};
use taskledger_domain::{Payload, Timestamp, Violation};
use taskledger_workers::{Connection, Drain, Method, MethodKey, Worker};
use uuid::Uuid;

/// Workers that are connected to one server; those of one principal at most as many as places are free, so 10,000.
pub(super) const WORKERS_MAX: usize = 20_000;
/// Methods that workers ask for, beside those that were declared; those of one principal as above.
pub(super) const ASKED_METHODS_MAX: usize = 20_000;
/// How long it is known when a method was last asked for, in milliseconds.
const LAST_ASKED_KEPT_MS: u64 = 24 * 3_600 * 1_000;
/// The time of a worker that asks all the time is written this often, in milliseconds.
const WRITE_AGAIN_MS: u64 = 5_000;

/// Milliseconds after which a worker of this server is not there any more: it would have asked again.
const SILENT_MS: u64 = ASK_AGAIN_MS + 5_000;
/// The same for a worker of another server, of which this one hears later.
const SILENT_ELSEWHERE_MS: u64 = SILENT_MS + 2 * WRITE_AGAIN_MS;

/// A declared method that is ready for use.
#[derive(Debug)]
pub(super) struct Declared {
    pub(super) method: Arc<Method>,
    pub(super) remote: Remote,
}

impl Declared {
    /// Cost: that of compiling its schemas.
    ///
    /// # Errors
    /// The member that is no usable schema, and why.
    pub(super) fn of(method: Method) -> Result<Self, (&'static str, Vec<Violation>)> {
        let schema = |member, schema: &Option<Payload>| {
            let compiled = schema.as_ref().map(|s| compile(&s.to_map().into()));
            let compiled: Option<CompiledSchema> = compiled.transpose().map_err(|v| (member, v))?;
            Ok(compiled.map(Arc::new))
        };
        let remote = Remote {
            description: method.description.clone(),
            limit: method.limit.map(|limit| limit as usize),
            input_schema: schema("input_schema", &method.input_schema)?,
            declared_input_schema: method.input_schema.clone(),
            output_schema: schema("output_schema", &method.output_schema)?,
            defaults: method.defaults.clone(),
        };
        let method = Arc::new(method);
        Ok(Self { method, remote })
    }
}

/// All that were declared, by name, the shared one first.
pub(super) type AllDeclared = BTreeMap<MethodKey, Arc<Declared>>;

/// A request of workers for a method.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Asked {
    /// When one last did, here or elsewhere.
    at: Timestamp,
    /// Who brought it here when nobody had asked for it; of other servers' methods it is not known.
    brought_by: Option<Arc<str>>,
}

/// A worker that is connected to this server.
#[derive(Debug)]
struct Present {
    seen: Worker,
    /// What was last written of it.
    written: Option<Timestamp>,
}

/// Values by principal and worker.
type ByWorker<T> = HashMap<Arc<str>, HashMap<Arc<str>, T>>;

/// What a server knows of workers. Times that callers give never go back.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) declared: AllDeclared,
    here: ByWorker<Present>,
    here_count: usize,
    elsewhere: Vec<Worker>,
    /// Workers that hold tasks of this server and ask at another one, by principal and name.
    claimed: HashMap<(Arc<str>, Arc<str>), Claimed>,
    drained: HashMap<Arc<str>, HashSet<Arc<str>>>,
    asked: ByOwner<Asked>,
    /// Workers of this server that have left and may be written: principal, name.
    left: Vec<(Arc<str>, Arc<str>)>,
    /// A method was asked for here that others may not know of.
    is_news: bool,
}

/// What is to be written.
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    pub(super) workers: Vec<Worker>,
    pub(super) left: Vec<(Arc<str>, Arc<str>)>,
    pub(super) is_news: bool,
}

/// Whether what was asked at `at` counts at `now`.
fn is_now(at: Timestamp, now: Timestamp) -> bool {
    now.ms_since(at) < ASKED_FOR_MS
}

impl Known {
    /// A worker asks. Whether a method is now asked for that nobody asked for.
    pub(super) fn asked(
        &mut self,
        asks: &Asks<'_>,
        node: Option<Uuid>,
        now: Timestamp,
    ) -> Result<bool, AskRefusal> {
        let owner = asks.owner.map(|owner| &**owner);
        let found = |method: &Arc<str>| self.asked.get(owner, method);
        let is_asked = |method: &Arc<str>| found(method).is_some_and(|it| is_now(it.at, now));
        let new = asks.methods.iter().filter(|method| !is_asked(method));
        let new = new.count();
        if new > 0 {
            let unknown = asks.methods.iter().filter(|method| found(method).is_none());
            let unknown = unknown.count();
            if self.asked.len() + unknown > ASKED_METHODS_MAX {
                self.forget_oldest_asked(new, now)?;
            }
            self.has_room_for(unknown, asks.principal)?;
        }
        self.see(asks, node, now)?;
        for method in asks.methods {
            match self.asked.get_mut(owner, method) {
                Some(asked) => asked.at = now,
                None => {
                    let brought_by = Some(Arc::from(asks.principal));
                    let asked = Asked {
                        at: now,
                        brought_by,
                    };
                    self.asked.insert(asks.owner, method.clone(), asked);
                }
            }
        }
        self.is_news |= new > 0;
        Ok(new > 0)
    }

    /// Makes room for so many methods among those that nobody asks for now.
    fn forget_oldest_asked(&mut self, room: usize, now: Timestamp) -> Result<(), AskRefusal> {
        self.asked.retain(|asked| is_now(asked.at, now));
        if self.asked.len() + room > ASKED_METHODS_MAX {
            return Err(AskRefusal::TooMany {
                what: "methods",
                max: ASKED_METHODS_MAX,
            });
        }
        Ok(())
    }

    /// Whether a principal may bring so many more methods: no more than are free then. Cost: O(methods) once half of
    /// the places are taken, else O(1).
    fn has_room_for(&self, methods: usize, principal: &str) -> Result<(), AskRefusal> {
        let taken = self.asked.len() + methods;
        if methods == 0 || taken <= ASKED_METHODS_MAX / 2 {
            return Ok(());
        }
        let brought = self
            .asked
            .iter()
            .filter_map(|(_, _, it)| it.brought_by.as_ref());
        let own = brought.filter(|by| ***by == *principal);
        if own.count() + methods <= ASKED_METHODS_MAX.saturating_sub(taken) {
            return Ok(());
        }
        Err(AskRefusal::TooMany {
            what: "methods of one principal",
            max: ASKED_METHODS_MAX / 2,
        })
    }

    fn see(
        &mut self,
        asks: &Asks<'_>,
        node: Option<Uuid>,
        now: Timestamp,
    ) -> Result<(), AskRefusal> {
        let known = self.here.get_mut(asks.principal);
        if let Some(present) = known.and_then(|workers| workers.get_mut(asks.worker)) {
            let seen = &mut present.seen;
            if !is_now(seen.last_seen_at, now) {
                seen.since = now;
            }
            seen.last_seen_at = now;
            if !asks.methods.is_empty() && *seen.methods != *asks.methods {
                seen.methods = Arc::from(asks.methods);
                present.written = None;
            }
            if seen.owner.as_ref() != asks.owner {
                seen.owner = asks.owner.cloned();
                present.written = None;
            }
            if seen.connection != asks.connection {
                seen.connection = asks.connection;
                present.written = None;
            }
            return Ok(());
        }
        let own = self.here.get(asks.principal).map_or(0, HashMap::len);
        if self.here_count >= WORKERS_MAX {
            return Err(AskRefusal::TooMany {
                what: "workers",
                max: WORKERS_MAX,
            });
        }
        // Whoever has many leaves room for others.
        if own >= WORKERS_MAX - self.here_count {
            return Err(AskRefusal::TooMany {
                what: "workers of one principal",
                max: WORKERS_MAX / 2,
            });
        }
        let seen = Worker {
            worker: Arc::from(asks.worker),
            principal: Arc::from(asks.principal),
            owner: asks.owner.cloned(),
            node,
            methods: Arc::from(asks.methods),
            connection: asks.connection,
            since: now,
            last_seen_at: now,
        };
        self.keep(seen, None);
        Ok(())
    }

    fn keep(&mut self, seen: Worker, written: Option<Timestamp>) {
        let workers = self.here.entry(seen.principal.clone()).or_default();
        let kept = workers.insert(seen.worker.clone(), Present { seen, written });
        self.here_count += usize::from(kept.is_none());
    }

    /// Workers that an earlier process of this server, which was alone, has written. They had nobody to ask while
    /// there was no server, so their methods count as asked for at `now`.
    pub(super) fn adopt(&mut self, workers: Vec<Worker>, now: Timestamp) {
        for worker in workers.into_iter().take(WORKERS_MAX) {
            self.note_asked(worker.owner.as_ref(), &worker.methods, now);
            if is_now(worker.last_seen_at, now) {
                let written = Some(worker.last_seen_at);
                self.keep(worker, written);
            }
        }
    }

    /// A worker holds tasks of these methods. Whether one of them is now known that nobody asked for.
    pub(super) fn holds(
        &mut self,
        (worker, principal): (&Arc<str>, &Arc<str>),
        methods: &[Arc<str>],
        node: Option<Uuid>,
        now: Timestamp,
    ) -> bool {
        let owner = self.reach_of(worker, principal, now);
        self.still_holds(worker, principal, now);
        let is_asked = |method: &Arc<str>| {
            let asked = self.asked.get(owner.as_deref(), method);
            asked.is_some_and(|asked| is_now(asked.at, now))
        };
        let is_news = !methods.iter().all(is_asked);
        self.note_asked(owner.as_ref(), methods, now);
        let known = self.here.get_mut(principal);
        if let Some(present) = known.and_then(|workers| workers.get_mut(worker)) {
            present.seen.last_seen_at = now;
            if present.seen.owner != owner {
                present.seen.owner = owner;
                present.written = None;
            }
        } else if self.elsewhere(worker, principal, now).is_none() && self.here_count < WORKERS_MAX
        {
            let seen = Worker {
                worker: worker.clone(),
                principal: principal.clone(),
                owner,
                node,
                methods: Arc::from(methods),
                connection: Connection::Poll,
                since: now,
                last_seen_at: now,
            };
            self.keep(seen, None);
        }
        self.is_news |= is_news;
        is_news
    }

    /// The worker as it is connected to another server. Cost: O(workers of other servers).
    fn elsewhere(&self, worker: &str, principal: &str, now: Timestamp) -> Option<&Worker> {
        let mut elsewhere = self.elsewhere.iter();
        elsewhere.find(|known| {
            let is_it = *known.worker == *worker && *known.principal == *principal;
            is_it && is_now(known.last_seen_at, now)
        })
    }

    /// Workers of other servers, as they were last written.
    pub(super) fn see_elsewhere(&mut self, workers: Vec<Worker>) {
        for worker in &workers {
            self.note_asked(worker.owner.as_ref(), &worker.methods, worker.last_seen_at);
        }
        self.elsewhere = workers;
    }

    fn note_asked(&mut self, owner: Option<&Arc<str>>, methods: &[Arc<str>], at: Timestamp) {
        for method in methods {
            if let Some(asked) = self.asked.get_mut(owner.map(|owner| &**owner), method) {
                asked.at = asked.at.max(at);
            } else if self.asked.len() < ASKED_METHODS_MAX {
                let brought_by = None;
                self.asked
                    .insert(owner, method.clone(), Asked { at, brought_by });
            }
        }
    }

    pub(super) fn left(&mut self, worker: &str, principal: &str) {
        let Some(workers) = self.here.get_mut(principal) else {
            return;
        };
        let Some((name, present)) = workers.remove_entry(worker) else {
            return;
        };
        if workers.is_empty() {
            self.here.remove(principal);
        }
        self.here_count -= 1;
        // More are found to be gone by their age.
        if self.left.len() < WORKERS_MAX {
            self.left.push((present.seen.principal, name));
        }
    }

    /// Forgets who has not asked for long.
    pub(super) fn sweep(&mut self, now: Timestamp) {
        self.here.retain(|_, workers| {
            workers.retain(|_, present| is_now(present.seen.last_seen_at, now));
            !workers.is_empty()
        });
        self.here_count = self.here.values().map(HashMap::len).sum();
        self.elsewhere
            .retain(|worker| is_now(worker.last_seen_at, now));
        self.claimed.retain(|_, claimed| is_now(claimed.at, now));
        self.asked
            .retain(|asked| now.ms_since(asked.at) < LAST_ASKED_KEPT_MS);
    }

    /// Workers that ask now.
    pub(super) fn workers(&self, now: Timestamp) -> impl Iterator<Item = &Worker> {
        let here = self.here.values().flat_map(HashMap::values);
        let all = here.map(|present| &present.seen).chain(&self.elsewhere);
        all.filter(move |worker| is_now(worker.last_seen_at, now))
    }

    pub(super) fn is_drained(&self, worker: &str, principal: &str) -> bool {
        let drained = self.drained.get(principal);
        drained.is_some_and(|workers| workers.contains(worker))
    }

    /// The principals whose worker of this name is drained.
    pub(super) fn drained(&self, worker: &str) -> Vec<Arc<str>> {
        let of_name = self.drained.iter().filter(|(_, all)| all.contains(worker));
        of_name.map(|(principal, _)| principal.clone()).collect()
    }

    pub(super) fn set_drained(&mut self, worker: &str, principal: &str, is_drained: bool) {
        if is_drained {
            let workers = self.drained.entry(Arc::from(principal)).or_default();
            workers.insert(Arc::from(worker));
        } else if let Some(workers) = self.drained.get_mut(principal) {
            workers.remove(worker);
            if workers.is_empty() {
                self.drained.remove(principal);
            }
        }
    }

    /// All that are drained.
    pub(super) fn set_drains(&mut self, drains: Vec<Drain>) {
        self.drained.clear();
        for drain in drains {
            let workers = self.drained.entry(drain.principal).or_default();
            workers.insert(drain.worker);
        }
    }

    /// Whether other servers may not know of a method that is asked for here.
    pub(super) const fn has_news(&self) -> bool {
        self.is_news
    }

    /// Takes what is to be written. What cannot be written is to be given back to [`Self::give_back`].
    pub(super) fn unwritten(&mut self) -> Unwritten {
        let mut workers = Vec::new();
        for present in self.here.values_mut().flat_map(HashMap::values_mut) {
            let seen_at = present.seen.last_seen_at;
            let is_due = |at: Timestamp| seen_at.ms_since(at) >= WRITE_AGAIN_MS;
            if present.written.is_none_or(is_due) {
                present.written = Some(seen_at);
                workers.push(present.seen.clone());
            }
        }
        Unwritten {
            workers,
            left: std::mem::take(&mut self.left),
            is_news: std::mem::take(&mut self.is_news),
        }
    }

    /// It could not be written: it is to be tried again.
    pub(super) fn give_back(&mut self, unwritten: Unwritten) {
        for worker in &unwritten.workers {
            let workers = self.here.get_mut(&worker.principal);
            if let Some(present) = workers.and_then(|workers| workers.get_mut(&worker.worker)) {
                present.written = None;
            }
        }
        let room = WORKERS_MAX.saturating_sub(self.left.len());
        self.left.extend(unwritten.left.into_iter().take(room));
        self.is_news |= unwritten.is_news;
    }
}

#[cfg(test)]
mod tests;
