//! The wire format of requests and outcomes between nodes: two lines of JSON there, one back.
//!
//! The form has a version, and whoever gets a form or a member that it does not know says that the request
//! was not taken, so that nodes of different releases never misread each other.

use crate::application::api::work::LeaseLoss;
use crate::application::api::{Reply, Request};
use crate::application::context::{Context, Idempotency, valid_traceparent};
use crate::application::error::{Error, Failure, Refused};
use crate::application::limits::Quota;
use crate::application::noted::Noted;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use taskledger_auth::{Caller, Scope, Scopes};
use taskledger_domain::TaskId;
use taskledger_domain::contract::Breach;
use taskledger_domain::flow::Outdated;
use uuid::Uuid;

macro_rules! version {
    ($version:literal) => {
        /// Where nodes take each other's requests.
        pub const PATH: &str = concat!("/internal/v", $version, "/call");
        /// The version of the form.
        pub const WIRE_VERSION: u32 = $version;
    };
}

version!(1);
/// Stands between cover and request.
pub(super) const SEPARATE: char = '\n';
/// Bytes up to which something is read where one is: a few milliseconds.
const INLINE_BYTES_MAX: usize = 256 * 1024;

/// Goes before the request: who asks, and how long the sender waits.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cover<'a> {
    v: u32,
    #[serde(borrow)]
    actor: Cow<'a, str>,
    #[serde(borrow)]
    tenant: Cow<'a, str>,
    scopes: Scopes,
    methods: Option<Arc<[Arc<str>]>>,
    agents: Option<Arc<[Arc<str>]>>,
    credential: Option<Arc<str>>,
    expires_ms: Option<i64>,
    #[serde(borrow)]
    correlation: Cow<'a, str>,
    #[serde(borrow)]
    trace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    idempotency: Option<Key<'a>>,
    noted: Option<Noted>,
    wait_ms: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Key<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
    noted_call: Option<Uuid>,
}

/// A request as another node sent it.
#[derive(Debug)]
pub(in crate::application) struct Arrived {
    /// Who asks.
    pub(in crate::application) context: Context,
    /// The request that the node is asked to carry out.
    pub(in crate::application) request: Request,
    /// How long the sender waits.
    pub(in crate::application) wait: Duration,
}

/// The second line.
pub(super) fn written(request: &Request) -> Arc<[u8]> {
    let written = serde_json::to_vec(request);
    written
        .expect("a request can always be written as JSON")
        .into()
}

/// A written request as it is sent.
pub(super) fn covered(context: &Context, wait: Duration, written: &[u8]) -> Vec<u8> {
    let caller = &context.caller;
    let cover = Cover {
        v: WIRE_VERSION,
        actor: Cow::from(&**caller.actor()),
        tenant: Cow::from(&**caller.tenant()),
        scopes: caller.scopes(),
        methods: caller.methods().cloned(),
        agents: caller.agents().cloned(),
        credential: caller.credential().cloned(),
        expires_ms: caller.expires_ms(),
        correlation: Cow::from(&*context.correlation),
        trace: context.trace.as_deref().map(Cow::from),
        idempotency: context.idempotency.as_ref().map(|idempotency| Key {
            key: Cow::from(&*idempotency.key),
            noted_call: idempotency.noted_call,
        }),
        noted: context.noted.clone(),
        wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
    };
    let mut body = serde_json::to_vec(&cover).expect("texts and numbers can be written as JSON");
    body.reserve(written.len() + 1);
    body.push(SEPARATE as u8);
    body.extend_from_slice(written);
    body
}

/// A request as it arrives; `None` for what no node of this release sends.
pub(in crate::application) async fn arrived(
    body: impl AsRef<[u8]> + Send + 'static,
) -> Option<Arrived> {
    if body.as_ref().len() <= INLINE_BYTES_MAX {
        return read(body.as_ref());
    }
    let reading = tokio::task::spawn_blocking(move || read(body.as_ref()));
    reading.await.ok().flatten()
}

/// From a text, as everything else that is stored or sent: the code that reads a request or reply is large, and is
/// there once for each kind of source.
fn as_json<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, serde_json::Error> {
    serde_json::from_str(std::str::from_utf8(bytes).map_err(serde_json::Error::custom)?)
}

fn read(body: &[u8]) -> Option<Arrived> {
    let end = body.iter().position(|byte| *byte == SEPARATE as u8)?;
    let cover: Cover<'_> = as_json(&body[..end]).ok()?;
    if cover.v != WIRE_VERSION {
        return None;
    }
    let request = as_json(&body[end + 1..]).ok()?;
    let caller = Caller::described(
        &cover.actor,
        &cover.tenant,
        cover.scopes,
        cover.methods,
        cover.credential,
        cover.expires_ms,
    )?;
    let caller = caller.with_agents(cover.agents);
    let mut context = Context::of(Arc::new(caller), Arc::from(&*cover.correlation));
    context.trace = cover
        .trace
        .as_deref()
        .and_then(valid_traceparent)
        .map(Arc::from);
    context.idempotency = cover.idempotency.map(|sent| {
        let mut idempotency = Idempotency::new(Arc::from(&*sent.key));
        idempotency.noted_call = sent.noted_call;
        idempotency
    });
    context.noted = cover.noted;
    Some(Arrived {
        context,
        request,
        wait: Duration::from_millis(cover.wait_ms),
    })
}

/// What a request was answered, as it travels back.
#[derive(Serialize, Deserialize)]
enum Outcome<R, E> {
    Reply(R),
    Error(E),
}

/// Why a request was not carried out, as it travels back.
#[derive(Serialize, Deserialize)]
enum SentError {
    /// The one place where refusals are put on the wire.
    Refused(Box<Refused>),
    Busy {
        reason: String,
        retry_after_ms: u64,
    },
    RateLimited {
        retry_after_ms: u64,
    },
    QuotaExceeded {
        quota: Quota,
        limit: u64,
        used: u64,
        requested: u64,
    },
    Forbidden {
        scope: Scope,
        field: Option<String>,
    },
    LeaseNotHeld {
        task: TaskId,
        reason: LeaseLoss,
    },
    ContractBroken {
        task: TaskId,
        breach: Box<Breach>,
    },
    /// The flow is of another user than was noted.
    OfAnotherOwner,
    OutcomeUnknown,
    Unanswered {
        retry_after_ms: u64,
    },
    OutOfTime {
        changes: bool,
    },
    ShuttingDown,
    /// Logged by the node that failed, under this id.
    Failed {
        id: String,
        reason: Option<String>,
    },
}

/// What a request is answered, as it is sent back. `None`: it was not carried out, because the flow is
/// elsewhere. A failure goes by the id under which `log` has put it into the log.
pub(in crate::application) fn written_outcome(
    outcome: Result<Reply, Error>,
    log: impl FnOnce(&Failure) -> String,
) -> Option<Vec<u8>> {
    let outcome = match outcome {
        Ok(reply) => Outcome::Reply(reply),
        Err(error) => Outcome::Error(match error {
            // No request that travels names a webhook.
            Error::Elsewhere(_) | Error::UnknownWebhook { .. } => return None,
            Error::Refused(refused) => SentError::Refused(refused),
            Error::Outdated(Outdated::Owner) => SentError::OfAnotherOwner,
            Error::Outdated(what @ (Outdated::Attempt | Outdated::Specification)) => {
                let failure =
                    Failure::Broken(format!("an outdated command was not made anew: {what:?}"));
                SentError::Failed {
                    id: log(&failure),
                    reason: None,
                }
            }
            Error::Busy {
                reason,
                retry_after_ms,
            } => SentError::Busy {
                reason,
                retry_after_ms,
            },
            Error::Forbidden { scope, field } => SentError::Forbidden {
                scope,
                field: field.map(Cow::into_owned),
            },
            Error::LeaseNotHeld { task, reason } => SentError::LeaseNotHeld { task, reason },
            Error::ContractBroken { task, breach } => SentError::ContractBroken { task, breach },
            Error::OutcomeUnknown => SentError::OutcomeUnknown,
            Error::Unanswered { retry_after_ms } => SentError::Unanswered { retry_after_ms },
            Error::RateLimited { retry_after_ms } => SentError::RateLimited { retry_after_ms },
            Error::QuotaExceeded {
                quota,
                limit,
                used,
                requested,
            } => SentError::QuotaExceeded {
                quota,
                limit,
                used,
                requested,
            },
            Error::OutOfTime { changes } => SentError::OutOfTime { changes },
            Error::Failed(Failure::ShuttingDown) => SentError::ShuttingDown,
            Error::Failed(failure) => SentError::Failed {
                id: log(&failure),
                reason: failure.for_the_caller(),
            },
        }),
    };
    Some(serde_json::to_vec(&outcome).expect("an outcome can always be written as JSON"))
}

/// The outcome that another node has sent, as if it were ours.
pub(super) async fn outcome(answer: Vec<u8>) -> Result<Reply, Error> {
    if answer.len() <= INLINE_BYTES_MAX {
        return understood(&answer);
    }
    let reading = tokio::task::spawn_blocking(move || understood(&answer));
    reading
        .await
        .unwrap_or_else(|_| Err(Failure::ShuttingDown.into()))
}

fn understood(answer: &[u8]) -> Result<Reply, Error> {
    let outcome: Outcome<Reply, SentError> =
        as_json(answer).map_err(|error| Failure::UnreadableAnswer(error.to_string()))?;
    Err(match outcome {
        Outcome::Reply(reply) => return Ok(reply),
        Outcome::Error(SentError::Refused(refused)) => Error::Refused(refused),
        Outcome::Error(SentError::Busy {
            reason,
            retry_after_ms,
        }) => Error::Busy {
            reason,
            retry_after_ms,
        },
        Outcome::Error(SentError::Forbidden { scope, field }) => Error::Forbidden {
            scope,
            field: field.map(Cow::Owned),
        },
        Outcome::Error(SentError::LeaseNotHeld { task, reason }) => {
            Error::LeaseNotHeld { task, reason }
        }
        Outcome::Error(SentError::ContractBroken { task, breach }) => {
            Error::ContractBroken { task, breach }
        }
        Outcome::Error(SentError::OfAnotherOwner) => Error::Outdated(Outdated::Owner),
        Outcome::Error(SentError::OutcomeUnknown) => Error::OutcomeUnknown,
        Outcome::Error(SentError::Unanswered { retry_after_ms }) => {
            Error::Unanswered { retry_after_ms }
        }
        Outcome::Error(SentError::RateLimited { retry_after_ms }) => {
            Error::RateLimited { retry_after_ms }
        }
        Outcome::Error(SentError::QuotaExceeded {
            quota,
            limit,
            used,
            requested,
        }) => Error::QuotaExceeded {
            quota,
            limit,
            used,
            requested,
        },
        Outcome::Error(SentError::OutOfTime { changes }) => Error::OutOfTime { changes },
        Outcome::Error(SentError::ShuttingDown) => Failure::ShuttingDown.into(),
        Outcome::Error(SentError::Failed { id, reason }) => Failure::OfNode { id, reason }.into(),
    })
}
