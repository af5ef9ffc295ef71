//! The directory of executors: those of this process, and the methods whose tasks workers outside claim.
//!
//! The contents may change while the server runs. Each change makes a new [`Snapshot`] with a higher number;
//! a snapshot that somebody holds stays as it is.

use super::executor::{Registered, Registry, START_PROGRAMS};
use crate::application::api::ExecutorView;
use crate::application::ports::{DeclaredByUsers, ExecutorList, ExecutorSnapshot, Executors};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use taskledger_auth::{Reach, SecretName};
use taskledger_domain::limits::KEY_CHARS_MAX;
use taskledger_domain::task::inputs::CompiledSchema;
use taskledger_domain::{Payload, Violation};
use taskledger_workers::MethodKey;
use tokio::sync::watch;

/// Slots of an executor that does not exist: none can be taken, because nothing starts.
const UNKNOWN_SLOTS: usize = 0;
/// Slots of a method without a limit: its workers bound what is under way.
pub const UNBOUNDED: usize = usize::MAX;

/// Why the contents of the directory cannot be what somebody asked for.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DirectoryError {
    /// A method that workers claim has the name of an executor of this process.
    #[error("`{name}` is built in: its tasks run in this server and cannot be claimed by workers")]
    BuiltIn {
        /// Name of the method.
        name: String,
    },
    /// A name is empty or too long.
    #[error("method name `{name}` must have 1 to {KEY_CHARS_MAX} characters")]
    InvalidName {
        /// The name, cut.
        name: String,
    },
    /// A bound of zero would never run anything.
    #[error("the limit of method `{name}` is 0; at least 1 is needed")]
    NoLimit {
        /// Name of the method.
        name: String,
    },
}

/// Methods whose tasks workers claim, by name; `None`: nobody has declared it, somebody asks for it.
pub type Own = HashMap<Arc<str>, Option<Remote>>;

/// A method whose tasks workers claim. One that nobody declared has nothing but its name.
#[derive(Debug, Clone, Default)]
pub struct Remote {
    /// What the method does, in words for people; `None` when nobody has said it.
    pub description: Option<Arc<str>>,
    /// Attempts that may be under way at once, at least 1; `None`: any number.
    pub limit: Option<usize>,
    /// What inputs must conform to.
    pub input_schema: Option<Arc<CompiledSchema>>,
    /// The same as it was declared.
    pub declared_input_schema: Option<Payload>,
    /// What outputs must conform to.
    pub output_schema: Option<Arc<CompiledSchema>>,
    /// Members of `params` that new tasks get when they do not say.
    pub defaults: Option<Payload>,
}

/// The contents of the directory.
#[derive(Debug, Clone)]
pub struct Contents {
    /// The executors that run in this process.
    pub built_in: Registry,
    /// Methods whose tasks workers claim, by name. None of them is built in.
    pub remote: HashMap<Arc<str>, Remote>,
    /// What users have declared for themselves, and what their workers ask for, for their own flows alone.
    pub own: HashMap<Arc<str>, Arc<Own>>,
}

impl Contents {
    fn check(&self) -> Result<(), DirectoryError> {
        let own = self.own.values().flat_map(|own| own.iter());
        let own = own.map(|(name, remote)| (name, remote.as_ref()));
        let shared = self.remote.iter();
        let shared = shared.map(|(name, remote)| (name, Some(remote)));
        for (name, remote) in shared.chain(own) {
            if name.trim().is_empty() || name.chars().count() > KEY_CHARS_MAX {
                let name = name.chars().take(KEY_CHARS_MAX).collect();
                return Err(DirectoryError::InvalidName { name });
            }
            let name = || name.to_string();
            if self.built_in.get(&name()).is_some() {
                return Err(DirectoryError::BuiltIn { name: name() });
            }
            if remote.and_then(|remote| remote.limit) == Some(0) {
                return Err(DirectoryError::NoLimit { name: name() });
            }
        }
        Ok(())
    }
}

/// The directory at one moment, for everybody or for the flows of one user.
#[derive(Debug)]
pub struct Snapshot {
    number: u64,
    contents: Arc<Contents>,
    /// The user whose flows the snapshot is for, and what only they have; `None`: it is for everybody.
    owner: Option<(Arc<str>, Arc<Own>)>,
    /// Names of what any user has of their own, whosever flows it is for.
    of_users: Arc<HashSet<Arc<str>>>,
    /// The same moment for users who have something of their own. Empty but in the snapshot for everybody.
    owners: HashMap<Arc<str>, Arc<Snapshot>>,
    /// Who has declared each method for themselves. As above.
    declared_by: Arc<DeclaredByUsers>,
    /// The number of the first snapshot with that.
    declared_since: u64,
}

impl Snapshot {
    fn new(number: u64, contents: Contents, before: Option<&Self>) -> Self {
        let contents = Arc::new(contents);
        let of_users = contents.own.values().flat_map(|own| own.keys().cloned());
        let of_users = Arc::new(of_users.collect::<HashSet<_>>());
        let mut declared_by = DeclaredByUsers::new();
        let mut owners = HashMap::new();
        for (owner, own) in &contents.own {
            let declared = own.iter().filter(|(_, remote)| remote.is_some());
            for (method, _) in declared {
                let all = declared_by.entry(method.clone()).or_default();
                all.push(owner.clone());
            }
            let of_owner = Self {
                number,
                contents: contents.clone(),
                owner: Some((owner.clone(), own.clone())),
                of_users: of_users.clone(),
                owners: HashMap::new(),
                declared_by: Arc::default(),
                declared_since: number,
            };
            owners.insert(owner.clone(), Arc::new(of_owner));
        }
        declared_by.values_mut().for_each(|all| all.sort_unstable());
        let same = before.filter(|before| *before.declared_by == declared_by);
        Self {
            number,
            contents,
            owner: None,
            of_users,
            owners,
            declared_since: same.map_or(number, |before| before.declared_since),
            declared_by: same.map_or_else(
                || Arc::new(declared_by),
                |before| before.declared_by.clone(),
            ),
        }
    }

    /// What its owner has of a method.
    fn own(&self, method: &str) -> Option<&Option<Remote>> {
        let (_, own) = self.owner.as_ref()?;
        own.get(method)
    }

    /// The declaration that holds: the owner's, or else the shared one.
    fn declared(&self, method: &str) -> Option<&Remote> {
        match self.own(method) {
            Some(Some(remote)) => Some(remote),
            Some(None) | None => self.contents.remote.get(method),
        }
    }

    /// The executor of this process with this name or alias.
    #[must_use]
    pub fn get(&self, method: &str) -> Option<&Registered> {
        self.contents.built_in.get(method)
    }

    /// All executors of this process, by name.
    pub fn built_in(&self) -> impl Iterator<Item = &Registered> {
        self.contents.built_in.iter()
    }

    /// All methods whose tasks workers claim, in no order, with what is declared of them.
    pub fn remote(&self) -> impl Iterator<Item = (&str, Option<&Remote>)> {
        let shared = self.contents.remote.keys();
        let shared = shared.filter(|name| self.own(name).is_none());
        let own = self.owner.iter().flat_map(|(_, own)| own.keys());
        let all = shared.chain(own);
        all.map(|name| (&**name, self.declared(name)))
    }
}

impl ExecutorSnapshot for Snapshot {
    fn number(&self) -> u64 {
        self.number
    }
    fn knows(&self, method: &str) -> bool {
        self.get(method).is_some() || self.is_remote(method)
    }
    fn names(&self) -> Vec<&str> {
        let remote = self.remote().map(|(name, _)| name);
        self.built_in()
            .map(Registered::name)
            .chain(remote)
            .collect()
    }
    fn is_remote(&self, method: &str) -> bool {
        self.contents.remote.contains_key(method) || self.own(method).is_some()
    }
    fn is_remote_for_any(&self, method: &str) -> bool {
        self.contents.remote.contains_key(method) || self.of_users.contains(method)
    }
    fn starts_programs(&self, method: &str) -> bool {
        let executor = self.get(method).map(Registered::executor);
        // This server may lack an executor that others have, or that it has itself after its next start.
        START_PROGRAMS.contains(&method)
            || executor.is_some_and(|executor| executor.starts_programs())
    }
    fn is_idempotent(&self, method: &str) -> bool {
        self.get(method).is_some_and(|r| r.description().idempotent)
    }
    fn canonical_name<'a>(&'a self, method: &'a str) -> &'a str {
        self.get(method).map_or(method, Registered::name)
    }
    fn slot_limit(&self, method: &str) -> usize {
        if let Some(remote) = self.contents.remote.get(method) {
            return remote.limit.unwrap_or(UNBOUNDED);
        }
        // What only users have is counted where it is offered. All snapshots of one moment say the same, because they
        // share lanes.
        if self.of_users.contains(method) {
            return UNBOUNDED;
        }
        self.get(method).map_or(UNKNOWN_SLOTS, Registered::limit)
    }
    fn declared_for(&self, method: &str) -> Option<&Arc<str>> {
        let (owner, own) = self.owner.as_ref()?;
        own.get(method)?.as_ref().map(|_| owner)
    }
    fn has_owners(&self) -> bool {
        !self.contents.own.is_empty()
    }
    fn declared_since(&self) -> u64 {
        self.declared_since
    }
    fn declared_by_users(&self) -> Arc<DeclaredByUsers> {
        self.declared_by.clone()
    }
    fn owners_of(&self, method: &str) -> &[Arc<str>] {
        self.declared_by.get(method).map_or(&[], Vec::as_slice)
    }
    fn claim_limits(&self) -> HashMap<MethodKey, usize> {
        let shared = self.contents.remote.iter();
        let shared = shared
            .filter_map(|(name, remote)| Some((MethodKey::shared(name.clone()), remote.limit?)));
        let own = self.contents.own.iter();
        let own = own.flat_map(|(owner, own)| {
            own.iter().filter_map(|(name, remote)| {
                let key = MethodKey {
                    name: name.clone(),
                    owner: Some(owner.clone()),
                };
                Some((key, remote.as_ref()?.limit?))
            })
        });
        shared.chain(own).collect()
    }
    fn check(&self, method: &str, inputs: &Map<String, Value>) -> Vec<Violation> {
        let executor = self.get(method).map(Registered::executor);
        executor.map_or_else(Vec::new, |executor| executor.check(inputs))
    }
    fn secrets(&self, method: &str, inputs: &Map<String, Value>) -> Vec<SecretName> {
        let executor = self.get(method).map(Registered::executor);
        executor.map_or_else(Vec::new, |executor| executor.secrets(inputs))
    }
    fn params(&self, method: &str) -> Option<Arc<[String]>> {
        self.get(method)?.params().cloned()
    }
    fn input_schema(&self, method: &str) -> Option<Arc<CompiledSchema>> {
        match self.declared(method) {
            Some(remote) => remote.input_schema.clone(),
            None => self.get(method)?.input_schema().cloned(),
        }
    }
    fn output_schema(&self, method: &str) -> Option<Arc<CompiledSchema>> {
        self.declared(method)?.output_schema.clone()
    }
    fn defaults(&self, method: &str) -> Option<Payload> {
        self.declared(method)?.defaults.clone()
    }
}

/// The executors of this process and the methods of workers, as they change.
#[derive(Debug)]
pub struct ExecutorDirectory {
    newest: watch::Sender<Arc<Snapshot>>,
    /// The number of the newest snapshot; changed after the snapshot itself.
    number: watch::Sender<u64>,
    /// Held while the contents are changed.
    changing: Mutex<()>,
}

impl ExecutorDirectory {
    /// A directory of executors of this process; workers claim nothing yet.
    #[must_use]
    pub fn new(built_in: Registry) -> Self {
        let contents = Contents {
            built_in,
            remote: HashMap::new(),
            own: HashMap::new(),
        };
        let number = 1;
        Self {
            newest: watch::Sender::new(Arc::new(Snapshot::new(number, contents, None))),
            number: watch::Sender::new(number),
            changing: Mutex::new(()),
        }
    }

    /// The newest snapshot for everybody. Cost: O(1).
    #[must_use]
    pub fn newest(&self) -> Arc<Snapshot> {
        self.newest.borrow().clone()
    }

    /// The newest snapshot for flows of this owner. Cost: O(1).
    #[must_use]
    pub fn newest_for(&self, owner: Option<&str>) -> Arc<Snapshot> {
        let newest = self.newest.borrow();
        let own = owner.and_then(|owner| newest.owners.get(owner));
        own.unwrap_or(&newest).clone()
    }

    /// Changes the contents and publishes them as a new snapshot, whose number is returned. Flows whose
    /// tasks wait for what there is now are woken. Cost: O(executors).
    ///
    /// # Errors
    /// [`DirectoryError`]; nothing is published then.
    pub fn change(&self, change: impl FnOnce(&mut Contents)) -> Result<u64, DirectoryError> {
        // A change that panicked has published nothing.
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = self.newest();
        let mut contents = Contents::clone(&newest.contents);
        change(&mut contents);
        contents.check()?;
        let number = newest.number + 1;
        let snapshot = Snapshot::new(number, contents, Some(&newest));
        self.newest.send_replace(Arc::new(snapshot));
        self.number.send_replace(number);
        Ok(number)
    }
}

impl Executors for ExecutorDirectory {
    fn snapshot(&self) -> Arc<dyn ExecutorSnapshot> {
        self.newest()
    }
    fn snapshot_for(&self, owner: Option<&str>) -> Arc<dyn ExecutorSnapshot> {
        self.newest_for(owner)
    }
    fn changes(&self) -> watch::Receiver<u64> {
        self.number.subscribe()
    }
}

impl ExecutorList for ExecutorDirectory {
    fn description(&self, method: &str) -> Option<Arc<str>> {
        self.newest().declared(method)?.description.clone()
    }
    fn list(&self, reach: &Reach) -> Vec<ExecutorView> {
        let view = |registered: &Registered| {
            let description = registered.description();
            let schema = description.input_schema.as_ref().and_then(Value::as_object);
            ExecutorView {
                name: description.name.clone(),
                aliases: description.aliases.clone(),
                summary: description.summary.clone(),
                idempotent: description.idempotent,
                pure: description.pure,
                input_schema: schema.map(Payload::from_map),
                params: registered.params().cloned(),
                limit: Some(registered.limit()),
                remote: false,
            }
        };
        let newest = self.newest_for(reach.owner().map(|owner| &**owner));
        let built_in = newest.built_in().map(view);
        let mut all: Vec<_> = built_in.chain(newest.remote().map(remote_view)).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }
}

fn remote_view((name, remote): (&str, Option<&Remote>)) -> ExecutorView {
    let description = remote.and_then(|remote| remote.description.as_deref());
    ExecutorView {
        name: name.to_owned(),
        aliases: Vec::new(),
        summary: description.unwrap_or("Done by workers.").to_owned(),
        idempotent: false,
        pure: false,
        input_schema: remote.and_then(|remote| remote.declared_input_schema.clone()),
        params: None,
        limit: remote.and_then(|remote| remote.limit),
        remote: true,
    }
}

#[cfg(test)]
mod tests;
