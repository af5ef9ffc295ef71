//! Who can execute what, now: the executors of this process, and methods whose tasks workers outside of it
//! claim.
//!
//! The contents may change while the server runs. Each change makes a new [`Snapshot`] with a higher number;
//! a snapshot that somebody holds stays as it is.

use super::executor::{Registered, Registry};
use crate::application::api::ExecutorView;
use crate::application::ports::{ExecutorList, ExecutorSnapshot, Executors};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use taskledger_domain::limits::KEY_CHARS_MAX;
use taskledger_domain::task::inputs::CompiledSchema;
use taskledger_domain::{Payload, Violation};
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
        /// The method.
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
        /// The method.
        name: String,
    },
}

/// A method whose tasks workers claim. One that nobody declared has nothing but its name.
#[derive(Debug, Clone, Default)]
pub struct Remote {
    /// For people.
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

/// What the directory contains.
#[derive(Debug, Clone)]
pub struct Contents {
    /// The executors that run in this process.
    pub built_in: Registry,
    /// Methods whose tasks workers claim, by name. None of them is built in.
    pub remote: HashMap<Arc<str>, Remote>,
}

impl Contents {
    fn check(&self) -> Result<(), DirectoryError> {
        for (name, remote) in &self.remote {
            if name.trim().is_empty() || name.chars().count() > KEY_CHARS_MAX {
                let name = name.chars().take(KEY_CHARS_MAX).collect();
                return Err(DirectoryError::InvalidName { name });
            }
            let name = || name.to_string();
            if self.built_in.get(&name()).is_some() {
                return Err(DirectoryError::BuiltIn { name: name() });
            }
            if remote.limit == Some(0) {
                return Err(DirectoryError::NoLimit { name: name() });
            }
        }
        Ok(())
    }
}

/// The directory at one moment.
#[derive(Debug)]
pub struct Snapshot {
    number: u64,
    contents: Contents,
}

impl Snapshot {
    /// The executor of this process with this name or alias.
    #[must_use]
    pub fn get(&self, method: &str) -> Option<&Registered> {
        self.contents.built_in.get(method)
    }

    /// All executors of this process, by name.
    pub fn built_in(&self) -> impl Iterator<Item = &Registered> {
        self.contents.built_in.iter()
    }

    /// All methods whose tasks workers claim, in no order.
    pub fn remote(&self) -> impl Iterator<Item = (&str, &Remote)> {
        let remote = self.contents.remote.iter();
        remote.map(|(name, remote)| (&**name, remote))
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
        self.contents.remote.contains_key(method)
    }
    fn starts_programs(&self, method: &str) -> bool {
        let executor = self.get(method).map(Registered::executor);
        executor.is_some_and(|executor| executor.starts_programs())
    }
    fn is_idempotent(&self, method: &str) -> bool {
        self.get(method).is_some_and(|r| r.description().idempotent)
    }
    fn canonical_name<'a>(&'a self, method: &'a str) -> &'a str {
        self.get(method).map_or(method, Registered::name)
    }
    fn slot_limit(&self, method: &str) -> usize {
        match self.contents.remote.get(method) {
            Some(remote) => remote.limit.unwrap_or(UNBOUNDED),
            None => self.get(method).map_or(UNKNOWN_SLOTS, Registered::limit),
        }
    }
    fn claim_limits(&self) -> HashMap<Arc<str>, usize> {
        let remote = self.contents.remote.iter();
        let limits = remote.filter_map(|(name, remote)| Some((name.clone(), remote.limit?)));
        limits.collect()
    }
    fn check(&self, method: &str, inputs: &Map<String, Value>) -> Vec<Violation> {
        let executor = self.get(method).map(Registered::executor);
        executor.map_or_else(Vec::new, |executor| executor.check(inputs))
    }
    fn params(&self, method: &str) -> Option<Arc<[String]>> {
        self.get(method)?.params().cloned()
    }
    fn input_schema(&self, method: &str) -> Option<Arc<CompiledSchema>> {
        match self.contents.remote.get(method) {
            Some(remote) => remote.input_schema.clone(),
            None => self.get(method)?.input_schema().cloned(),
        }
    }
    fn output_schema(&self, method: &str) -> Option<Arc<CompiledSchema>> {
        self.contents.remote.get(method)?.output_schema.clone()
    }
    fn defaults(&self, method: &str) -> Option<Payload> {
        self.contents.remote.get(method)?.defaults.clone()
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
        };
        let number = 1;
        Self {
            newest: watch::Sender::new(Arc::new(Snapshot { number, contents })),
            number: watch::Sender::new(number),
            changing: Mutex::new(()),
        }
    }

    /// The newest snapshot. Cost: O(1).
    #[must_use]
    pub fn newest(&self) -> Arc<Snapshot> {
        self.newest.borrow().clone()
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
        let mut contents = newest.contents.clone();
        change(&mut contents);
        contents.check()?;
        let number = newest.number + 1;
        self.newest
            .send_replace(Arc::new(Snapshot { number, contents }));
        self.number.send_replace(number);
        Ok(number)
    }
}

impl Executors for ExecutorDirectory {
    fn snapshot(&self) -> Arc<dyn ExecutorSnapshot> {
        self.newest()
    }
    fn changes(&self) -> watch::Receiver<u64> {
        self.number.subscribe()
    }
}

impl ExecutorList for ExecutorDirectory {
    fn list(&self) -> Vec<ExecutorView> {
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
        let newest = self.newest();
        let built_in = newest.built_in().map(view);
        let mut all: Vec<_> = built_in.chain(newest.remote().map(remote_view)).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }
}

fn remote_view((name, remote): (&str, &Remote)) -> ExecutorView {
    let description = remote.description.as_deref();
    ExecutorView {
        name: name.to_owned(),
        aliases: Vec::new(),
        summary: description.unwrap_or("Done by workers.").to_owned(),
        idempotent: false,
        pure: false,
        input_schema: remote.declared_input_schema.clone(),
        params: None,
        limit: remote.limit,
        remote: true,
    }
}

#[cfg(test)]
mod tests {
    use super::{Contents, DirectoryError, ExecutorDirectory, Remote, UNBOUNDED};
    use crate::application::ports::{ExecutorList, ExecutorSnapshot, Executors, Standing};
    use crate::engine::executor::{BuiltInOptions, Registry, with_built_ins};
    use serde_json::json;
    use std::sync::Arc;
    use taskledger_domain::Payload;
    use taskledger_domain::task::inputs::compile;

    fn directory() -> ExecutorDirectory {
        let builder = with_built_ins(Registry::builder(), BuiltInOptions::default());
        let registry = builder.expect("unique names").build();
        ExecutorDirectory::new(registry.expect("no limits"))
    }

    fn remote(name: &str, limit: usize) -> impl FnOnce(&mut Contents) {
        let name = Arc::from(name);
        let limit = Some(limit);
        move |contents| {
            let remote = Remote {
                limit,
                ..Remote::default()
            };
            contents.remote.insert(name, remote);
        }
    }

    #[test]
    fn a_declared_method_has_its_schema_and_defaults_and_is_listed_by_name() {
        let directory = directory();
        let schema = json!({"type": "object", "required": ["page"]});
        let text =
            |value: &serde_json::Value| Payload::from_map(value.as_object().expect("an object"));
        let declared = Remote {
            input_schema: Some(Arc::new(compile(&schema).expect("a schema"))),
            declared_input_schema: Some(text(&schema)),
            defaults: Some(text(&json!({"retry_count": 2}))),
            ..Remote::default()
        };
        let change = |contents: &mut Contents| {
            contents.remote.insert(Arc::from("scrape"), declared);
            contents.remote.insert(Arc::from("aaa"), Remote::default());
        };
        assert_eq!(directory.change(change), Ok(2));
        let snapshot = directory.snapshot();
        assert_eq!(snapshot.slot_limit("scrape"), UNBOUNDED);
        assert!(snapshot.input_schema("scrape").is_some());
        assert!(snapshot.input_schema("aaa").is_none());
        let defaults = snapshot.defaults("scrape").expect("it was declared");
        assert_eq!(defaults.as_str(), r#"{"retry_count":2}"#);
        let listed = directory.list();
        assert_eq!((listed[0].name.as_str(), listed[0].remote), ("aaa", true));
        assert!(listed.is_sorted_by(|a, b| a.name < b.name));
        let declared = listed.iter().find(|view| view.name == "scrape");
        let declared = declared.expect("it is listed");
        assert_eq!(declared.limit, None);
        assert!(declared.input_schema.is_some());
    }

    #[test]
    fn a_snapshot_stays_as_it_is_when_the_directory_changes() {
        let directory = directory();
        let (before, changes) = (directory.newest(), directory.changes());
        assert_eq!(directory.change(remote("resize", 3)), Ok(2));
        assert_eq!((before.number(), before.knows("resize")), (1, false));
        let after = directory.snapshot();
        assert_eq!((after.number(), *changes.borrow()), (2, 2));
        assert_eq!(Standing::of(&*after, "resize"), Standing::Remote);
        assert_eq!(Standing::of(&*after, "echo_executor"), Standing::BuiltIn);
        assert_eq!(Standing::of(&*after, "nobody"), Standing::Unknown);
        assert_eq!(
            (after.slot_limit("resize"), after.slot_limit("nobody")),
            (3, 0)
        );
    }

    #[test]
    fn a_limit_of_an_executor_of_this_process_can_be_changed() {
        let directory = directory();
        let change =
            |c: &mut Contents| c.built_in.set_limit("echo_executor", 7).expect("it exists");
        assert_eq!(directory.change(change), Ok(2));
        assert_eq!(directory.snapshot().slot_limit("echo_executor"), 7);
        assert!(directory.newest().built_in().any(|r| r.limit() == 7));
    }

    #[test]
    fn contents_that_cannot_be_are_refused_and_nothing_is_published() {
        let directory = directory();
        let name = || "echo_executor".to_owned();
        assert_eq!(
            directory.change(remote("echo_executor", 1)),
            Err(DirectoryError::BuiltIn { name: name() })
        );
        let name = String::from("resize");
        assert_eq!(
            directory.change(remote("resize", 0)),
            Err(DirectoryError::NoLimit { name })
        );
        assert!(matches!(
            directory.change(remote(" ", 1)),
            Err(DirectoryError::InvalidName { .. })
        ));
        assert_eq!(directory.newest().number(), 1);
        assert_eq!(directory.newest().remote().count(), 0);
    }
}
