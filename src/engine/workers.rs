//! One server's knowledge of workers outside the server: declared methods, which workers ask for them now, and which
//! are drained.
//!
//! Claims tell it who asks. It keeps that in memory, puts the methods into the directory of executors when
//! their set changes, and writes presence to the store, where other servers find it. Decides nothing about
//! tasks. A worker that comes to claim in the moment in which it is swept is in the directory again when its
//! call goes on: both happen under one lock.

mod by_owner;
mod known;
mod renewals;
mod tickets;

pub use renewals::StoredRenewals;
pub use tickets::StoredTickets;

use super::ExecutorDirectory;
use super::directory::Snapshot;
use crate::application::ports::{
    ASKED_FOR_MS, AskRefusal, Asking, Asks, DeclareRefusal, KnownMethod, Workers,
};
use crate::clock::SharedClock;
use crate::engine::directory::Own;
use crate::store;
use async_trait::async_trait;
use known::{AllDeclared, Declared, Known};
use renewals::unavailable;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use taskledger_auth::Reach;
use taskledger_domain::Timestamp;
use taskledger_domain::limits::KEY_CHARS_MAX;
use taskledger_domain::text::is_hidden;
use taskledger_workers::store::{Changes, Error, News, PRESENCE_KEPT_MS, TooManyDrains};
use taskledger_workers::{
    LIMIT_MAX, Method, MethodKey, Refusal, Rights, Worker, WorkerStore, is_unseen,
};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// How often workers that fell silent are looked for, and what other servers have changed.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often presence is written, and on a shared store that of others read, even if nothing was announced.
const SHARE_EVERY: Duration = Duration::from_secs(5);
/// How often old rows are removed from the store.
const CLEAN_EVERY: Duration = Duration::from_secs(600);

/// The methods in the directory, with what was declared of them.
type Published = BTreeMap<MethodKey, Option<Arc<Declared>>>;

/// One server's registry of workers outside. Lasts as long as the server.
pub struct WorkerRegistry {
    store: Arc<WorkerStore>,
    directory: Arc<ExecutorDirectory>,
    clock: SharedClock,
    /// This server among those that share the store; `None`: it is alone.
    node: Option<Uuid>,
    known: Mutex<State>,
    /// What of the store is known. Held while methods or drains are changed or read, so that what is read
    /// never takes the place of something newer.
    following: tokio::sync::Mutex<Option<Changes>>,
    /// When somebody last began to catch up with other servers.
    caught_up: tokio::sync::Mutex<Option<Instant>>,
}

#[derive(Debug, Default)]
struct State {
    known: Known,
    published: Published,
}

impl std::fmt::Debug for WorkerRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerRegistry").finish_non_exhaustive()
    }
}

impl WorkerRegistry {
    /// Reads what is stored and puts the methods into the directory. `node`: this server among those that share
    /// the store, `None` for one that is alone.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn open(
        store: Arc<WorkerStore>,
        directory: Arc<ExecutorDirectory>,
        clock: SharedClock,
        node: Option<Uuid>,
    ) -> Result<Arc<Self>, Error> {
        let registry = Arc::new(Self {
            store,
            directory,
            clock,
            node,
            known: Mutex::default(),
            following: tokio::sync::Mutex::default(),
            caught_up: tokio::sync::Mutex::default(),
        });
        registry.follow().await?;
        if node.is_none() {
            let now = registry.clock.now();
            let kept = i64::try_from(PRESENCE_KEPT_MS * 1_000).unwrap_or(i64::MAX);
            let workers = registry.store.workers(Timestamp(now.0 - kept)).await?;
            let mut state = registry.state();
            state.known.adopt(workers, now);
            registry.publish(&mut state, now);
        }
        Ok(registry)
    }

    /// Keeps up with the workers and with other servers until `stop`.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let keep = async {
            let mut ticks = interval(LOOK_EVERY);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let (mut shared_at, mut cleaned_at) = (Instant::now(), Instant::now());
            let mut answers = true;
            loop {
                let now = ticks.tick().await;
                self.sweep();
                let mut done = self.announce().await;
                if now - shared_at >= SHARE_EVERY {
                    shared_at = now;
                    done = done.and(self.share().await);
                }
                if self.node.is_some() {
                    done = done.and(self.follow().await);
                }
                if now - cleaned_at >= CLEAN_EVERY {
                    cleaned_at = now;
                    done = done.and(self.store.sweep(self.clock.now()).await.map(|_| ()));
                }
                // Once for all times in which it does not answer.
                if let Err(error) = &done
                    && answers
                {
                    tracing::warn!(%error, "what is stored of workers is not up to date");
                }
                answers = done.is_ok();
            }
        };
        stop.run_until_cancelled(keep).await;
        // Others need not wait until the workers of this server are found silent; a server that is alone knows
        // after a restart who asked.
        let ended = match self.node {
            Some(_) => self.store.leave(self.node).await,
            None => self.share().await,
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "who is there is not written at the end");
        }
    }

    /// Forgets who fell silent, and takes methods out of the directory for which nobody asks any more.
    pub fn sweep(&self) {
        let now = self.clock.now();
        let mut state = self.state();
        state.known.sweep(now);
        self.publish(&mut state, now);
    }

    /// Takes over what other servers have declared, drained and announced, if there is anything new.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn follow(&self) -> Result<(), Error> {
        let mut following = self.following.lock().await;
        let changes = self.store.changes().await?;
        let is_new = |of: fn(&Changes) -> i64| following.as_ref().map(of) != Some(of(&changes));
        if is_new(|changes| changes.declared) {
            let methods = self.store.methods().await?;
            let drains = self.store.drains().await?;
            let before = self.state().known.declared.clone();
            let declared = self.compiled(methods, &before);
            let mut state = self.state();
            state.known.declared = declared;
            state.known.set_drains(drains);
            self.publish(&mut state, self.clock.now());
        }
        if is_new(|changes| changes.presence) {
            self.look_elsewhere().await?;
        }
        *following = Some(changes);
        Ok(())
    }

    /// Writes who is there, and reads who is connected to other servers.
    ///
    /// # Errors
    /// The store does not answer; it is tried again the next time.
    pub async fn share(&self) -> Result<(), Error> {
        let unwritten = self.state().known.unwritten();
        let news = match self.node {
            Some(_) if unwritten.is_news => News::Announced,
            Some(_) | None => News::Quiet,
        };
        let write = async {
            // A server that is alone knows who is there, and after a restart what was asked for.
            if self.node.is_some() && !unwritten.left.is_empty() {
                self.store.gone(&unwritten.left, self.node).await?;
            }
            if !unwritten.workers.is_empty() {
                self.store.see(&unwritten.workers, news).await?;
            }
            Ok(())
        };
        if let Err(error) = write.await {
            self.state().known.give_back(unwritten);
            return Err(error);
        }
        self.look_elsewhere().await
    }

    /// Writes at once that a method is asked for that nobody asked for, for other servers and for a restart.
    async fn announce(&self) -> Result<(), Error> {
        if self.state().known.has_news() {
            return self.share().await;
        }
        Ok(())
    }

    async fn look_elsewhere(&self) -> Result<(), Error> {
        if self.node.is_none() {
            return Ok(());
        }
        let mut workers = self.present().await?;
        workers.retain(|worker| worker.node != self.node);
        let mut state = self.state();
        state.known.see_elsewhere(workers);
        self.publish(&mut state, self.clock.now());
        Ok(())
    }

    /// Who is there as far as it is written.
    async fn present(&self) -> Result<Vec<Worker>, Error> {
        let now = self.clock.now();
        let micros = i64::try_from(ASKED_FOR_MS * 1_000).unwrap_or(i64::MAX);
        self.store.workers(Timestamp(now.0 - micros)).await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.known
            .lock()
            .expect("no code panics while it holds what is known of workers")
    }

    /// Declared methods, ready for use; those that are as before are not compiled again.
    fn compiled(&self, methods: Vec<Method>, before: &AllDeclared) -> AllDeclared {
        let mut all = AllDeclared::new();
        for method in methods {
            let key = method.key();
            let known = before.get(&key).filter(|known| *known.method == method);
            let declared = match known {
                Some(known) => Ok(known.clone()),
                None => Declared::of(method).map(Arc::new),
            };
            match declared {
                Ok(declared) => _ = all.insert(key, declared),
                // It was checked by a program that allowed more.
                Err((member, _)) => {
                    tracing::warn!(method = %key.name, member, "a declared method is left out: its schema cannot be used");
                }
            }
        }
        all
    }

    /// Puts the methods into the directory if they are others than those that it has.
    fn publish(&self, state: &mut State, now: Timestamp) {
        let snapshot = self.directory.newest();
        let mut names = state.known.names(now);
        // One that a newer program has built in stays declared, and is not offered.
        names.retain(|key, _| snapshot.get(&key.name).is_none());
        let is_same = |(a, b): (&Option<Arc<Declared>>, &Option<Arc<Declared>>)| match (a, b) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if names.keys().eq(state.published.keys())
            && names.values().zip(state.published.values()).all(is_same)
        {
            return;
        }
        let (mut remote, mut own) = (HashMap::new(), HashMap::<Arc<str>, Own>::new());
        for (key, declared) in &names {
            let declared = declared.as_ref().map(|declared| declared.remote.clone());
            let name = key.name.clone();
            match &key.owner {
                None => _ = remote.insert(name, declared.unwrap_or_default()),
                Some(owner) => _ = own.entry(owner.clone()).or_default().insert(name, declared),
            }
        }
        let own = own.into_iter().map(|(owner, own)| (owner, Arc::new(own)));
        let own = own.collect();
        let changed = self.directory.change(|contents| {
            contents.remote = remote;
            contents.own = own;
        });
        match changed {
            Ok(_) => state.published = names,
            // Names and limits were checked before they became known.
            Err(error) => {
                tracing::error!(%error, "the methods of workers are not in the directory")
            }
        }
    }
}

#[async_trait]
impl Workers for WorkerRegistry {
    fn asked(&self, asks: &Asks<'_>) -> Result<(), AskRefusal> {
        let snapshot = self.directory.newest();
        for method in asks.methods {
            if snapshot.get(method).is_some() {
                let method = method.clone();
                return Err(AskRefusal::BuiltIn { method });
            }
            if let Some(method) = unusable(method, is_hidden) {
                return Err(AskRefusal::InvalidName { method });
            }
        }
        let mut state = self.state();
        let now = self.clock.now();
        if state.known.asked(asks, self.node, now)? {
            self.publish(&mut state, now);
        }
        Ok(())
    }

    fn holds(&self, worker: &Arc<str>, principal: &Arc<str>, methods: &[Arc<str>]) {
        let mut state = self.state();
        let now = self.clock.now();
        let who = (worker, principal);
        if state.known.holds(who, methods, self.node, now) {
            self.publish(&mut state, now);
        }
    }

    fn claimed(&self, worker: &Arc<str>, principal: &Arc<str>, owner: Option<&Arc<str>>) {
        let now = self.clock.now();
        let who = (worker, principal);
        self.state().known.claimed(who, owner, now);
    }

    fn left(&self, worker: &str, principal: &str) {
        self.state().known.left(worker, principal);
    }

    fn methods(&self, reach: &Reach) -> Vec<KnownMethod> {
        self.state().known.methods(reach, self.clock.now())
    }

    fn asking(&self, method: &str, owner: Option<&str>) -> Asking {
        let now = self.clock.now();
        self.state().known.asking(method, owner, now)
    }

    async fn catch_up(&self) {
        if self.node.is_none() {
            return;
        }
        let asked_at = Instant::now();
        let mut begun_at = self.caught_up.lock().await;
        // Somebody else has begun to look behind this call.
        if begun_at.is_some_and(|at| at > asked_at) {
            return;
        }
        *begun_at = Some(Instant::now());
        if let Err(error) = self.share().await.and(self.follow().await) {
            tracing::debug!(%error, "what is stored of workers is not up to date");
        }
    }

    fn workers(&self) -> Vec<Worker> {
        let now = self.clock.now();
        let mut workers: Vec<Worker> = self.state().known.workers(now).cloned().collect();
        workers.sort_by(|a, b| {
            let key =
                |worker: &Worker| (worker.principal.clone(), worker.worker.clone(), worker.node);
            key(a).cmp(&key(b))
        });
        workers
    }

    fn is_draining(&self, worker: &str, principal: &str) -> bool {
        self.state().known.is_drained(worker, principal)
    }

    fn drained(&self, worker: &str) -> Vec<Arc<str>> {
        self.state().known.drained(worker)
    }

    fn last_asked_at(&self, method: &str, owner: Option<&str>) -> Option<Timestamp> {
        self.state().known.last_asked_at(method, owner)
    }

    async fn drain(
        &self,
        worker: &str,
        principal: &str,
        is_drained: bool,
    ) -> Result<Result<(), TooManyDrains>, store::Error> {
        let _following = self.following.lock().await;
        let now = self.clock.now();
        let done = if is_drained {
            self.store.drain((worker, principal), now).await
        } else {
            let undrained = self.store.undrain(worker, principal).await;
            undrained.map(|_| Ok(()))
        };
        let done = done.map_err(|e| unavailable(&e))?;
        if done.is_ok() {
            let mut state = self.state();
            state.known.set_drained(worker, principal, is_drained);
        }
        Ok(done)
    }

    async fn declare(
        &self,
        method: Method,
        rights: Rights,
    ) -> Result<Result<Arc<Method>, DeclareRefusal>, store::Error> {
        let declared = match checked(&self.directory.newest(), method) {
            Ok(declared) => Arc::new(declared),
            Err(refusal) => return Ok(Err(refusal)),
        };
        let _following = self.following.lock().await;
        let kept = self.store.declare(&declared.method, rights).await;
        if let Err(refusal) = kept.map_err(|e| unavailable(&e))? {
            return Ok(Err(refusal.into()));
        }
        let method = declared.method.clone();
        let mut state = self.state();
        state.known.declared.insert(method.key(), declared);
        self.publish(&mut state, self.clock.now());
        Ok(Ok(method))
    }

    async fn undeclare(
        &self,
        method: &MethodKey,
        by: &str,
        rights: Rights,
    ) -> Result<Result<bool, Refusal>, store::Error> {
        let _following = self.following.lock().await;
        let undeclared = self.store.undeclare(method, by, rights).await;
        let undeclared = undeclared.map_err(|e| unavailable(&e))?;
        if undeclared.is_ok() {
            let mut state = self.state();
            state.known.declared.remove(method);
            self.publish(&mut state, self.clock.now());
        }
        Ok(undeclared)
    }
}

/// Whether a method can be declared at all, and what is needed to use it.
fn checked(snapshot: &Snapshot, method: Method) -> Result<Declared, DeclareRefusal> {
    if snapshot.get(&method.name).is_some() {
        let method = method.name;
        return Err(DeclareRefusal::BuiltIn { method });
    }
    if let Some(method) = unusable(&method.name, is_unseen) {
        return Err(DeclareRefusal::InvalidName { method });
    }
    if method
        .limit
        .is_some_and(|limit| !(1..=LIMIT_MAX).contains(&limit))
    {
        return Err(DeclareRefusal::Limit { max: LIMIT_MAX });
    }
    let refused = |(member, violations)| DeclareRefusal::Schema { member, violations };
    Declared::of(method).map_err(refused)
}

/// The beginning of a name that no method can have; `is_refused`: characters that it must not have. Methods that were
/// declared before more of them were refused can still be asked for.
fn unusable(name: &str, is_refused: fn(char) -> bool) -> Option<Arc<str>> {
    let is_usable = !name.trim().is_empty()
        && name.chars().nth(KEY_CHARS_MAX).is_none()
        && !name.contains(is_refused);
    (!is_usable).then(|| name.chars().take(KEY_CHARS_MAX).collect::<String>().into())
}
