//! The ports through which the application learns about workers outside the server and informs them.

use crate::store;
use async_trait::async_trait;
use std::fmt;
use std::sync::Arc;
use taskledger_auth::Reach;
use taskledger_domain::{Timestamp, Violation};
use taskledger_workers::store::TooManyDrains;
use taskledger_workers::{Connection, Method, MethodKey, Refusal, Rights, Worker};

/// Milliseconds for which a method counts as asked for, and a worker as being there, after the worker last
/// asked.
pub const ASKED_FOR_MS: u64 = 60_000;
/// Milliseconds after which whoever still waits for work of a worker says [`Workers::asked`] again.
pub const ASK_AGAIN_MS: u64 = 20_000;

/// The workers outside the server: what they declared, who asks for what, and who is drained.
///
/// A method that is declared, or that somebody asks for now, is in the directory of executors as one whose
/// tasks workers claim: for all flows, or for those of one user, where whoever declares or asks reaches no others.
#[async_trait]
pub trait Workers: Send + Sync + fmt::Debug + 'static {
    /// A worker asks for work now. A method that nobody has asked for is in the directory when this returns.
    /// To be said at the beginning of a claim, and each [`ASK_AGAIN_MS`] while it waits or a socket is open.
    /// Cost: O(methods), without I/O.
    ///
    /// # Errors
    /// [`AskRefusal`]; nothing is noted then.
    fn asked(&self, asks: &Asks<'_>) -> Result<(), AskRefusal>;
    /// A worker holds tasks of these methods and may be too busy to ask: it is there, and its methods are asked
    /// for. To be said each [`ASK_AGAIN_MS`] while it holds some. Cost: O(methods), without I/O.
    fn holds(&self, worker: &Arc<str>, principal: &Arc<str>, methods: &[Arc<str>]);
    /// A worker that asks at another server has begun tasks of flows of this one; `owner` as in [`Asks`]. So it is
    /// known what it asks for while it holds them, whatever the other server has written of it yet. Cost: O(1).
    fn claimed(&self, worker: &Arc<str>, principal: &Arc<str>, owner: Option<&Arc<str>>);
    /// The worker asks no more: its last connection has closed. It is not there until it asks again; its methods
    /// stay known for [`ASKED_FOR_MS`].
    fn left(&self, worker: &str, principal: &str);
    /// Declared methods and those that workers ask for now, by name: as they are for flows of one user, or all.
    /// Cost: O(methods + workers).
    fn methods(&self, reach: &Reach) -> Vec<KnownMethod>;
    /// Who would take a task of a method now, of a flow of this owner. Cost: O(workers * methods of each).
    fn asking(&self, method: &str, owner: Option<&str>) -> Asking;
    /// Workers that ask now, by principal and name; one that is connected to several servers is there once for
    /// each. Cost: O(workers).
    fn workers(&self) -> Vec<Worker>;
    /// Whether the worker gets no new work. Cost: O(1).
    fn is_draining(&self, worker: &str, principal: &str) -> bool;
    /// The principals whose worker of this name gets no new work, whether it is there or not. Cost: O(principals).
    fn drained(&self, worker: &str) -> Vec<Arc<str>>;
    /// When a worker last asked for the method that may claim of flows of this owner, within the last day. Cost: O(1).
    fn last_asked_at(&self, method: &str, owner: Option<&str>) -> Option<Timestamp>;
    /// Reads what other servers have declared, drained and announced, and writes who is here: for the rare calls whose
    /// answer must not be older than they are. Concurrent calls share one look. Does nothing for a server that is
    /// alone, and as little as possible when the store does not answer.
    async fn catch_up(&self);
    /// Whether the worker gets no new work from now on (`is_drained`), or gets it again. On other servers it
    /// counts within two seconds, or as soon as they [catch up](Self::catch_up).
    ///
    /// # Errors
    /// It cannot be written; within, there are too many.
    async fn drain(
        &self,
        worker: &str,
        principal: &str,
        is_drained: bool,
    ) -> Result<Result<(), TooManyDrains>, store::Error>;
    /// Declares a method, in the place of the one of that name and owner if there is one; it is in the directory of
    /// this server when this returns, and in those of others within two seconds, or as soon as they
    /// [catch up](Self::catch_up).
    ///
    /// # Errors
    /// It cannot be written; within, [`DeclareRefusal`]: nothing is changed then.
    async fn declare(
        &self,
        method: Method,
        rights: Rights,
    ) -> Result<Result<Arc<Method>, DeclareRefusal>, store::Error>;
    /// Removes a declared method for the principal `by`. Says whether there was one.
    ///
    /// # Errors
    /// It cannot be written; within, [`Refusal::AnotherPrincipal`].
    async fn undeclare(
        &self,
        method: &MethodKey,
        by: &str,
        rights: Rights,
    ) -> Result<Result<bool, Refusal>, store::Error>;
}

/// The methods that workers ask for.
#[derive(Debug, Clone, Copy)]
pub struct Asks<'a> {
    /// What the worker calls itself.
    pub worker: &'a str,
    /// With whose credentials it comes.
    pub principal: &'a str,
    /// The user whose flows alone it may claim of; `None`: those of all users.
    pub owner: Option<&'a Arc<str>>,
    /// What it would do. Empty when it asks for one task: then only that it is there is noted.
    pub methods: &'a [Arc<str>],
    /// How it asks.
    pub connection: Connection,
}

/// A method whose tasks workers claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownMethod {
    /// Its name, and whose declaration it is.
    pub key: MethodKey,
    /// As it was declared, if it was.
    pub declared: Option<Arc<Method>>,
    /// Workers that ask for it now.
    pub workers: usize,
    /// When one last asked, within the last day.
    pub last_asked_at: Option<Timestamp>,
}

/// The workers that would take a task of a method.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asking {
    /// Workers that are there: heard of within the time in which those that wait or hold tasks are heard of again.
    pub now: usize,
    /// Workers that were heard of within [`ASKED_FOR_MS`] and are drained; not among the others.
    pub drained: usize,
    /// Whether one of those that are there takes tasks of all users.
    pub takes_all: bool,
}

/// Why a worker cannot ask for what it asks for; it can mend it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskRefusal {
    /// An executor of this process has the name.
    #[error("`{method}` is built in: its tasks run in the server and cannot be claimed")]
    BuiltIn {
        /// The method that was asked for.
        method: Arc<str>,
    },
    /// A name is blank or too long, or has characters that are not to be shown.
    #[error(
        "method name `{method}` must have 1 to 255 characters, not all of them white space, without control characters and those that change the direction of text"
    )]
    InvalidName {
        /// The name, cut.
        method: Arc<str>,
    },
    /// Workers ask for as many methods, or there are as many workers, as there may be.
    #[error("more than {max} {what} cannot be known at once")]
    TooMany {
        /// `methods` or `workers`, of one principal perhaps.
        what: &'static str,
        /// How many there may be.
        max: usize,
    },
}

/// Why a method cannot be declared; the caller can mend it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeclareRefusal {
    /// An executor of this process has the name.
    #[error("`{method}` is built in: its tasks run in the server and cannot be claimed")]
    BuiltIn {
        /// The method that was to be declared.
        method: Arc<str>,
    },
    /// The name is blank or too long, or has characters that are not to be shown.
    #[error(
        "method name `{method}` must have 1 to 255 characters, not all of them white space, without control characters and those that change the direction of text"
    )]
    InvalidName {
        /// The name, cut.
        method: Arc<str>,
    },
    /// The limit is 0 or too high.
    #[error("a limit is 1 to {max}")]
    Limit {
        /// The highest.
        max: u32,
    },
    /// A schema cannot be used.
    #[error("`{member}` is not a JSON Schema that can be used")]
    Schema {
        /// `input_schema` or `output_schema`.
        member: &'static str,
        /// What is wrong with it, at paths from its root.
        violations: Vec<Violation>,
    },
    /// It belongs to somebody else, or limits are reached.
    #[error(transparent)]
    Kept(#[from] Refusal),
}
