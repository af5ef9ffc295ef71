//! Why a call was not carried out: refused (the caller can mend it) or failed (we must).

use super::api::work::LeaseLoss;
use super::known_executors::KnownExecutors;
use super::limits::Quota;
use super::naming::CallNames;
use super::ownership::Node;
use super::ports::ExecutorSnapshot;
use crate::store;
use crate::webhooks;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;
use taskledger_auth::Scope;
use taskledger_domain::TaskId;
use taskledger_domain::contract::Breach;
use taskledger_domain::flow::{Fault, Kind, Outdated, Refusal, Refusals, Rejection};
use taskledger_domain::task::call::UnknownMethod;

/// What a caller is told to wait when the log does not answer, in milliseconds.
const LOG_AWAY_RETRY_MS: u64 = 1000;

/// The two ways in which a command or query does not succeed, and "not now".
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The rules say no.
    #[error("refused: {0:?}")]
    Refused(Box<Refused>),
    /// What the command rests on has changed since it was made. No caller sees it: the engine and the
    /// application deal with it.
    #[error("outdated: {0:?}")]
    Outdated(Outdated),
    /// A queue is full or a read model is behind; nothing was done.
    #[error("too busy: {reason}")]
    Busy {
        /// What is full, for the log and the caller.
        reason: String,
        /// Milliseconds after which a retry is sensible.
        retry_after_ms: u64,
    },
    /// The caller calls faster than it may; nothing was done.
    #[error("too many calls; retry after {retry_after_ms} ms")]
    RateLimited {
        /// Milliseconds after which the same call is served.
        retry_after_ms: u64,
    },
    /// The caller has as much of something as it may; nothing was done.
    #[error("quota exceeded: {used} of {limit} {} and {requested} more", quota.as_str())]
    QuotaExceeded {
        /// What there is enough of.
        quota: Quota,
        /// How much there may be.
        limit: u64,
        /// How much there is.
        used: u64,
        /// How much more the call asks for.
        requested: u64,
    },
    /// Another node decides about the flow, or none at the moment (`None`); nothing was done.
    #[error("the flow belongs to another node: {0:?}")]
    Elsewhere(Option<Arc<Node>>),
    /// The store could not say whether the command took effect.
    #[error("outcome unknown; retry with the same idempotency key")]
    OutcomeUnknown,
    /// Another node was sent the request, and nobody knows what became of it there.
    #[error("outcome unknown, the other node gave no answer; retry with the same idempotency key")]
    Unanswered {
        /// Milliseconds after which a retry is sensible.
        retry_after_ms: u64,
    },
    /// The request ran out of time.
    #[error("the request ran out of time")]
    OutOfTime {
        /// Whether it may have changed something: then its outcome is unknown.
        changes: bool,
    },
    /// The caller may not do it; nothing was done.
    #[error("the credentials lack the scope `{scope}`")]
    Forbidden {
        /// What the credentials must allow.
        scope: Scope,
        /// The member whose value needs it; absent when the whole call does.
        field: Option<Cow<'static, str>>,
    },
    /// The caller does not hold the attempt (any more); nothing was changed.
    #[error("the lease of task {task} is not held: {reason:?}")]
    LeaseNotHeld {
        /// The task that was named.
        task: TaskId,
        /// Why the caller does not hold it.
        reason: LeaseLoss,
    },
    /// A contract of a task is not kept: of its inputs, when it is claimed, or of its result. Changes nothing but the
    /// history of the task.
    #[error("{}", breach.failure())]
    ContractBroken {
        /// The task whose output was refused.
        task: TaskId,
        /// What is not kept; with names once they are known.
        breach: Box<Breach>,
    },
    /// There is no such webhook, or no such delivery.
    #[error("no such webhook or delivery: `{field}`")]
    UnknownWebhook {
        /// The member that names it.
        field: &'static str,
    },
    /// The command was not carried out, because of a fault on our side.
    #[error("failed: {0}")]
    Failed(Failure),
}

/// A refusal, and what the caller calls the tasks that it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The reason, in the terms of the rules.
    pub refusal: Refusal,
    /// What is wrong besides, which comes later in the order of precedence.
    pub others: Vec<Refusal>,
    /// The tasks of the call.
    pub names: CallNames,
    /// Tasks of the call whose executors are unknown, where something else is the reason.
    pub unknown_executors: Vec<UnknownMethod>,
    /// The executors that there are, where some are unknown.
    pub executors: KnownExecutors,
}

/// A fault on our side. Its text is for the log; callers get an error id.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Failure {
    /// The log.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The read models.
    #[error("read models: {0}")]
    ReadModel(String),
    /// Webhooks and what was sent to them.
    #[error("webhooks: {0}")]
    Webhooks(String),
    /// A fault of another node, which has logged it.
    #[error("another node failed: {id}")]
    OfNode {
        /// The id under which that node logged it.
        id: String,
        /// What a caller may know of it.
        reason: Option<String>,
    },
    /// Another node gave an answer that cannot be read.
    #[error("another node gave an answer that cannot be read: {0}")]
    UnreadableAnswer(String),
    /// The server is stopping.
    #[error("the server is shutting down")]
    ShuttingDown,
    /// Workflow documents that are kept.
    #[error("workflows: {0}")]
    Workflows(String),
    /// The store of schedules.
    #[error("schedules: {0}")]
    Schedules(String),
    /// Secrets of tasks.
    #[error("secrets: {0}")]
    Secrets(String),
    /// Tokens and the audit log.
    #[error("tokens: {0}")]
    Tokens(String),
    /// An invariant does not hold.
    #[error("invariant broken: {0}")]
    Broken(String),
}

impl Failure {
    /// What a caller may know of it: faults that somebody outside can mend.
    #[must_use]
    pub fn for_the_caller(&self) -> Option<String> {
        match self {
            Self::Store(store::Error::NotWritable(_)) => Some(
                "the log cannot be written (is the disk full?); nothing was changed".to_owned(),
            ),
            Self::Store(store::Error::Corrupt {
                position,
                flow: Some(flow),
                ..
            }) => Some(format!(
                "flow `{flow}` is damaged: its event at position {position} of the log cannot be read or applied; see \
                 `taskledger events verify`"
            )),
            Self::Store(store::Error::Corrupt { position, .. }) => Some(format!(
                "the log is damaged at position {position}; see `taskledger events verify`"
            )),
            Self::OfNode { reason, .. } => reason.clone(),
            Self::UnreadableAnswer(_) => {
                Some("another server gave an answer that cannot be read".to_owned())
            }
            Self::Store(store::Error::Unavailable(_) | store::Error::Invalid(_))
            | Self::ReadModel(_)
            | Self::Webhooks(_)
            | Self::Tokens(_)
            | Self::Workflows(_)
            | Self::Schedules(_)
            | Self::Secrets(_)
            | Self::ShuttingDown
            | Self::Broken(_) => None,
        }
    }
}

impl Error {
    /// Whether an event of the log is damaged.
    pub(super) const fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Failed(Failure::Store(store::Error::Corrupt { .. }))
        )
    }

    /// A refusal for values that are not acceptable in themselves.
    #[must_use]
    pub fn invalid(faults: impl IntoIterator<Item = impl Into<Fault>>) -> Self {
        Refusal::invalid(faults).into()
    }

    /// The scope that the credentials lack.
    #[must_use]
    pub(super) const fn scope(&self) -> Option<Scope> {
        if let Self::Forbidden { scope, .. } = self {
            return Some(*scope);
        }
        None
    }

    /// Whether it is certain that nothing was changed.
    #[must_use]
    pub fn changed_nothing(&self) -> bool {
        match self {
            Self::Refused(_)
            | Self::Busy { .. }
            | Self::RateLimited { .. }
            | Self::QuotaExceeded { .. }
            | Self::Elsewhere(_)
            | Self::Forbidden { .. }
            | Self::UnknownWebhook { .. }
            | Self::LeaseNotHeld { .. }
            | Self::ContractBroken { .. }
            | Self::Failed(Failure::ShuttingDown) => true,
            Self::Outdated(Outdated::Owner) => true,
            // Only the engine and the application see the first; for others it is a fault of ours.
            Self::Outdated(Outdated::Attempt | Outdated::Specification)
            | Self::OutcomeUnknown
            | Self::Unanswered { .. }
            | Self::OutOfTime { .. }
            | Self::Failed(_) => false,
        }
    }

    /// The same with unknown executors, which come later in the order of precedence, so that the caller
    /// learns all faults at once: the code stays that of the refusal. spec: semantics / Errors
    #[must_use]
    pub(super) fn beside(mut self, unknown_executors: Vec<UnknownMethod>) -> Self {
        if let Self::Refused(refused) = &mut self
            && (Kind::Invalid..Kind::ExecutorNotFound).contains(&refused.refusal.kind())
        {
            refused.unknown_executors = unknown_executors;
        }
        self
    }

    /// The same with the executors that there are, where some are unknown. Cost of such a refusal: that of
    /// [`KnownExecutors::beside`].
    #[must_use]
    pub(super) fn naming(mut self, executors: &dyn ExecutorSnapshot) -> Self {
        if let Self::Refused(refused) = &mut self {
            let mut unknown: Vec<&str> = Vec::new();
            if let Refusal::ExecutorsNotFound(faults) = &refused.refusal {
                unknown.extend(faults.iter().map(|fault| &*fault.method));
            }
            unknown.extend(refused.unknown_executors.iter().map(|it| &*it.method));
            if !unknown.is_empty() {
                refused.executors = KnownExecutors::beside(executors, unknown.into_iter());
            }
        }
        self
    }

    /// The same beside what the caller calls the tasks of the call. Cost of a refusal: O(tasks).
    #[must_use]
    pub(super) fn with_names(mut self, names: &CallNames) -> Self {
        if let Self::Refused(refused) = &mut self {
            refused.names = names.clone();
        }
        self
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Refusals::from(refusal).into()
    }
}

impl From<Refusals> for Error {
    fn from(refusals: Refusals) -> Self {
        let Refusals { first, others } = refusals;
        Self::Refused(Box::new(Refused {
            refusal: first,
            others,
            names: CallNames::default(),
            unknown_executors: Vec::new(),
            executors: KnownExecutors::default(),
        }))
    }
}

impl From<Rejection> for Error {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::Refused(refusals) => (*refusals).into(),
            Rejection::Outdated(what) => Self::Outdated(what),
        }
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        match error {
            // Nothing was written, and it passes: a database that is restarting, or has no connection
            // to spare.
            store::Error::Unavailable(reason) => {
                tracing::warn!(
                    reason,
                    "a call is turned away, because the log does not answer"
                );
                Self::Busy {
                    reason: "the log does not answer; nothing was changed".to_owned(),
                    retry_after_ms: LOG_AWAY_RETRY_MS,
                }
            }
            error @ (store::Error::NotWritable(_)
            | store::Error::Corrupt { .. }
            | store::Error::Invalid(_)) => Self::Failed(Failure::Store(error)),
        }
    }
}

/// What a caller is told to wait when the store of webhooks does not answer, in milliseconds.
const WEBHOOKS_AWAY_RETRY_MS: u64 = 1000;

impl From<webhooks::api::Error> for Error {
    fn from(error: webhooks::api::Error) -> Self {
        use webhooks::store::Error as Stored;
        match error {
            webhooks::api::Error::Invalid(violations) => Self::invalid(violations),
            webhooks::api::Error::Unknown(field) => Self::UnknownWebhook { field },
            webhooks::api::Error::Log(error) => Failure::Store(error).into(),
            webhooks::api::Error::Store(error @ (Stored::Database(_) | Stored::Late)) => {
                tracing::warn!(%error, "a call did not reach the store of webhooks");
                Self::Busy {
                    reason: "the store of webhooks does not answer".to_owned(),
                    retry_after_ms: WEBHOOKS_AWAY_RETRY_MS,
                }
            }
            webhooks::api::Error::Store(error @ (Stored::Damaged(_) | Stored::Keys(_))) => {
                Failure::Webhooks(error.to_string()).into()
            }
        }
    }
}

/// What a caller is told to wait when the store of tokens does not answer, in milliseconds.
const TOKENS_AWAY_RETRY_MS: u64 = 1000;

impl From<taskledger_auth::store::Error> for Error {
    fn from(error: taskledger_auth::store::Error) -> Self {
        use taskledger_auth::store::Error as Stored;
        match error {
            Stored::Database(_) | Stored::Late => {
                tracing::warn!(%error, "a call did not reach the store of tokens");
                Self::Busy {
                    reason: "the store of tokens does not answer".to_owned(),
                    retry_after_ms: TOKENS_AWAY_RETRY_MS,
                }
            }
            Stored::Damaged(_) => Failure::Tokens(error.to_string()).into(),
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}
