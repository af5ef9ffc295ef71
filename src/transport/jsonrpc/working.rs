//! The port through which sockets claim work for programs outside the server, and how long a call waits for it.

use super::envelope::{Element, Envelope, Params};
use super::error::RpcError;
use super::methods::answer;
use super::params::work::claim::WAIT_SECONDS_MAX;
use crate::application::api::Request;
use crate::application::api::work::{Claim, ClaimWatch, Claims, Connected, HeldLease, Release};
use crate::application::{Context, Service};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use taskledger_domain::{LeaseId, TaskId};

/// The method that waits for work.
const CLAIM: &str = "tasks.claim";
/// Calls that end a claim.
const OUTCOMES: [&str; 3] = ["tasks.complete", "tasks.fail", "tasks.release"];
/// The call that goes on with a claim.
const RENEW: &str = "tasks.renew";

/// The port through which sockets get work.
pub trait Work: Send + Sync + fmt::Debug + 'static {
    /// Claims tasks.
    fn claim<'a>(
        &'a self,
        context: &'a Context,
        claim: Claim,
    ) -> BoxFuture<'a, Result<Claims, RpcError>>;

    /// Ends of claims that begin from now on.
    fn watch<'a>(&'a self, context: &'a Context) -> BoxFuture<'a, Result<ClaimWatch, RpcError>>;

    /// Notes that a worker is connected, until the value is dropped.
    fn connected(&self, context: &Context, worker: Option<Arc<str>>) -> Connected;

    /// The lease by which a worker of the caller holds a task; `None`: it does not, or that cannot be found out.
    fn held<'a>(
        &'a self,
        context: &'a Context,
        task: TaskId,
        worker: Option<Arc<str>>,
    ) -> BoxFuture<'a, Option<HeldLease>>;

    /// Releases a claim that was not delivered to its worker.
    fn give_back<'a>(&'a self, context: &'a Context, release: Release) -> BoxFuture<'a, ()>;
}

impl Work for Service {
    fn claim<'a>(
        &'a self,
        context: &'a Context,
        claim: Claim,
    ) -> BoxFuture<'a, Result<Claims, RpcError>> {
        async move { answer(self, Self::claim(self, context, claim).await) }.boxed()
    }

    fn watch<'a>(&'a self, context: &'a Context) -> BoxFuture<'a, Result<ClaimWatch, RpcError>> {
        async move { answer(self, self.watch_claims(context).await) }.boxed()
    }

    fn connected(&self, context: &Context, worker: Option<Arc<str>>) -> Connected {
        Self::connected(self, context, worker)
    }

    fn held<'a>(
        &'a self,
        context: &'a Context,
        task: TaskId,
        worker: Option<Arc<str>>,
    ) -> BoxFuture<'a, Option<HeldLease>> {
        async move {
            let held = self.held_by_worker(context, task, worker).await;
            held.unwrap_or_else(|error| {
                tracing::debug!(task.id = %task, %error, "a renewed claim is not followed");
                None
            })
        }
        .boxed()
    }

    fn give_back<'a>(&'a self, context: &'a Context, release: Release) -> BoxFuture<'a, ()> {
        async move {
            let task = release.task;
            if let Err(error) = self.call(context, Request::Release(release)).await {
                // Its lease ends by itself.
                tracing::warn!(task.id = %task, %error, "an undelivered claim was not released");
            }
        }
        .boxed()
    }
}

/// How long a call may wait for work, beyond what other calls may take.
pub(crate) fn wait(envelope: &Envelope) -> Duration {
    let Envelope::Single(Element::Request(request)) = envelope else {
        return Duration::ZERO;
    };
    let given = match &request.params {
        Params::Named(members) if request.method == CLAIM => members.get("wait_seconds"),
        // By position, as the questions of the method stand.
        Params::Positional(values) if request.method == CLAIM => values.get(5),
        Params::Named(_) | Params::Positional(_) => None,
    };
    let seconds = given.and_then(Value::as_f64).unwrap_or(0.0);
    Duration::try_from_secs_f64(seconds.clamp(0.0, f64::from(WAIT_SECONDS_MAX))).unwrap_or_default()
}

/// Whether a call that stands alone is one of those that workers make all the time.
pub(crate) fn is_of_worker(envelope: &Envelope) -> bool {
    let Envelope::Single(Element::Request(request)) = envelope else {
        return false;
    };
    let method = request.method.as_str();
    [CLAIM, RENEW].contains(&method) || OUTCOMES.contains(&method)
}

/// The task and the lease that a call would end, if it names them.
pub(crate) fn ended(envelope: &Envelope) -> Option<(TaskId, LeaseId)> {
    lease_of(envelope, &OUTCOMES)
}

/// The task and the lease that a call would renew, if it names them.
pub(crate) fn renewed(envelope: &Envelope) -> Option<(TaskId, LeaseId)> {
    lease_of(envelope, &[RENEW])
}

/// Whether this is a claim that stands alone.
pub(crate) fn is_claim(envelope: &Envelope) -> bool {
    matches!(envelope, Envelope::Single(Element::Request(request)) if request.method == CLAIM)
}

fn lease_of(envelope: &Envelope, methods: &[&str]) -> Option<(TaskId, LeaseId)> {
    let Envelope::Single(Element::Request(request)) = envelope else {
        return None;
    };
    let (task, lease) = match &request.params {
        _ if !methods.contains(&request.method.as_str()) => return None,
        Params::Named(members) => (members.get("task_id")?, members.get("lease")?),
        // As all of their questions stand.
        Params::Positional(values) => (values.first()?, values.get(1)?),
    };
    let task = TaskId::parse(task.as_str()?).ok()?;
    Some((task, LeaseId::parse(lease.as_str()?).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::jsonrpc::envelope::parse;
    use crate::transport::jsonrpc::params::work::claim;
    use crate::transport::jsonrpc::reader::Parameters;
    use serde_json::json;
    use taskledger_domain::testing::id;

    fn call(method: &str, params: Value) -> Envelope {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        parse(call.to_string().as_bytes())
    }

    #[test]
    fn only_a_claim_that_says_so_waits_and_no_longer_than_it_may() {
        for (method, params, seconds) in [
            ("tasks.claim", json!({"methods": ["a"]}), 0),
            ("tasks.claim", json!({"wait_seconds": 20}), 20),
            ("tasks.claim", json!({"wait_seconds": 1e9}), 60),
            ("tasks.claim", json!({"wait_seconds": "20"}), 0),
            ("tasks.claim", json!([["a"], null, null, null, null, 7]), 7),
            ("tasks.get", json!({"wait_seconds": 20}), 0),
        ] {
            let waits = wait(&call(method, params.clone()));
            assert_eq!(waits, Duration::from_secs(seconds), "{method} {params}");
        }
    }

    #[test]
    fn the_positions_are_those_of_the_questions() {
        let questions = claim::Params::questions();
        assert_eq!(questions[5].name, "wait_seconds");
    }

    #[test]
    fn calls_of_workers_are_told_from_others() {
        let (task, lease) = (id("task"), LeaseId(id("lease").0));
        let held = json!({"task_id": task, "lease": lease});
        for method in OUTCOMES {
            let envelope = call(method, held.clone());
            assert!(is_of_worker(&envelope));
            assert_eq!(ended(&envelope), Some((task, lease)));
        }
        let by_position = call("tasks.release", json!([task, lease]));
        assert_eq!(ended(&by_position), Some((task, lease)));
        let renewal = call("tasks.renew", held.clone());
        assert!(is_of_worker(&renewal) && ended(&renewal).is_none());
        assert_eq!(renewed(&renewal), Some((task, lease)));
        let other = call("tasks.get", held);
        assert!(!is_of_worker(&other) && ended(&other).is_none());
        assert!(renewed(&other).is_none());
    }
}
